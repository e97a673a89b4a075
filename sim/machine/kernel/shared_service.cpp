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
      data_ps_(machine_.data_ps.begin(), machine_.data_ps.end()),
      request_ps_(machine_.request_ps.begin(), machine_.request_ps.end()),
      hop_(machine_.entering.size()),
      vertices_(static_cast<std::size_t>(machine_.vertices)),
      node_(machine_.read_ps.size()),
      link_busy_(data_ps_.size()),
      lines_(node_.size() * node_.size()) {
    for (std::size_t k = 0; k < hop_.size(); ++k)
        hop_[k] = {static_cast<std::uint32_t>(machine_.entering[k]),
                   static_cast<std::uint32_t>(machine_.predecessor[k])};
    for (std::size_t c = 0; c < machine_.core_node.size(); ++c) {
        UsedCore& core = core_.emplace_back();
        core.node = static_cast<std::uint32_t>(machine_.core_node[c]);
        core.threads = static_cast<std::uint32_t>(machine_.core_threads[c]);
    }
    for (std::size_t k = 0; k < node_.size() + data_ps_.size(); ++k) sharing_.add_resource();
}

std::uint32_t SharedService::demand(const PieceDemand& of) {
    require(is_amount(of.instructions_ps), "instructions_ps", "a time of at least 0");
    require(is_amount(of.separate_ps), "separate_ps", "a time of at least 0");
    double lines = 0;
    bool takes_time = of.instructions_ps + of.separate_ps > 0;
    Numbers key{of.instructions_ps, of.separate_ps};
    for (const MemoryUse& m : of.memory) {
        require(m.home < node_.size(), "memory", "homes that are nodes");
        require(is_amount(m.read) && is_amount(m.written), "memory", "lines of at least 0");
        require(m.slots > 0 || m.read == 0, "slots", "more than 0 where lines are read");
        const double latency_ps = machine_.latency_ps[m.home * node_.size() + m.home];
        takes_time = takes_time || (m.read > 0 && machine_.read_ps[m.home] + latency_ps > 0);
        lines += m.read + m.written;
        key.insert(key.end(), {static_cast<double>(m.home), m.read, m.written, m.slots});
    }
    require(takes_time, "demand", "instructions, or lines to read, that take time");
    const auto number = static_cast<std::uint32_t>(demand_.size());
    const auto [at, added] = demand_number_.emplace(std::move(key), number);
    if (added) {
        demand_.push_back({of.instructions_ps,
                           of.separate_ps,
                           lines > 0 ? lines : 1.0,
                           {of.memory.begin(), of.memory.end()}});
        class_of_.resize(demand_.size() * node_.size());
    }
    return at->second;
}

// -- pieces

std::uint32_t SharedService::slot_of(std::int64_t piece) const {
    const auto slot = static_cast<std::uint32_t>(piece);
    if (piece < 0 || slot >= piece_.size() || !piece_[slot].active ||
        piece_[slot].generation != static_cast<std::uint32_t>(piece >> 32))
        throw std::out_of_range("no piece " + std::to_string(piece) + " is running");
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
    Running& of = piece_[slot];
    of.job = job;
    of.order = started_++;
    of.demand = demand;
    of.left = units * demand_[demand].lines;
    occupy(slot, core);
    unused_.pop_back();
    of.active = true;
    ++running_;
    return static_cast<std::int64_t>(of.generation) << 32 | slot;
}

void SharedService::move(Time now, std::int64_t piece, std::size_t core) {
    advance(now);
    const std::uint32_t slot = slot_of(piece);
    if (piece_[slot].core == core) return;
    require_core(core);
    vacate(slot);
    occupy(slot, core);
}

double SharedService::cancel(Time now, std::int64_t piece) {
    advance(now);
    const std::uint32_t slot = slot_of(piece);
    Running& of = piece_[slot];
    vacate(slot);
    of.active = false;
    of.generation = (of.generation + 1) & 0x7FFFFFFF;
    unused_.push_back(slot);
    --running_;
    return of.left / demand_[of.demand].lines;
}

double SharedService::rate(std::int64_t piece) {
    const Running& of = piece_[slot_of(piece)];
    share();
    return 1 / (class_[of.of].pace * demand_[of.demand].lines);
}

double SharedService::remaining(std::int64_t piece) {
    const Running& of = piece_[slot_of(piece)];
    const double left = of.of == none ? of.left : std::max(0.0, of.end - clock_of(class_[of.of]));
    return left / demand_[of.demand].lines;
}

// The piece, of which `left` is left, is on a core from now on.
void SharedService::occupy(std::uint32_t slot, std::size_t at) {
    Running& of = piece_[slot];
    UsedCore& core = core_[at];
    of.core = static_cast<std::uint32_t>(at);
    if (core.threads == 1) {
        join(slot, class_of(of.demand, core.node, {}));
    } else {
        of.of = none;
        core.piece.push_back(slot);
        if (!core.changed) changed_cores_.push_back(of.core);
        core.changed = true;
    }
    core.busy += core.running * (now_ - core.counted);
    core.counted = now_;
    ++core.running;
}

void SharedService::vacate(std::uint32_t slot) {
    Running& of = piece_[slot];
    UsedCore& core = core_[of.core];
    if (of.of != none) quit(slot);
    core.busy += core.running * (now_ - core.counted);
    core.counted = now_;
    --core.running;
    if (core.threads == 1) return;
    std::erase(core.piece, slot);
    if (!core.changed) changed_cores_.push_back(of.core);
    core.changed = true;
}

// -- classes

// The time that a unit's misses take a thread that has all of its core's slots.
double SharedService::held_ps(const Demand& demand, std::size_t node, bool loaded) const {
    double held = 0;
    for (const MemoryUse& m : demand.memory) {
        const double wait_ps = loaded ? node_[m.home].wait_ps + node_[m.home].entry_wait_ps : 0.0;
        if (m.read > 0)
            held +=
                m.read * (machine_.latency_ps[node * node_.size() + m.home] + wait_ps) / m.slots;
    }
    return held;
}

double SharedService::least_pace(const Class& of) const {
    const Demand& d = demand_[of.demand];
    const double held = held_ps(d, of.node, true) / of.part.slots;
    const double each = d.separate_ps + std::max(d.instructions_ps, held);
    return std::max(each, (d.instructions_ps + d.separate_ps) / of.part.pipeline) / d.lines;
}

// Who needs more than this part of what threads share is limited to it; 1 if all is enough.
double SharedService::equal_part(double all) {
    std::ranges::sort(sorted_);
    auto others = static_cast<double>(sorted_.size());
    for (const double need : sorted_) {
        if (need > all / others) return all / others;
        all -= need;
        others -= 1;
    }
    return 1;
}

// What a thread has at most: of slots that suffice without load, its part of what `all` need.
double SharedService::part_of_slots(double need, double all, double most) {
    if (all <= 1) return need > 0 ? need / all : 1;
    return need > most ? most : 1;
}

// What each thread of a core has of it, by those that run there now.
void SharedService::look_at_threads(UsedCore& core) {
    core.changed = false;
    need_.clear();
    for (const std::uint32_t slot : core.piece) {
        const Demand& d = demand_[piece_[slot].demand];
        const double held = held_ps(d, core.node, false);
        const double each = d.separate_ps + std::max(d.instructions_ps, held);
        need_.push_back(each > 0 ? CorePart{(d.instructions_ps + d.separate_ps) / each, held / each}
                                 : CorePart{0, 0});
    }
    CorePart most;
    double slots = 0;  // that all need
    for (const CorePart& need : need_) slots += need.slots;
    if (need_.size() > 1) {
        sorted_.clear();
        for (const CorePart& need : need_) sorted_.push_back(need.pipeline);
        most.pipeline = equal_part(machine_.smt_throughput);
        sorted_.clear();
        for (const CorePart& need : need_) sorted_.push_back(need.slots);
        most.slots = equal_part(1);
    }
    for (std::size_t k = 0; k < need_.size(); ++k) {
        const std::uint32_t slot = core.piece[k];
        const CorePart part{need_[k].pipeline > most.pipeline ? most.pipeline : 1,
                            part_of_slots(need_[k].slots, slots, most.slots)};
        const Index of = class_of(piece_[slot].demand, core.node, part);
        if (of == piece_[slot].of) continue;
        if (piece_[slot].of != none) quit(slot);
        join(slot, of);
    }
}

SharedService::Index SharedService::class_of(std::uint32_t demand, std::uint32_t node,
                                             CorePart part) {
    std::vector<Index>& found = class_of_[demand * node_.size() + node];
    for (const Index of : found)
        if (class_[of].part == part) return of;
    const Index of = add_class(demand, node, part);
    found.push_back(of);
    return of;
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
    Class& of = class_.emplace_back();
    of.demand = demand;
    of.node = node;
    of.part = part;
    ends_.reserve(class_.size());
    return sharing_.add_class(needs);
}

void SharedService::change(Index index) {
    Class& of = class_[index];
    if (of.changed) return;
    of.changed = true;
    changed_.push_back(index);
}

void SharedService::join(std::uint32_t slot, Index index) {
    Class& of = class_[index];
    Running& piece = piece_[slot];
    piece.of = index;
    piece.began = clock_of(of);
    piece.end = piece.began + piece.left;
    of.begun += piece.began;
    of.member.push_back({piece.end, piece.order, slot});
    std::push_heap(of.member.begin(), of.member.end(), later);
    if (of.member.front().piece == slot && of.pace < ClassSharing::infinity) plan(index);
    change(index);
    if (of.counted) return;
    of.counted = true;
    window_.push_back(index);
}

// It leaves its class before its end.
void SharedService::quit(std::uint32_t slot) {
    Running& piece = piece_[slot];
    Class& of = class_[piece.of];
    const double left = std::max(0.0, piece.end - clock_of(of));
    of.done += piece.left - left;
    of.begun -= piece.began;
    std::erase_if(of.member, [&](const Member& member) { return member.piece == slot; });
    std::make_heap(of.member.begin(), of.member.end(), later);
    if (of.member.empty()) of.begun = 0;
    plan(piece.of);
    change(piece.of);
    piece.of = none;
    piece.left = left;
}

// When the first of its members ends at its present pace.
void SharedService::plan(Index index) {
    const Class& of = class_[index];
    if (of.member.empty()) return ends_.erase(index);
    const double wait = std::ceil((of.member.front().end - of.clock) * of.pace);
    const double end = std::max(static_cast<double>(of.since) + wait, static_cast<double>(now_));
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
        Class& of = class_[index];
        of.changed = false;
        sharing_.change(index, static_cast<std::uint32_t>(of.member.size()), least_pace(of));
    }
    changed_.clear();
    for (const Index index : sharing_.share()) {
        Class& of = class_[index];
        of.clock = of.member.empty() ? 0.0 : clock_of(of);
        of.since = now_;
        of.pace = sharing_.pace(index);
        plan(index);
    }
}

// -- time

// Those whose time has come leave, by time and class.
void SharedService::take_ends() {
    while (!ends_.empty() && ends_.top().key <= static_cast<double>(now_)) {
        const Index index = ends_.top().index;
        Class& of = class_[index];
        std::pop_heap(of.member.begin(), of.member.end(), later);
        const std::uint32_t slot = of.member.back().piece;
        of.member.pop_back();
        Running& piece = piece_[slot];
        of.done += piece.left;
        of.begun = of.member.empty() ? 0.0 : of.begun - piece.began;
        plan(index);
        change(index);
        piece.of = none;
        ended_.push_back(piece.job);
        vacate(slot);
        piece.active = false;
        piece.generation = (piece.generation + 1) & 0x7FFFFFFF;
        unused_.push_back(slot);
        --running_;
    }
}

void SharedService::advance(Time now) {
    if (now > now_) {
        if (next_ == ended_.size()) {
            ended_.clear();
            next_ = 0;
        }
        while (running_ > 0) {
            const Time at = next_time();
            if (at >= now) break;
            now_ = at;
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
        Class& of = class_[index];
        const double lines = served(of), units = (lines - of.marked) / demand_[of.demand].lines;
        of.marked = lines;
        for (const MemoryUse& m : demand_[of.demand].memory) {
            Node& home = node_[m.home];
            home.work += rounded_ps(units * (m.read * machine_.read_ps[m.home] +
                                             m.written * machine_.write_ps[m.home]));
            (m.home == of.node ? home.near : home.far) += units * m.read;
        }
        if (!machine_.entries.empty()) hold_entries(index, units);
    }
    bool any = false;
    for (std::size_t k = 0; k < node_.size(); ++k) {
        if (machine_.directory_in_memory) settle_directory(k);
        const bool of_controller = settle(k);
        const bool of_entries = settle_entries(k);
        node_[k].changed = of_controller || of_entries;
        any = any || node_[k].changed;
    }
    const auto waits = [&](const MemoryUse& m) { return m.read > 0 && node_[m.home].changed; };
    std::erase_if(window_, [&](Index index) {
        Class& of = class_[index];
        if (any && std::ranges::any_of(demand_[of.demand].memory, waits)) change(index);
        of.counted = !of.member.empty();
        return !of.counted;
    });
}

// What the directory's updates took in the window, and leave in the next.
void SharedService::settle_directory(std::size_t k) {
    Node& node = node_[k];
    const double near = node.near, far = node.far;
    node.near = node.far = 0;
    const double updates = near + far > 0 ? 2 * near * far / (near + far) : 0.0;
    const Time updating = rounded_ps(updates * machine_.write_ps[k]);
    const double all = static_cast<double>(node.work + updating);
    const double room = node.work > 0 ? static_cast<double>(node.work) / all : 1.0;
    const Time fit = std::max<Time>(std::min(updating, window - node.work), 0);
    node.work += fit;
    node.updating += fit;
    if (std::abs(room - node.room) <= room_tolerance && !(room == 1 && node.room < 1)) return;
    node.room = room;
    sharing_.limit(static_cast<Index>(k), room);
    limited_ = true;
}

// A controller's latency follows its load. Returns whether it has changed.
bool SharedService::settle(std::size_t k) {
    Node& node = node_[k];
    const double idle_ps = machine_.latency_ps[k * node_.size() + k];
    const double load = std::min(1.0, static_cast<double>(node.work) / static_cast<double>(window));
    node.work = 0;
    if (!(idle_ps > 0)) return false;
    const double ratio = settled_ratio(machine_, load * (1 + node.wait_ps / idle_ps));
    const double wait_ps = (ratio - 1) * idle_ps;
    if (std::abs(wait_ps - node.wait_ps) <= wait_tolerance * idle_ps) return false;
    node.wait_ps = wait_ps;
    return true;
}

// What a class has read in a window, and how long these lines waited for the link that bounds it
// now, on their way to the core.
void SharedService::hold_entries(Index index, double units) {
    const Class& of = class_[index];
    const Demand& d = demand_[of.demand];
    for (const MemoryUse& m : d.memory) node_[m.home].came += units * m.read;
    if (of.member.empty() || !(of.pace < ClassSharing::infinity)) return;
    const Index binding = sharing_.binding(index);
    if (binding == ClassSharing::none || binding < node_.size()) return;
    const std::size_t link = binding - node_.size();
    double held = 0;
    for (const MemoryUse& m : d.memory)
        if (m.read > 0 && crosses(m.home, of.node, link)) held += m.read / m.slots;
    const double longer_ps = (of.pace - least_pace(of)) * d.lines;
    if (!(held > 0) || !(longer_ps > 0)) return;
    const double wait_ps = longer_ps * of.part.slots / held;
    for (const MemoryUse& m : d.memory)
        if (m.read > 0 && crosses(m.home, of.node, link))
            node_[m.home].waited += units * m.read * wait_ps;
}

// The wait for entries follows how many are held. Returns whether it has changed.
bool SharedService::settle_entries(std::size_t k) {
    if (machine_.entries.empty() || !(machine_.entries[k] > 0)) return false;
    Node& node = node_[k];
    const double came = node.came, waited = node.waited, entries = machine_.entries[k];
    node.came = node.waited = 0;
    if (waited == 0 && node.entry_wait_ps == 0) return false;
    const double idle_ps = machine_.latency_ps[k * node_.size() + k];
    const double all_ps = entries * machine_.read_ps[k];
    double held_ps = idle_ps + node.wait_ps;
    if (all_ps > 0) held_ps = std::min(held_ps, all_ps);
    double wait_ps = 0;
    if (came > 0) {
        const double room = entries * static_cast<double>(window);
        wait_ps = std::max(0.0, node.entry_wait_ps + (came * held_ps + waited - room) / came);
    }
    if (wait_ps == node.entry_wait_ps) return false;
    if (wait_ps > 0 && std::abs(wait_ps - node.entry_wait_ps) <= wait_tolerance * idle_ps)
        return false;
    node.entry_wait_ps = wait_ps;
    return true;
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
        node.busy = static_cast<double>(node.updating);
    }
    std::ranges::fill(link_busy_, 0.0);
    std::ranges::fill(lines_, 0.0);
    for (const Class& of : class_) {
        const Demand& d = demand_[of.demand];
        const double units = served(of) / d.lines;
        for (const MemoryUse& m : d.memory) {
            Node& home = node_[m.home];
            const double read = units * m.read, written = units * m.written;
            home.read += read;
            home.written += written;
            home.busy += read * machine_.read_ps[m.home] + written * machine_.write_ps[m.home];
            lines_[of.node * node_.size() + m.home] += read + written;
            each_wire(of.node, m,
                      [&](std::size_t link, double time) { link_busy_[link] += units * time; });
        }
    }
}

}  // namespace numatwin
