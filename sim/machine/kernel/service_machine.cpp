// Checks of what pieces of work share, and how its latency follows its load.
#include "machine/kernel/service_machine.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>

namespace numatwin {

void service::require(bool holds, const char* field, const char* expected) {
    if (!holds) throw std::invalid_argument(std::string(field) + ": expected " + expected);
}

bool service::is_amount(double value) {
    return value >= 0 && value < std::numeric_limits<double>::infinity();
}

void ServiceMachine::check() const {
    using service::is_amount, service::require;
    const std::size_t n = read_ps.size(), links = data_ps.size();
    const auto all_vertices = static_cast<std::size_t>(vertices);
    const auto in_range = [](const Positions& values, std::int64_t least, std::size_t below) {
        return std::ranges::all_of(values, [&](std::int64_t value) {
            return value >= least && value < static_cast<std::int64_t>(below);
        });
    };
    require(n > 0 && std::ranges::all_of(read_ps, is_amount), "read_ps", "times from 0 on");
    require(write_ps.size() == n && std::ranges::all_of(write_ps, is_amount), "write_ps",
            "a time from 0 on for each node");
    require(latency_ps.size() == n * n && std::ranges::all_of(latency_ps, is_amount), "latency_ps",
            "a time from 0 on for each pair of nodes");
    require(load.size() >= 2 && load_ratio.size() == load.size() &&
                std::ranges::adjacent_find(load, std::greater_equal{}) == load.end() &&
                std::ranges::all_of(load_ratio, [](double ratio) { return ratio > 0; }),
            "load, load_ratio", "at least two rising loads, and a ratio above 0 for each");
    require(in_range(core_node, 0, n), "core_node", "nodes");
    require(core_threads.size() == core_node.size() && in_range(core_threads, 1, 1u << 16),
            "core_threads", "at least one for each core");
    require(std::ranges::all_of(data_ps, is_amount), "data_ps", "times from 0 on");
    require(request_ps.size() == links && std::ranges::all_of(request_ps, is_amount), "request_ps",
            "a time from 0 on for each link");
    require((entries.empty() || entries.size() == n) && std::ranges::all_of(entries, is_amount),
            "entries", "an amount from 0 on for each node");
    require(answer_ps.empty() ||
                (answer_ps.size() == links && std::ranges::all_of(answer_ps, is_amount)),
            "answer_ps", "times from 0 on for each link");
    const auto reading = static_cast<std::size_t>(snooping);
    require(snooping >= 0 && reading <= n, "snooping", "at most all nodes");
    require(reading == 0
                ? message_first.empty()
                : message_first.size() == reading * reading + 1 && message_first.front() == 0 &&
                      message_first.back() == static_cast<std::int64_t>(message_link.size()) &&
                      std::ranges::is_sorted(message_first),
            "message_first", "where the messages of each pair of nodes begin");
    require(limits >= 0, "limits", "a number from 0 on");
    require(in_range(message_link, 0, links + static_cast<std::size_t>(limits)), "message_link",
            "links and limits");
    require(message_ps.size() == message_link.size() && std::ranges::all_of(message_ps, is_amount),
            "message_ps", "a time from 0 on for each message");
    require((stream_slots.empty() || stream_slots.size() == n) &&
                std::ranges::all_of(stream_slots, is_amount),
            "stream_slots", "an amount from 0 on for each node");
    require(line_max_ps.size() == n * stream_slots.size() &&
                std::ranges::all_of(line_max_ps, is_amount),
            "line_max_ps", "a time from 0 on for each pair of nodes, if stream_slots are known");
    require((stream_stall.empty() || stream_stall.size() == stream_slots.size()) &&
                std::ranges::all_of(stream_stall, is_amount),
            "stream_stall", "an amount from 0 on for each node, if stream_slots are known");
    if (links == 0) return;
    require(all_vertices >= n && entering.size() == n * all_vertices, "entering",
            "a link for each node and vertex");
    require(predecessor.size() == n * all_vertices, "predecessor",
            "a vertex for each node and vertex");
    for (std::size_t a = 0; a < n; ++a)
        for (std::size_t b = 0; b < n; ++b) {
            std::size_t at = b, steps = 0;
            while (at != a) {
                const auto link = entering[a * all_vertices + at];
                const auto before = predecessor[a * all_vertices + at];
                require(link >= 0 && link < static_cast<std::int64_t>(links), "entering",
                        "links on the way from node to node");
                require(before >= 0 && before < vertices && ++steps <= all_vertices, "predecessor",
                        "ways that end");
                at = static_cast<std::size_t>(before);
            }
        }
}

double settled_ratio(const ServiceMachine& of, double under_way) {
    const Numbers &x = of.load, &y = of.load_ratio;
    std::size_t k = 1;
    while (k + 1 < x.size() && x[k] * y[k] < under_way) ++k;
    // On y = base + slope * x: slope * x^2 + base * x = under_way.
    const double slope = (y[k] - y[k - 1]) / (x[k] - x[k - 1]);
    const double base = y[k - 1] - slope * x[k - 1];
    const double root = std::sqrt(std::max(0.0, base * base + 4 * slope * under_way));
    const double load = base > 0 ? 2 * under_way / (base + root) : (root - base) / (2 * slope);
    return base + slope * std::min(load, 1.0);
}

double settled_link_wait(double line, double latency, double load, double waited) {
    constexpr double load_most = 0.95;
    // load * (latency + wait(load)) = under way, with wait(load) = line * load / (2 (1 - load)).
    const double under_way = load * (latency + waited), beyond = latency - under_way;
    if (!(under_way > 0)) return 0;
    const double root = std::sqrt(beyond * beyond + 2 * line * under_way);
    const double found = std::min(2 * under_way / (latency + under_way + root), load_most);
    return line * found / (2 * (1 - found));
}

Numbers PieceDemand::checked(const ServiceMachine& machine) const {
    using service::is_amount;
    using service::require;
    const std::size_t n = machine.read_ps.size();
    const auto check = [&](const MemoryUse& m, const char* field) {
        require(m.home < n, field, "homes that are nodes");
        require(is_amount(m.read) && is_amount(m.written), field, "lines of at least 0");
        require(m.slots > 0 || m.read == 0, "slots", "more than 0 where lines are read");
    };
    require(is_amount(instructions_ps), "instructions_ps", "a time of at least 0");
    require(is_amount(separate_ps), "separate_ps", "a time of at least 0");
    bool takes_time = instructions_ps + separate_ps > 0;
    Numbers key{instructions_ps, separate_ps};
    for (const MemoryUse& m : memory) {
        check(m, "memory");
        const double latency_ps = machine.latency_ps[m.home * n + m.home];
        takes_time = takes_time || (m.read > 0 && machine.read_ps[m.home] + latency_ps > 0);
        key.insert(key.end(), {static_cast<double>(m.home), m.read, m.written, m.slots});
    }
    for (const Loop& loop : loops) {
        require(is_amount(loop.instructions_ps), "loops", "times of at least 0");
        key.insert(key.end(), {-1.0, loop.instructions_ps});  // no home: the next loop
        for (const MemoryUse& m : loop.memory) {
            check(m, "loops");
            key.insert(key.end(), {static_cast<double>(m.home), m.read, m.slots});
        }
    }
    for (const auto& [lock, held_ps] : held) {
        require(lock >= 0 && lock < machine.limits && is_amount(held_ps) && held_ps <= separate_ps,
                "held", "limits, and times of at most separate_ps");
        key.insert(key.end(), {-2.0, static_cast<double>(lock), held_ps});
    }
    require(takes_time, "demand", "instructions, or lines to read, that take time");
    return key;
}

}  // namespace numatwin
