#include "systems/tasks/kernel/settled_service.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "machine/kernel/overlap.hpp"
#include "machine/kernel/service_machine.hpp"

namespace numatwin {
namespace {

constexpr double least_s = 1e-15;
constexpr double least_rate = 1e-300;
constexpr double copies_agree = 1e-5;  // relative
constexpr double rooms_agree = 1e-6;   // of a controller's time
constexpr double fall_least = 0.01;    // of what comes, for a step of Newton's method
constexpr double shortest_step = 0.1, longest_step = 20.0;  // in parts of a plain one

std::size_t at(std::int64_t position) {
    return static_cast<std::size_t>(position);
}

// Of points with rising x, level beyond the ends.
double interpolated_within(double value, const std::vector<double>& x,
                           const std::vector<double>& y) {
    if (value >= x.back()) return y.back();
    if (value <= x.front()) return y.front();
    const auto k = static_cast<std::size_t>(std::ranges::upper_bound(x, value) - x.begin());
    return y[k - 1] + (y[k] - y[k - 1]) / (x[k] - x[k - 1]) * (value - x[k - 1]);
}

}  // namespace

SettledService::SettledService(const ServiceSetup& setup)
    : of_(setup),
      kinds_(of_.node.size()),
      nodes_(of_.idle_s.size()),
      links_(of_.capacity.size() - std::min(of_.capacity.size(), of_.idle_s.size())),
      limited_(!of_.entries.empty() && links_ > 0),
      copies_(!of_.engine.empty()),
      updates_(!of_.update_lines.empty()),
      routes_(of_.entering, of_.predecessor,
              of_.entering.size() / std::max<std::size_t>(nodes_, 1)),
      before_link_s_(of_.line_s.size(), 0.0),
      before_links_s_(nodes_ * nodes_, 0.0) {
    const auto each = [this](const auto&... of_kinds) {
        return ((of_kinds.size() == kinds_) && ...);
    };
    const auto by_node = [this](const auto&... of_kinds) {
        return ((of_kinds.size() == kinds_ * nodes_) && ...);
    };
    const auto below = [](const std::vector<std::int64_t>& positions, std::size_t end) {
        return std::ranges::all_of(
            positions, [end](std::int64_t one) { return one < static_cast<std::int64_t>(end); });
    };
    const bool fits =
        each(of_.per_line, of_.instructions_s, of_.separate_s, of_.slots, of_.on_core) &&
        by_node(of_.read) && of_.latency_s.size() == nodes_ * nodes_ &&
        of_.use.size() == kinds_ * (nodes_ + links_) && of_.capacity.size() == nodes_ + links_ &&
        of_.cores.size() == nodes_ && of_.curve_under_way.size() == of_.curve_ratio.size() &&
        !of_.curve_ratio.empty() &&
        (of_.loop_first.empty() ||
         (of_.loop_first.size() == kinds_ + 1 && std::ranges::is_sorted(of_.loop_first) &&
          of_.loop_first.front() == 0 && at(of_.loop_first.back()) == of_.loop_slots.size() &&
          of_.loop_instructions_s.size() == of_.loop_slots.size() &&
          of_.loop_read.size() == of_.loop_slots.size() * nodes_)) &&
        (!updates_ || of_.update_lines.size() == nodes_) &&
        (!limited_ || (of_.entries.size() == nodes_ && of_.held_most_s.size() == nodes_)) &&
        of_.line_s.size() <= links_ && of_.entering.size() == of_.predecessor.size() &&
        of_.entering.size() % nodes_ == 0 && (of_.line_s.empty() || !of_.entering.empty()) &&
        of_.stream_slots.size() == nodes_ && of_.line_max_s.size() == nodes_ * nodes_ &&
        of_.stream_stall.size() == nodes_ &&
        (!copies_ || (each(of_.engine, of_.engine_s, of_.copied_slots) &&
                      by_node(of_.copied, of_.copied_latency_s) && !of_.contexts.empty())) &&
        std::ranges::all_of(of_.use, [](double use) { return use >= 0 && std::isfinite(use); }) &&
        below(of_.node, nodes_) && below(of_.engine, of_.contexts.size()) &&
        std::ranges::all_of(of_.node, [](std::int64_t node) { return node >= 0; });
    if (!fits) throw std::invalid_argument("service: columns do not fit together");
    for (std::vector<double>* of_kinds :
         {&entry_s, &entries_per_s, &held_s, &copy_s, &work_s, &sharing_, &alone_s_, &before_s_,
          &active_, &part_, &slower_})
        of_kinds->assign(kinds_, 0.0);
    for (std::vector<double>* of_nodes : {&load, &wait_s, &entry_wait_s, &came_, &waited_, &fall_,
                                          &near_, &last_wait_s_, &last_step_s_})
        of_nodes->assign(nodes_, 0.0);
    std::vector<char> known(before_links_s_.size(), 0);
    for (std::size_t k = 0; k < of_.read.size(); ++k) {
        const std::size_t way = at(of_.node[k / nodes_]) * nodes_ + k % nodes_;
        if (of_.read[k] > 0 && !known[way]++) ways_.push_back(way);
    }
    longer_.assign(nodes_, 1.0);
    room.assign(nodes_, 1.0);
    capacity_ = of_.capacity;
    used.assign(nodes_ + links_, 0.0);
    total_.assign(of_.contexts.size(), 0.0);
}

std::span<const double> SettledService::row(const std::vector<double>& matrix,
                                            std::size_t kind) const {
    return {matrix.data() + kind * nodes_, nodes_};
}

void SettledService::solve(std::span<const double> count) {
    if (count.size() != kinds_) throw std::invalid_argument("service: columns do not fit together");
    choose(count);
    std::ranges::fill(copy_s, 0.0);
    std::vector<double> seen_s, seen_entry_s;  // waits that the last round began with
    for (std::int64_t round = 1;; ++round) {
        seen_s = wait_s;
        seen_entry_s = entry_wait_s;
        take_alone(count);
        share(count);
        double change = std::max(wait(round), wait_before_links());
        if (limited_ && !running_.empty())
            change = std::max(change, wait_for_entries(count, round <= of_.newton_rounds));
        bool settled = change <= of_.tolerance_s;
        if (updates_) settled = update_directories() <= rooms_agree && settled;
        for (std::size_t f = 0; f < kinds_ && settled; ++f)
            settled = std::abs(copy_s[f] - before_s_[f]) <= copies_agree * std::abs(before_s_[f]);
        if (settled || round >= of_.rounds_max) break;
    }
    // Kinds of which none runs change nothing: they follow at the end.
    std::swap(seen_s, wait_s);
    std::swap(seen_entry_s, entry_wait_s);
    for (std::size_t f = 0; f < kinds_; ++f)
        if (!copies_ && !(count[f] > 0)) take_alone(f);
    std::swap(seen_s, wait_s);
    std::swap(seen_entry_s, entry_wait_s);
    entry_s = alone_s_;
    std::ranges::fill(entries_per_s, 0.0);
    for (std::size_t r = 0; r < running_.size(); ++r) {
        const std::size_t f = running_[r];
        entry_s[f] = count[f] * of_.per_line[f] / std::max(rate_[r], least_rate);
        entries_per_s[f] = rate_[r] / of_.per_line[f];
    }
}

// The kinds that run, with what they use; how much longer instructions take where threads share
// cores.
void SettledService::choose(std::span<const double> count) {
    std::vector<double> on(nodes_, 0.0);
    std::vector<std::size_t> running;
    for (std::size_t f = 0; f < kinds_; ++f) {
        if (of_.on_core[f]) on[at(of_.node[f])] += count[f];
        if (count[f] > 0) running.push_back(f);
    }
    for (std::size_t f = 0; f < kinds_; ++f) {
        const std::size_t node = at(of_.node[f]);
        const double longer = on[node] / std::max(of_.cores[node], 1.0);
        sharing_[f] = of_.on_core[f] ? std::max(longer, 1.0) : 1.0;
    }
    if (running == running_) return;
    const std::size_t columns = nodes_ + links_;
    running_ = std::move(running);
    row_ptr_.assign(1, 0);
    resource_.clear();
    coefficient_.clear();
    for (const std::size_t f : running_) {
        for (std::size_t r = 0; r < columns; ++r) {
            const double use = of_.use[f * columns + r];
            if (use == 0) continue;
            resource_.push_back(static_cast<std::int64_t>(r));
            coefficient_.push_back(use);
        }
        row_ptr_.push_back(static_cast<std::int64_t>(resource_.size()));
    }
    for (std::vector<double>* of_running : {&cap_, &weight_, &rate_})
        of_running->resize(running_.size());
    binding_.resize(running_.size());
}

// Of lines of a kind, so many of them at a time, with the present waits.
double SettledService::misses_s(std::size_t kind, std::span<const double> read,
                                double slots) const {
    const std::size_t node = at(of_.node[kind]);
    const auto latency_s = row(of_.latency_s, node), links_s = row(before_links_s_, node);
    const bool streams = slots >= of_.stream_slots[node];
    double sum = 0.0;
    for (std::size_t home = 0; home < nodes_; ++home) {
        if (read[home] == 0) continue;
        double line_s = (latency_s[home] + wait_s[home] + links_s[home]) / slots;
        if (streams) line_s = std::min(line_s, of_.line_max_s[node * nodes_ + home]);
        sum += read[home] * (line_s + entry_wait_s[home] / slots);
    }
    return sum;
}

// Instructions and misses of an entry, which overlap within each of its loops. Threads of a core
// share its miss slots in equal parts.
double SettledService::overlapped_s(std::size_t kind) const {
    const bool several = !of_.loop_first.empty() && of_.loop_first[kind] < of_.loop_first[kind + 1];
    const std::size_t node = at(of_.node[kind]);
    const auto stall = [&](double slots) {
        return slots >= of_.stream_slots[node] ? of_.stream_stall[node] : 0.0;
    };
    if (!several)
        return overlapped(of_.instructions_s[kind], held_s[kind] * sharing_[kind],
                          stall(of_.slots[kind]));
    double sum = 0.0;
    for (std::size_t k = at(of_.loop_first[kind]); k < at(of_.loop_first[kind + 1]); ++k)
        sum += overlapped(of_.loop_instructions_s[k],
                          misses_s(kind, row(of_.loop_read, k), of_.loop_slots[k]) * sharing_[kind],
                          stall(of_.loop_slots[k]));
    return sum;
}

// What an entry takes with the present waits, if no resource were full. Threads of a core share its
// pipeline, too.
void SettledService::take_alone(std::size_t f) {
    held_s[f] = misses_s(f, row(of_.read, f), of_.slots[f]);
    work_s[f] = of_.separate_s[f] + overlapped_s(f);
    work_s[f] = std::max(work_s[f], (of_.instructions_s[f] + of_.separate_s[f]) * sharing_[f]);
    alone_s_[f] = std::max(work_s[f], least_s);
}

// Of kinds that run; of all, where copies of theirs are to be known.
void SettledService::take_alone(std::span<const double> count) {
    before_s_ = copy_s;
    if (!copies_) {
        for (const std::size_t f : running_) take_alone(f);
        return;
    }
    for (std::size_t f = 0; f < kinds_; ++f) take_alone(f);
    copy(count);
    for (std::size_t f = 0; f < kinds_; ++f) alone_s_[f] = std::max(alone_s_[f], copy_s[f]);
}

// The time of an entry's copy, but for links. Copies under way share an engine's time in equal
// parts. How many are under way follows from how long copies take (0 where that is not known yet)
// beside the work.
void SettledService::copy(std::span<const double> count) {
    std::ranges::fill(total_, 0.0);
    for (std::size_t f = 0; f < kinds_; ++f) {
        const double longest = std::max(before_s_[f], work_s[f]);
        part_[f] = longest > 0 ? before_s_[f] / longest : 1.0;
        active_[f] = of_.engine[f] < 0 ? 0.0 : count[f] * part_[f];
        if (of_.engine[f] >= 0) total_[at(of_.engine[f])] += active_[f];
    }
    for (std::size_t f = 0; f < kinds_; ++f) {
        if (of_.engine[f] < 0) continue;
        const auto read = row(of_.copied, f), latency_s = row(of_.copied_latency_s, f);
        double lines_s = 0.0;
        for (std::size_t home = 0; home < nodes_; ++home)
            lines_s += read[home] * (latency_s[home] + wait_s[home]);
        const double total = total_[at(of_.engine[f])], contexts = of_.contexts[at(of_.engine[f])];
        const double own = std::min(active_[f], part_[f]);
        const double others = std::min(std::max(total - own, 0.0), contexts - 1.0);
        const double waiting = std::max(total / contexts, 1.0);
        const double alone =
            std::max(of_.engine_s[f] * (1.0 + others), lines_s / of_.copied_slots[f]) * waiting;
        copy_s[f] = before_s_[f] > 0 ? 0.5 * (alone + before_s_[f]) : alone;
    }
}

// Max-min fair shares, in lines per second of a task.
void SettledService::share(std::span<const double> count) {
    std::ranges::fill(used, 0.0);
    if (!running_.empty()) {
        for (std::size_t r = 0; r < running_.size(); ++r) {
            const std::size_t f = running_[r];
            cap_[r] = count[f] * of_.per_line[f] / alone_s_[f];
            if (!(cap_[r] >= 0)) throw std::invalid_argument("service: a time is no number");
            weight_[r] = count[f];
        }
        const MaxMinProblem problem{capacity_, row_ptr_, resource_, coefficient_, cap_, weight_};
        solver_.solve(problem, {rate_, binding_, used});
    }
    for (std::size_t node = 0; node < nodes_; ++node) {
        const double part = used[node] / capacity_[node];  // of no capacity: NaN where unused
        load[node] = std::isnan(part) ? 0.0 : std::min(part, 1.0);
    }
}

// Waits of controllers at which as many lines under way make the load that waits so long: at first
// by the secant method, since with a full controller each round comes nearer by a tenth only.
double SettledService::wait(std::int64_t round) {
    double change = 0.0;
    for (std::size_t node = 0; node < nodes_; ++node) {
        const double under_way = load[node] * (1.0 + wait_s[node] / of_.idle_s[node]);
        const double ratio = interpolated_within(under_way, of_.curve_under_way, of_.curve_ratio);
        const double step_s = (ratio - 1.0) * of_.idle_s[node] - wait_s[node];
        const double most_s = (of_.curve_ratio.back() - 1.0) * of_.idle_s[node];
        double& longer = longer_[node];
        if (round > 1) longer = (wait_s[node] - last_wait_s_[node]) / (last_step_s_[node] - step_s);
        if (!(longer > shortest_step) || round > of_.newton_rounds) longer = 1.0;
        longer = std::min(longer, longest_step);
        change = std::max(change, std::abs(step_s));
        last_wait_s_[node] = wait_s[node];
        last_step_s_[node] = step_s;
        wait_s[node] = std::clamp(wait_s[node] + longer * step_s, 0.0, most_s);
    }
    return change;
}

// Waits of lines before links, likewise; on each way that lines take, their sum.
double SettledService::wait_before_links() {
    double change = 0.0;
    for (std::size_t link = 0; link < of_.line_s.size(); ++link) {
        const double load_of_link = std::min(used[nodes_ + link] / capacity_[nodes_ + link], 1.0);
        const double found_s =
            settled_link_wait(of_.line_s[link], of_.idle_s[0], load_of_link, before_link_s_[link]);
        change = std::max(change, std::abs(found_s - before_link_s_[link]));
        before_link_s_[link] = found_s;
    }
    if (!(change > 0)) return change;
    for (const std::size_t way : ways_) {
        double& sum = before_links_s_[way];
        sum = 0.0;
        routes_.each_link(way % nodes_, way / nodes_,
                          [&](std::size_t link) { sum += before_link_s_[link]; });
    }
    return change;
}

// Directories that are kept with the lines in memory: what their updates leave of controllers'
// time, half of the way from what they left before. Of lines that near readers read, others had the
// part that others read, and the other way round; each such change is a write.
double SettledService::update_directories() {
    for (std::vector<double>* sums : {&came_, &near_}) std::ranges::fill(*sums, 0.0);
    for (std::size_t r = 0; r < running_.size(); ++r) {
        const std::size_t f = running_[r];
        const auto read = row(of_.read, f);
        const double entries = rate_[r] / of_.per_line[f];
        for (std::size_t home = 0; home < nodes_; ++home) came_[home] += entries * read[home];
        near_[at(of_.node[f])] += entries * read[at(of_.node[f])];
    }
    double change = 0.0;
    for (std::size_t home = 0; home < nodes_; ++home) {
        const double far = came_[home] - near_[home];
        double found = 1.0;
        if (came_[home] > 0 && used[home] > 0) {
            const double updates = 2.0 * near_[home] * std::max(far, 0.0) / came_[home];
            found = used[home] / (used[home] + updates * of_.update_lines[home]);
        }
        change = std::max(change, std::abs(found - room[home]));
        room[home] += 0.5 * (found - room[home]);
        capacity_[home] = of_.capacity[home] * room[home];
    }
    return change;
}

// Waits for entries of home agents, nearer to those with which lines have room: a step of Newton's
// method, or one that always gets nearer. A kind that waits for no resource does fewer entries the
// longer its lines wait; one that a link binds holds entries while it waits for the link.
double SettledService::wait_for_entries(std::span<const double> count, bool newton) {
    for (std::vector<double>* sums : {&came_, &waited_, &fall_}) std::ranges::fill(*sums, 0.0);
    for (std::size_t r = 0; r < running_.size(); ++r) {
        const std::size_t f = running_[r];
        const auto read = row(of_.read, f);
        const double entries = rate_[r] / of_.per_line[f];
        const double slots = of_.slots[f] / sharing_[f];  // of a thread
        const bool stalled = binding_[r] < 0 && held_s[f] >= of_.instructions_s[f];
        slower_[f] = stalled ? entries / slots / alone_s_[f] : 0.0;
        for (std::size_t home = 0; home < nodes_; ++home) came_[home] += entries * read[home];
        if (binding_[r] < static_cast<std::int64_t>(nodes_)) continue;
        const std::size_t link = at(binding_[r]) - nodes_;
        const auto crosses = [&](std::size_t home) {
            return read[home] > 0 && routes_.crosses(home, at(of_.node[f]), link);
        };
        double crossing = 0.0;
        for (std::size_t home = 0; home < nodes_; ++home)
            crossing += crosses(home) ? read[home] : 0;
        const double longer_s = count[f] / std::max(entries, least_rate) - alone_s_[f];
        if (!(crossing > 0) || !(longer_s > 0)) continue;
        const double line_s = longer_s * slots / crossing;
        for (std::size_t home = 0; home < nodes_; ++home) {
            if (!crosses(home)) continue;
            waited_[home] +=
                entries * (line_s + row(before_links_s_, at(of_.node[f]))[home]) * read[home];
            fall_[home] += entries * read[home];
        }
    }
    double change = 0.0;
    for (std::size_t home = 0; home < nodes_; ++home) {
        const double before_s = entry_wait_s[home];
        double found_s = 0.0;
        if (of_.entries[home] > 0 && came_[home] > 0 && (waited_[home] > 0 || before_s > 0)) {
            const double held = std::min(of_.idle_s[home] + wait_s[home], of_.held_most_s[home]);
            const double beyond = came_[home] * held + waited_[home] - of_.entries[home];
            double fall = fall_[home];
            for (const std::size_t f : running_) {
                const double read = of_.read[f * nodes_ + home];
                fall += held * slower_[f] * read * read;
            }
            if (!(fall > fall_least * came_[home]) || !newton) fall = came_[home];
            found_s = std::max(before_s + beyond / fall, 0.0);
        }
        change = std::max(change, std::abs(found_s - before_s));
        entry_wait_s[home] = found_s;
    }
    return change;
}

}  // namespace numatwin
