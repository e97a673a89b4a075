#include "machine/kernel/shared_service.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

namespace numatwin {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
// Whole picoseconds are exact in doubles up to 2^53, two and a half hours.
constexpr double far = 0x1p53;

void require(bool holds, const char* field, const char* expected) {
    if (!holds) throw std::invalid_argument(std::string(field) + ": expected " + expected);
}

bool is_amount(double value) {
    return value >= 0 && value < infinity;
}

void check(const ServiceMachine& of) {
    const std::size_t n = of.read_ps.size(), links = of.data_ps.size();
    const auto vertices = static_cast<std::size_t>(of.vertices);
    const auto in_range = [](const Positions& values, std::int64_t least, std::size_t below) {
        return std::ranges::all_of(values, [&](std::int64_t value) {
            return value >= least && value < static_cast<std::int64_t>(below);
        });
    };
    require(n > 0 && std::ranges::all_of(of.read_ps, is_amount), "read_ps", "times from 0 on");
    require(of.write_ps.size() == n && std::ranges::all_of(of.write_ps, is_amount), "write_ps",
            "a time from 0 on for each node");
    require(of.latency_ps.size() == n * n && std::ranges::all_of(of.latency_ps, is_amount),
            "latency_ps", "a time from 0 on for each pair of nodes");
    require(of.curve.load.size() >= 2 && of.curve.ratio.size() == of.curve.load.size(), "curve",
            "at least two loads, and a ratio for each");
    require(in_range(of.core_node, 0, n), "core_node", "nodes");
    require(of.core_threads.size() == of.core_node.size() && in_range(of.core_threads, 1, 1u << 16),
            "core_threads", "at least one for each core");
    require(in_range(of.data_ps, 0, std::numeric_limits<std::int64_t>::max()), "data_ps",
            "times from 0 on");
    require(of.request_ps.size() == links &&
                in_range(of.request_ps, 0, std::numeric_limits<std::int64_t>::max()),
            "request_ps", "a time from 0 on for each link");
    if (links == 0) return;
    require(vertices >= n && of.entering.size() == n * vertices, "entering",
            "a link for each node and vertex");
    require(of.predecessor.size() == n * vertices, "predecessor",
            "a vertex for each node and vertex");
    for (std::size_t a = 0; a < n; ++a)
        for (std::size_t b = 0; b < n; ++b) {
            std::size_t at = b, steps = 0;
            while (at != a) {
                const auto link = of.entering[a * vertices + at];
                const auto before = of.predecessor[a * vertices + at];
                require(link >= 0 && link < static_cast<std::int64_t>(links), "entering",
                        "links on the way from node to node");
                require(before >= 0 && before < of.vertices && ++steps <= vertices, "predecessor",
                        "ways that end");
                at = static_cast<std::size_t>(before);
            }
        }
}

}  // namespace

SharedService::SharedService(ServiceMachine machine)
    : machine_((check(machine), std::move(machine))),
      hop_(machine_.entering.size()),
      vertices_(static_cast<std::size_t>(machine_.vertices)),
      node_(machine_.read_ps.size()),
      link_work_(machine_.data_ps.size()) {
    for (std::size_t k = 0; k < hop_.size(); ++k)
        hop_[k] = {static_cast<std::uint32_t>(machine_.entering[k]),
                   static_cast<std::uint32_t>(machine_.predecessor[k])};
    for (std::size_t c = 0; c < machine_.core_node.size(); ++c)
        core_.push_back({static_cast<std::uint32_t>(machine_.core_node[c]),
                         static_cast<std::uint32_t>(machine_.core_threads[c])});
    // Everything can be busy all of the time: demands are times per unit.
    const std::size_t resources = node_.size() + link_work_.size() + 2 * core_.size();
    for (std::size_t k = 0; k < resources; ++k) network_.add_resource(1.0);
}

std::uint32_t SharedService::slot_of(std::int64_t piece) const {
    const auto slot = static_cast<std::uint32_t>(piece);
    if (piece < 0 || slot >= piece_.size() || piece_[slot].flow < 0 ||
        piece_[slot].generation != static_cast<std::uint32_t>(piece >> 32))
        throw std::out_of_range("no piece " + std::to_string(piece) + " is running");
    return slot;
}

void SharedService::require_core(std::size_t core) const {
    require(core < core_.size(), "core", "one of the machine's");
    if (core_[core].running == core_[core].threads)
        throw std::logic_error("core " + std::to_string(core) + " has no thread left");
}

std::int64_t SharedService::start(Time now, std::size_t core, const Piece& piece,
                                  std::uint64_t job) {
    require(is_amount(piece.units), "units", "a finite number of at least 0");
    require(is_amount(piece.instructions_ps), "instructions_ps", "a time of at least 0");
    require(is_amount(piece.separate_ps), "separate_ps", "a time of at least 0");
    double reads = 0;
    for (const PieceMemory& of : piece.memory) {
        require(of.home < node_.size(), "memory", "homes that are nodes");
        require(is_amount(of.read) && is_amount(of.written), "memory", "lines of at least 0");
        reads += of.read;
    }
    require(piece.slots > 0 || reads == 0, "slots", "more than 0 where lines are read");
    require(reads > 0 || piece.instructions_ps + piece.separate_ps > 0, "piece",
            "instructions or lines to read");
    progress(now);
    require_core(core);
    if (unused_.empty()) {
        unused_.push_back(static_cast<std::uint32_t>(piece_.size()));
        piece_.emplace_back();
    }
    const std::uint32_t slot = unused_.back();
    unused_.pop_back();
    Running& of = piece_[slot];
    of.job = job;
    of.instructions_ps = piece.instructions_ps;
    of.separate_ps = piece.separate_ps;
    of.slots = piece.slots;
    of.left = piece.units;
    of.memory.assign(piece.memory.begin(), piece.memory.end());
    enter(slot, core);
    return static_cast<std::int64_t>(of.generation) << 32 | slot;
}

void SharedService::enter(std::uint32_t slot, std::size_t core) {
    ++core_[core].running;
    piece_[slot].core = static_cast<std::uint32_t>(core);
    piece_[slot].counted = now_;
    launch(slot);
}

// What is left of the piece, as a flow: rate in units per picosecond.
void SharedService::launch(std::uint32_t slot) {
    Running& of = piece_[slot];
    const UsedCore& core = core_[of.core];
    const std::size_t n = node_.size(), node = core.node;
    resource_.clear();
    coefficient_.clear();
    const auto need = [&](std::size_t resource, double each) {
        if (!(each > 0)) return;
        resource_.push_back(static_cast<std::int64_t>(resource));
        coefficient_.push_back(each);
    };
    double held = 0;
    for (const PieceMemory& m : of.memory) {
        const std::size_t home = m.home;
        need(home, m.read * machine_.read_ps[home] + m.written * machine_.write_ps[home]);
        held += m.read * (machine_.latency_ps[node * n + home] + node_[home].wait_ps);
        if (home == node || link_work_.empty()) continue;
        // Lines that are read come from home, written ones go there; requests go the other way.
        each_link(home, node, [&](std::size_t link) {
            need(n + link, m.read * static_cast<double>(machine_.data_ps[link]) +
                               m.written * static_cast<double>(machine_.request_ps[link]));
        });
        each_link(node, home, [&](std::size_t link) {
            need(n + link, m.read * static_cast<double>(machine_.request_ps[link]) +
                               m.written * static_cast<double>(machine_.data_ps[link]));
        });
    }
    if (held > 0) held /= of.slots;
    if (core.threads > 1) {
        const std::size_t first = n + link_work_.size() + 2 * of.core;
        need(first, of.instructions_ps + of.separate_ps);
        need(first + 1, held);
    }
    const double each = of.separate_ps + std::max(of.instructions_ps, held);
    const double cap = each > 0 ? 1.0 / each : infinity;
    of.flow = network_.start({{resource_, coefficient_, cap, 1.0}, of.left, 0.0});
    const std::size_t at = FlowNetwork::slot(of.flow);
    if (piece_of_.size() <= at) piece_of_.resize(at + 1);
    piece_of_[at] = slot;
}

// It runs no longer; what it did is counted already.
void SharedService::leave(std::uint32_t slot) {
    Running& of = piece_[slot];
    --core_[of.core].running;
    of.flow = -1;
    of.generation = (of.generation + 1) & 0x7FFFFFFF;
    unused_.push_back(slot);
}

void SharedService::move(Time now, std::int64_t piece, std::size_t core) {
    progress(now);
    const std::uint32_t slot = slot_of(piece);
    Running& of = piece_[slot];
    if (of.core == core) return;
    require_core(core);
    count_until(of, network_.cancel(of.flow));
    --core_[of.core].running;
    enter(slot, core);
}

double SharedService::cancel(Time now, std::int64_t piece) {
    progress(now);
    const std::uint32_t slot = slot_of(piece);
    count_until(piece_[slot], network_.cancel(piece_[slot].flow));
    leave(slot);
    return piece_[slot].left;
}

// Counts what it has done since it was counted last, now that so much is left of it.
void SharedService::count_until(Running& of, double left) {
    const double done = of.left - left;
    UsedCore& core = core_[of.core];
    core.busy += now_ - of.counted;
    of.left = left;
    of.counted = now_;
    for (const PieceMemory& m : of.memory) {
        Node& home = node_[m.home];
        const double read = done * m.read, written = done * m.written;
        home.read += read;
        home.written += written;
        const double work = read * machine_.read_ps[m.home] + written * machine_.write_ps[m.home];
        home.work += work;
        home.load.add(rounded_ps(work));
        if (m.home == core.node || link_work_.empty()) continue;
        each_link(m.home, core.node, [&](std::size_t link) {
            link_work_[link] += read * static_cast<double>(machine_.data_ps[link]) +
                                written * static_cast<double>(machine_.request_ps[link]);
        });
        each_link(core.node, m.home, [&](std::size_t link) {
            link_work_[link] += read * static_cast<double>(machine_.request_ps[link]) +
                                written * static_cast<double>(machine_.data_ps[link]);
        });
    }
}

void SharedService::count(Time now) {
    progress(now);
    count_all();
}

void SharedService::count_all() {
    for (Running& of : piece_)
        if (of.flow >= 0) count_until(of, network_.remaining(of.flow));
}

// Changes at one time are shared out at once, when time passes.
void SharedService::progress(Time now) {
    if (now != now_) advance(now);
}

// Ends of pieces up to now, and of the window under way.
void SharedService::advance(Time now) {
    now_ = now;
    completions_.clear();
    const auto time = static_cast<double>(now);
    if (network_.next_event() > time - 1)
        network_.advance_tick(time, completions_);
    else  // the caller has not looked in time
        network_.advance(time, completions_);
    if (next_ == ended_.size()) {
        ended_.clear();
        next_ = 0;
    }
    for (const Completion& completion : completions_) {
        const std::uint32_t slot = piece_of_[FlowNetwork::slot(completion.flow)];
        count_until(piece_[slot], 0);
        ended_.push_back(piece_[slot].job);
        leave(slot);
    }
    if (now >= window_end_) close_window();
}

// Latencies follow the loads of the window that is over, and pieces the latencies.
void SharedService::close_window() {
    window_end_ = now_ + LoadWindow::window;
    const std::size_t n = node_.size();
    count_all();
    bool any = false;
    changed_.assign(n, 0);
    for (std::size_t k = 0; k < n; ++k) {
        double load = 0;
        if (!node_[k].load.close(now_, load)) continue;
        const double idle_ps = machine_.latency_ps[k * n + k];
        const double wait_ps =
            (interpolated(load, machine_.curve.load, machine_.curve.ratio) - 1.0) * idle_ps;
        if (std::abs(wait_ps - node_[k].wait_ps) <= wait_tolerance * idle_ps) continue;
        node_[k].wait_ps = wait_ps;
        any = true;
        changed_[k] = 1;
    }
    if (!any) return;
    for (std::uint32_t slot = 0; slot < piece_.size(); ++slot) {
        Running& of = piece_[slot];
        const auto waits = [&](const PieceMemory& m) {
            return m.read > 0 && changed_[m.home] != 0;
        };
        if (of.flow < 0 || std::ranges::none_of(of.memory, waits)) continue;
        network_.cancel(of.flow);
        launch(slot);
    }
}

Time SharedService::next_change() {
    if (next_ < ended_.size()) return now_;
    if (network_.active() == 0) return never;
    const double time = network_.next_event();
    const Time end = time < far ? std::max(now_, static_cast<Time>(std::ceil(time))) : never;
    return std::min(end, window_end_);
}

bool SharedService::finish(Time now, std::uint64_t& job) {
    advance(now);
    if (next_ == ended_.size()) return false;
    job = ended_[next_++];
    return true;
}

double SharedService::rate(std::int64_t piece) {
    return network_.rate(piece_[slot_of(piece)].flow);
}

double SharedService::remaining(std::int64_t piece) {
    return network_.remaining(piece_[slot_of(piece)].flow);
}

}  // namespace numatwin
