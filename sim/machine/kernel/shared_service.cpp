#include "machine/kernel/shared_service.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace numatwin {

using service::is_amount;
using service::require;

namespace {
// Whole picoseconds are exact in doubles up to 2^53, two and a half hours.
constexpr double far = 0x1p53;
constexpr Time window = LoadWindow::window;
}  // namespace

SharedService::SharedService(ServiceMachine machine)
    : machine_((machine.check(), std::move(machine))),
      answer_ps_(machine_.answer_ps.empty() ? machine_.request_ps : machine_.answer_ps),
      routes_(machine_.entering, machine_.predecessor, static_cast<std::size_t>(machine_.vertices)),
      link_busy_(machine_.data_ps.size() + static_cast<std::size_t>(machine_.limits)),
      lines_(machine_.read_ps.size() * machine_.read_ps.size()),
      link_work_(machine_.data_ps.size()),
      link_wait_(machine_.data_ps.size()) {
    for (std::size_t k = 0; k < machine_.read_ps.size(); ++k)
        node_.push_back({MemoryHome(machine_, k)});
    for (std::size_t c = 0; c < machine_.core_node.size(); ++c) {
        UsedCore& core = core_.emplace_back();
        core.node = static_cast<std::uint32_t>(machine_.core_node[c]);
        core.threads = static_cast<std::uint32_t>(machine_.core_threads[c]);
    }
    for (std::size_t k = 0; k < node_.size() + link_busy_.size(); ++k) sharing_.add_resource();
}

std::uint32_t SharedService::demand(const PieceDemand& demand) {
    Numbers key = demand.checked(machine_);
    double lines = 0;
    for (const MemoryUse& m : demand.memory) lines += m.read + m.written;
    const auto number = static_cast<std::uint32_t>(demand_.size());
    const auto [entry, added] = demand_number_.emplace(std::move(key), number);
    if (added) {
        demand_.push_back({demand.instructions_ps,
                           demand.separate_ps,
                           lines > 0 ? lines : 1.0,
                           {demand.memory.begin(), demand.memory.end()},
                           {demand.loops.begin(), demand.loops.end()},
                           {demand.held.begin(), demand.held.end()}});
        class_of_.resize(demand_.size() * node_.size());
    }
    return entry->second;
}

// -- pieces

std::uint32_t SharedService::slot_of(std::int64_t name) const {
    const auto slot = static_cast<std::uint32_t>(name);
    if (name < 0 || slot >= piece_.size() || !piece_[slot].active ||
        piece_[slot].generation != static_cast<std::uint32_t>(name >> 32))
        throw std::out_of_range("no piece " + std::to_string(name) + " is running");
    return slot;
}

void SharedService::require_core(std::size_t core) const {
    require(core < core_.size(), "core", "one of the machine's");
    if (core_[core].running == core_[core].threads)
        throw std::logic_error("core " + std::to_string(core) + " has no thread left");
}

std::int64_t SharedService::start(Time now, std::size_t core, std::uint32_t demand, double units,
                                  std::uint64_t job) {
    require(is_amount(units), "units", "a finite number of at least 0");
    require(demand < demand_.size(), "demand", "a number that demand() has returned");
    advance(now);
    require_core(core);
    if (unused_.empty()) {
        unused_.push_back(static_cast<std::uint32_t>(piece_.size()));
        piece_.emplace_back();
    }
    const std::uint32_t slot = unused_.back();
    Piece& piece = piece_[slot];
    piece.job = job;
    piece.order = started_++;
    piece.demand = demand;
    piece.left = units * demand_[demand].lines;
    occupy(slot, core);
    unused_.pop_back();
    piece.active = true;
    ++running_;
    return static_cast<std::int64_t>(piece.generation) << 32 | slot;
}

void SharedService::move(Time now, std::int64_t name, std::size_t core) {
    advance(now);
    const std::uint32_t slot = slot_of(name);
    if (piece_[slot].core == core) return;
    require_core(core);
    vacate(slot);
    occupy(slot, core);
}

double SharedService::cancel(Time now, std::int64_t name) {
    advance(now);
    const std::uint32_t slot = slot_of(name);
    release(slot);
    return piece_[slot].left / demand_[piece_[slot].demand].lines;
}

double SharedService::rate(std::int64_t name) {
    const Piece& piece = piece_[slot_of(name)];
    share();
    return 1 / (class_[piece.class_index].pace * demand_[piece.demand].lines);
}

double SharedService::remaining(std::int64_t name) {
    const Piece& piece = piece_[slot_of(name)];
    const double left = piece.class_index == none
                            ? piece.left
                            : std::max(0.0, piece.end - class_[piece.class_index].clock_at(now_));
    return left / demand_[piece.demand].lines;
}

// The piece, of which `left` is left, is on a core from now on.
void SharedService::occupy(std::uint32_t slot, std::size_t core_index) {
    Piece& piece = piece_[slot];
    UsedCore& core = core_[core_index];
    piece.core = static_cast<std::uint32_t>(core_index);
    if (core.threads == 1) {
        join(slot, class_of(piece.demand, core.node, {}));
    } else {
        piece.class_index = none;
        core.piece.push_back(slot);
        change_core(piece.core);
    }
    core.count(now_);
    ++core.running;
}

void SharedService::vacate(std::uint32_t slot) {
    Piece& piece = piece_[slot];
    UsedCore& core = core_[piece.core];
    if (piece.class_index != none) quit(slot);
    core.count(now_);
    --core.running;
    if (core.threads == 1) return;
    std::erase(core.piece, slot);
    change_core(piece.core);
}

// The piece is over: its slot is another's from now on.
void SharedService::release(std::uint32_t slot) {
    vacate(slot);
    Piece& piece = piece_[slot];
    piece.active = false;
    piece.generation = (piece.generation + 1) & 0x7FFFFFFF;
    unused_.push_back(slot);
    --running_;
}

// -- classes

// The time that a unit's misses take a thread that has all of its core's slots.
double SharedService::held_ps(std::span<const MemoryUse> memory, std::size_t node,
                              bool loaded) const {
    const bool known = !machine_.stream_slots.empty();
    const double stream = known ? machine_.stream_slots[node] : ClassSharing::infinity;
    double held = 0;
    for (const MemoryUse& m : memory) {
        if (!(m.read > 0)) continue;
        const std::size_t pair = node * node_.size() + m.home;
        const MemoryHome& home = node_[m.home].home;
        const double wait_ps = loaded ? home.wait_ps() + before_links_ps(node, m.home) : 0.0;
        double each = m.read * (machine_.latency_ps[pair] + wait_ps) / m.slots;
        if (m.slots >= stream && machine_.line_max_ps[pair] > 0) {
            const double entry_ps = loaded ? home.entry_wait_ps() : 0.0;
            each = std::min(each, m.read * (machine_.line_max_ps[pair] + entry_ps / m.slots));
        }
        held += each;
    }
    return held;
}

// How long a line waits before links on its way from home.
double SharedService::before_links_ps(std::size_t node, std::size_t home) const {
    Time found = 0;
    if (links_wait_)
        routes_.each_link(home, node, [&](std::size_t link) { found += link_wait_[link]; });
    return static_cast<double>(found);
}

// What work does not hide of lines that are all read in order; 0 of others.
double SharedService::stall(std::span<const MemoryUse> memory, std::size_t node) const {
    if (machine_.stream_stall.empty() || !(machine_.stream_stall[node] > 0)) return 0;
    const double stream = machine_.stream_slots[node];
    const auto streams = [stream](const MemoryUse& m) { return m.slots >= stream; };
    return std::ranges::all_of(memory, streams) ? machine_.stream_stall[node] : 0.0;
}

// The time of a unit's instructions and misses; `slots`: the thread's part of its core's.
double SharedService::overlapped_ps(const Demand& d, std::size_t node, double slots) const {
    if (d.loops.empty())
        return overlapped(d.instructions_ps, held_ps(d.memory, node, true) / slots,
                          stall(d.memory, node));
    double sum = 0;
    for (const Loop& loop : d.loops)
        sum += overlapped(loop.instructions_ps, held_ps(loop.memory, node, true) / slots,
                          stall(loop.memory, node));
    return sum;
}

double SharedService::least_pace(const PieceClass& piece_class) const {
    const Demand& d = demand_[piece_class.demand];
    const double each = d.separate_ps + overlapped_ps(d, piece_class.node, piece_class.part.slots);
    return std::max(each, (d.instructions_ps + d.separate_ps) / piece_class.part.pipeline) /
           d.lines;
}

// What each thread of a core has of it, by those that run there now.
void SharedService::look_at_threads(UsedCore& core) {
    core.changed = false;
    parts_.clear();
    for (const std::uint32_t slot : core.piece) {
        const Demand& demand = demand_[piece_[slot].demand];
        parts_.add(demand.instructions_ps, demand.separate_ps,
                   held_ps(demand.memory, core.node, false), stall(demand.memory, core.node));
    }
    parts_.share();
    for (std::size_t k = 0; k < core.piece.size(); ++k) {
        const std::uint32_t slot = core.piece[k];
        const Index index = class_of(piece_[slot].demand, core.node, parts_[k]);
        if (index == piece_[slot].class_index) continue;
        if (piece_[slot].class_index != none) quit(slot);
        join(slot, index);
    }
}

SharedService::Index SharedService::class_of(std::uint32_t demand, std::uint32_t node,
                                             CorePart part) {
    std::vector<Index>& candidates = class_of_[demand * node_.size() + node];
    for (const Index index : candidates)
        if (class_[index].part == part) return index;
    return candidates.emplace_back(add_class(demand, node, part));
}

SharedService::Index SharedService::add_class(std::uint32_t demand, std::uint32_t node,
                                              CorePart part) {
    const Demand& d = demand_[demand];
    std::vector<ClassSharing::Need> needs;
    const auto need = [&](std::size_t resource, double time) {
        if (!(time > 0)) return;
        const auto same = std::ranges::find(needs, resource, &ClassSharing::Need::resource);
        if (same != needs.end())
            same->time += time / d.lines;
        else
            needs.push_back({static_cast<Index>(resource), time / d.lines});
    };
    for (const MemoryUse& m : d.memory) {
        need(m.home, m.read * machine_.read_ps[m.home] + m.written * machine_.write_ps[m.home]);
        each_wire(node, m, [&](std::size_t link, double time) { need(node_.size() + link, time); });
    }
    for (const auto& [lock, held_ps] : d.held)
        need(node_.size() + machine_.data_ps.size() + static_cast<std::size_t>(lock), held_ps);
    class_.push_back({demand, node, part});
    ends_.reserve(class_.size());
    return sharing_.add_class(needs);
}

void SharedService::change(Index index) {
    PieceClass& piece_class = class_[index];
    if (piece_class.changed) return;
    piece_class.changed = true;
    changed_.push_back(index);
}

void SharedService::join(std::uint32_t slot, Index index) {
    PieceClass& piece_class = class_[index];
    Piece& piece = piece_[slot];
    piece.class_index = index;
    piece.began = piece_class.clock_at(now_);
    piece.end = piece.began + piece.left;
    piece_class.add({piece.end, piece.order, slot}, piece.began);
    if (piece_class.member.front().piece == slot && piece_class.pace < ClassSharing::infinity)
        plan(index);
    change(index);
    if (piece_class.counted) return;
    piece_class.counted = true;
    window_.push_back(index);
}

// It leaves its class before its end.
void SharedService::quit(std::uint32_t slot) {
    Piece& piece = piece_[slot];
    PieceClass& piece_class = class_[piece.class_index];
    const double left = std::max(0.0, piece.end - piece_class.clock_at(now_));
    piece_class.remove(slot, piece.began, piece.left - left);
    plan(piece.class_index);
    change(piece.class_index);
    piece.class_index = none;
    piece.left = left;
}

// When the first of its members ends at its present pace.
void SharedService::plan(Index index) {
    const PieceClass& piece_class = class_[index];
    if (piece_class.member.empty()) return ends_.erase(index);
    const double end = piece_class.first_end(now_);
    if (end < far)
        ends_.set(index, end);
    else
        ends_.erase(index);
}

// Changes at one time are shared out at once, when time passes.
void SharedService::share() {
    for (const std::uint32_t core : changed_cores_) look_at_threads(core_[core]);
    changed_cores_.clear();
    if (changed_.empty() && !limited_) return;
    limited_ = false;
    for (const Index index : changed_) {
        PieceClass& piece_class = class_[index];
        piece_class.changed = false;
        sharing_.change(index, static_cast<std::uint32_t>(piece_class.member.size()),
                        least_pace(piece_class));
    }
    changed_.clear();
    for (const Index index : sharing_.share()) {
        PieceClass& piece_class = class_[index];
        piece_class.clock = piece_class.member.empty() ? 0.0 : piece_class.clock_at(now_);
        piece_class.since = now_;
        piece_class.pace = sharing_.pace(index);
        plan(index);
    }
}

// -- time

// Those whose time has come leave, by time and class.
void SharedService::take_ends() {
    while (!ends_.empty() && ends_.top().key <= static_cast<double>(now_)) {
        const Index index = ends_.top().index;
        PieceClass& piece_class = class_[index];
        const std::uint32_t slot = piece_class.member.front().piece;
        Piece& piece = piece_[slot];
        piece_class.remove_first(piece.began, piece.left);
        plan(index);
        change(index);
        piece.class_index = none;
        ended_.push_back(piece.job);
        release(slot);
    }
}

void SharedService::advance(Time now) {
    if (now > now_) {
        if (next_ == ended_.size()) {
            ended_.clear();
            next_ = 0;
        }
        while (running_ > 0) {
            const Time next = next_time();
            if (next >= now) break;
            now_ = next;
            take_ends();
            if (now_ == window_end_) close_window();
        }
        if (running_ == 0) rest(now);
        now_ = now;
    }
    take_ends();
    if (now_ == window_end_) close_window();
}

// Nothing runs up to now: windows without load are all alike.
void SharedService::rest(Time now) {
    for (int windows = 0; windows < 2 && window_end_ < now; ++windows) {
        now_ = window_end_;
        close_window();
    }
    if (window_end_ < now) window_end_ += (now - 1 - window_end_) / window * window + window;
}

// Latencies follow the loads of the window that is over, and pieces the latencies.
void SharedService::close_window() {
    window_end_ += window;
    for (const Index index : window_) {
        PieceClass& piece_class = class_[index];
        const Demand& d = demand_[piece_class.demand];
        const double served = piece_class.served(now_), lines = served - piece_class.marked,
                     units = lines / d.lines;
        piece_class.marked = served;
        for (const MemoryUse& m : d.memory)
            node_[m.home].home.use(m, units, m.home == piece_class.node);
        sharing_.each_need(index, [&](std::size_t resource, double time) {
            const std::size_t link = resource - node_.size();
            if (link < link_work_.size()) link_work_[link] += rounded_ps(lines * time);
        });
        if (!machine_.entries.empty()) wait_for_link(index, units);
    }
    bool any = false;
    for (std::size_t k = 0; k < node_.size(); ++k) {
        MemoryHome& home = node_[k].home;
        if (machine_.directory_in_memory && home.settle_directory()) {
            sharing_.limit(static_cast<Index>(k), home.room());
            limited_ = true;
        }
        node_[k].changed = home.settle_waits(machine_);
        any = any || node_[k].changed;
    }
    const bool links = settle_links();
    std::erase_if(window_, [&](Index index) {
        PieceClass& piece_class = class_[index];
        const auto waits = [&](const MemoryUse& m) {
            return m.read > 0 && (node_[m.home].changed || (links && m.home != piece_class.node));
        };
        if ((any || links) && std::ranges::any_of(demand_[piece_class.demand].memory, waits))
            change(index);
        piece_class.counted = !piece_class.member.empty();
        return !piece_class.counted;
    });
}

// Waits before links follow the loads of the window that is over, as those of controllers do.
// Returns whether any has changed.
bool SharedService::settle_links() {
    bool any = links_wait_ = false;
    const double latency_ps = machine_.latency_ps[0];
    for (std::size_t link = 0; link < link_work_.size(); ++link) {
        const double load =
            std::min(1.0, static_cast<double>(link_work_[link]) / static_cast<double>(window));
        link_work_[link] = 0;
        const Time before = link_wait_[link];
        const Time found = rounded_ps(settled_link_wait(machine_.data_ps[link], latency_ps, load,
                                                        static_cast<double>(before)));
        const double change = static_cast<double>(std::abs(found - before));
        if (change > MemoryHome::wait_tolerance * latency_ps) {
            link_wait_[link] = found;
            any = true;
        }
        links_wait_ = links_wait_ || link_wait_[link] > 0;
    }
    return any;
}

// How long lines that a class has read in a window waited for the link that bounds it now, on their
// way to the core.
void SharedService::wait_for_link(Index index, double units) {
    const PieceClass& piece_class = class_[index];
    if (piece_class.member.empty() || !(piece_class.pace < ClassSharing::infinity)) return;
    const Index binding = sharing_.binding(index);
    // Lines that wait for a limit of transfers have not been asked for yet.
    const std::size_t link = binding - node_.size(), links = machine_.data_ps.size();
    if (binding == ClassSharing::none || binding < node_.size() || link >= links) return;
    const Demand& d = demand_[piece_class.demand];
    double held = 0;
    for (const MemoryUse& m : d.memory)
        if (m.read > 0 && routes_.crosses(m.home, piece_class.node, link)) held += m.read / m.slots;
    const double longer_ps = (piece_class.pace - least_pace(piece_class)) * d.lines;
    if (!(held > 0) || !(longer_ps > 0)) return;
    const double wait_ps = longer_ps * piece_class.part.slots / held;
    for (const MemoryUse& m : d.memory)
        if (m.read > 0 && routes_.crosses(m.home, piece_class.node, link))
            node_[m.home].home.wait_for_link(units * m.read,
                                             wait_ps + before_links_ps(piece_class.node, m.home));
}

Time SharedService::next_time() {
    share();
    if (ends_.empty()) return window_end_;
    return std::min(static_cast<Time>(ends_.top().key), window_end_);
}

Time SharedService::next_change() {
    if (next_ < ended_.size()) return now_;
    return running_ == 0 ? never : next_time();
}

bool SharedService::finish(Time now, std::uint64_t& job) {
    advance(now);
    if (next_ == ended_.size()) return false;
    job = ended_[next_++];
    return true;
}

void SharedService::count(Time now) {
    advance(now);
    for (Node& node : node_) {
        node.read = node.written = 0;
        node.busy = static_cast<double>(node.home.updating());
    }
    std::ranges::fill(link_busy_, 0.0);
    std::ranges::fill(lines_, 0.0);
    for (const PieceClass& piece_class : class_) {
        const Demand& d = demand_[piece_class.demand];
        const double units = piece_class.served(now_) / d.lines;
        for (const MemoryUse& m : d.memory) {
            Node& home = node_[m.home];
            const double read = units * m.read, written = units * m.written;
            home.read += read;
            home.written += written;
            home.busy += read * machine_.read_ps[m.home] + written * machine_.write_ps[m.home];
            lines_[piece_class.node * node_.size() + m.home] += read + written;
            each_wire(piece_class.node, m,
                      [&](std::size_t link, double time) { link_busy_[link] += units * time; });
        }
    }
}

}  // namespace numatwin
