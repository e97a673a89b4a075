// Long pieces of work (scans, copies, tasks) that share cores, memory controllers and links max-min
// fair for as long as they last.
//
// A demand says what a unit of a piece takes: instructions, and cache lines of nodes' memory that
// are read and written, so many read at a time. While a piece runs, a unit takes at least
//
//     separate + max(instructions, sum of lines read * latency / slots)
//
// at the latency under present load, and all pieces that run take no more than all the time of
//
//     controllers   lines * time of a line, of each node whose memory they use
//     links         wire time of lines and requests, on the way between their cores and these nodes
//
// Who is bound by one of these gets as many lines a second as all others whom it bounds: shares are
// counted in lines (read and written), so that it does not matter what a unit is.
//
// Threads share their core's pipeline and its miss slots. Where all together need more of either
// than there is (each as it would run alone, memory answering without load), each has an equal part
// at most, and who needs less leaves the rest to the others. Where slots suffice without load, each
// has the part that it needs of what all need: under load, when all need more, they share them so.
//
// Latencies follow loads, by windows of 100 us. At the end of a window each controller's latency
// becomes that at which as many lines as were under way make the load that has this latency (load
// times latency is kept: Little's law). This settles where latency and load agree, and does not
// swing as taking the latency of the last load does. Changes below `wait_tolerance` of the latency
// without load are left out.
//
// Home agents have so many `entries`, where these are limited. A line that is read holds one from
// the time it enters the controller until it is on its way to the core: while it waits for a link
// that bounds its readers, too. Lines of all readers, from near and far, wait for entries in one
// FIFO queue. The wait W of this queue is the one with which lines have room: in each window
//
//     W += (lines read * S + sum of lines * their wait for links - entries) / lines read
//
// with lines read per time, and S, how long an entry is held without links: a line's latency, and
// no longer than entries suffice for all that the controller can read. So W stays 0 where no link
// is short. Where many wait, near and far readers get lines as they ask for them: if the far ones
// have N_r under way and their links carry L, all get L (1 + N_l / N_r).
//
// Where the directory of lines is kept in memory, its updates are writes. The last reader of a line
// was near with the probability that readers are, each line for itself: of N near and F far lines,
// 2 N F / (N + F) are updated. In the next window pieces have of the controller's time what the
// updates of this one leave them.
//
// How it is done: pieces of one demand on cores of one node, with equal parts of their cores, are
// alike: a *class* (ClassSharing finds their paces). A class has a clock, the lines that each
// member has served since it has members; a member that comes at clock V with w lines ends at V + w
// (Kleinrock and Muntz, JACM 1972). So what a change costs depends on how many classes it reaches,
// not on how many pieces. Where a piece is followed at the same time by one of its class, nothing
// changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "kernel/class_sharing.hpp"
#include "kernel/event_queue.hpp"
#include "kernel/indexed_heap.hpp"
#include "machine/kernel/interconnect.hpp"
#include "machine/kernel/load_window.hpp"
#include "machine/kernel/service_machine.hpp"

namespace numatwin {

// A model keeps one timer, at next_change(), which it sets again after each call that changes
// something; when it goes off, it calls finish() until that returns false.
//
// Times of calls do not fall. An end is rounded up to a whole picosecond. Doubles, with nothing but
// + - * /, square root and ceil: the same calls give the same bits, in C++ and in Python.
class SharedService {
  public:
    static constexpr double wait_tolerance = 0.01;
    static constexpr double room_tolerance = 0.002;  // of a controller's time

    // Throws std::invalid_argument, with the field's name, where shapes or values are wrong.
    explicit SharedService(ServiceMachine machine);

    // The number of a demand; equal ones have the same.
    std::uint32_t demand(const PieceDemand& of);

    // A piece of so many units begins on a core; `job` is what finish() returns at its end. Returns
    // its name. Throws std::logic_error where as many pieces as the core has threads run there.
    std::int64_t start(Time now, std::size_t core, std::uint32_t demand, double units,
                       std::uint64_t job);
    // It goes on there from now on.
    void move(Time now, std::int64_t piece, std::size_t core);
    // It ends early. Returns how many of its units were left.
    double cancel(Time now, std::int64_t piece);

    // When something ends or changes next; `never` if nothing does.
    Time next_change();
    // The first piece to end up to now leaves. False if there is none (left).
    bool finish(Time now, std::uint64_t& job);

    std::size_t running() const { return running_; }
    std::size_t running(std::size_t core) const { return core_[core].running; }
    double rate(std::int64_t piece);       // units per picosecond
    double remaining(std::int64_t piece);  // units, as of the last call's time
    double wait_ps(std::size_t node) const { return node_[node].wait_ps; }
    double entry_wait_ps(std::size_t node) const { return node_[node].entry_wait_ps; }

    // -- counted since the start, up to `now`
    // Brings what follows up to date; takes time by class, and changes nothing else.
    void count(Time now);
    double lines_read(std::size_t node) const { return node_[node].read; }
    double lines_written(std::size_t node) const { return node_[node].written; }
    double controller_ps(std::size_t node) const { return node_[node].busy; }
    double link_ps(std::size_t link) const { return link_busy_[link]; }
    // Read and written by cores of a node, of a home's memory.
    double lines(std::size_t node, std::size_t home) const {
        return lines_[node * node_.size() + home];
    }
    // How long pieces ran on a core, all together; needs no count().
    Time core_busy(std::size_t core) const {
        const UsedCore& of = core_[core];
        return of.busy + of.running * (now_ - of.counted);
    }

  private:
    using Index = ClassSharing::Index;
    static constexpr Index none = ClassSharing::none;

    struct Node {
        double wait_ps = 0, entry_wait_ps = 0;
        Time work = 0;                // of the window under way
        double came = 0, waited = 0;  // in it: lines read; line times that they waited for links
        double near = 0, far = 0;     // in it: lines read by the node's cores, and by others
        double room = 1;              // for pieces, of the controller's time
        Time updating = 0;            // the directory, in all windows
        double read = 0, written = 0, busy = 0;
        bool changed = false;
    };
    struct UsedCore {
        std::uint32_t node, threads, running = 0;
        bool changed = false;
        Time busy = 0, counted = 0;
        std::vector<std::uint32_t> piece;  // where it has several threads
    };
    struct CorePart {  // what a thread has of its core, at most
        double pipeline = 1, slots = 1;
        bool operator==(const CorePart&) const = default;
    };
    struct Demand {
        double instructions_ps, separate_ps;
        double lines;  // per unit; 1 if it uses no memory: work is counted in these
        std::vector<MemoryUse> memory;
    };
    struct Member {
        double end;  // on the class's clock
        std::uint64_t order;
        std::uint32_t piece;
    };
    struct Class {
        std::uint32_t demand = 0, node = 0;
        CorePart part;  // of its members
        double clock = 0, pace = ClassSharing::infinity;
        Time since = 0;                         // of clock
        double begun = 0, done = 0;             // clocks at which members began; lines of past ones
        double marked = 0;                      // lines served up to the window under way
        bool changed = false, counted = false;  // members; in window_
        std::vector<Member> member;             // a heap, the first to end on top
    };
    struct Running {
        std::uint64_t job = 0, order = 0;
        std::uint32_t core = 0, generation = 0, demand = 0;
        bool active = false;
        Index of = none;            // its class; none until its core's threads are looked at
        double left = 0;            // lines, when it joined the class
        double began = 0, end = 0;  // on the class's clock
    };

    static bool later(const Member& a, const Member& b) {
        return a.end != b.end ? a.end > b.end : a.order > b.order;
    }

    std::uint32_t slot_of(std::int64_t piece) const;
    void require_core(std::size_t core) const;
    void occupy(std::uint32_t slot, std::size_t core);
    void vacate(std::uint32_t slot);
    void look_at_threads(UsedCore& core);
    double equal_part(double all);
    static double part_of_slots(double need, double all, double most);
    Index class_of(std::uint32_t demand, std::uint32_t node, CorePart part);
    Index add_class(std::uint32_t demand, std::uint32_t node, CorePart part);
    double held_ps(const Demand& demand, std::size_t node, bool loaded) const;
    double least_pace(const Class& of) const;
    void hold_entries(Index index, double units);
    bool settle(std::size_t node);
    bool settle_entries(std::size_t node);
    void settle_directory(std::size_t node);
    bool crosses(std::size_t from, std::size_t to, std::size_t link) const {
        bool found = false;
        each_link(from, to, [&](std::size_t passed_link) { found = found || passed_link == link; });
        return found;
    }
    double clock_of(const Class& of) const {
        return of.clock + static_cast<double>(now_ - of.since) / of.pace;
    }
    double served(const Class& of) const {
        return of.done + static_cast<double>(of.member.size()) * clock_of(of) - of.begun;
    }
    void join(std::uint32_t slot, Index of);
    void quit(std::uint32_t slot);
    void change(Index of);
    void plan(Index of);
    void share();
    void take_ends();
    void advance(Time now);
    void rest(Time now);
    Time next_time();
    void close_window();

    template <class Use>
    void each_link(std::size_t from, std::size_t to, Use use) const {
        const Hop* const hops = hop_.data() + from * vertices_;
        for (std::size_t at = to; at != from;) {
            const Hop hop = hops[at];
            use(hop.link);
            at = hop.before;
        }
    }
    // use(link, wire time) for lines between a node and a home's memory: those read come from
    // home, those written go there, and requests go the other way.
    template <class Use>
    void each_wire(std::size_t node, const MemoryUse& of, Use use) const {
        if (of.home == node || data_ps_.empty()) return;
        each_link(of.home, node, [&](std::size_t link) {
            use(link, of.read * data_ps_[link] + of.written * request_ps_[link]);
        });
        each_link(node, of.home, [&](std::size_t link) {
            use(link, of.read * request_ps_[link] + of.written * data_ps_[link]);
        });
    }

    const ServiceMachine machine_;
    ClassSharing sharing_;  // controllers, then links
    Numbers data_ps_, request_ps_;
    std::vector<Hop> hop_;
    std::size_t vertices_;
    std::vector<Node> node_;
    std::vector<UsedCore> core_;
    std::vector<Demand> demand_;
    std::map<Numbers, std::uint32_t> demand_number_;
    std::vector<Class> class_;
    std::vector<std::vector<Index>> class_of_;  // [demands, n]
    std::vector<Running> piece_;
    std::vector<std::uint32_t> unused_;
    std::vector<std::uint32_t> changed_cores_;
    std::vector<Index> changed_;        // classes
    bool limited_ = false;              // a controller's room has changed
    std::vector<Index> window_;         // classes that have or had members in the window under way
    IndexedHeap ends_;                  // classes by the time of their first end
    std::vector<std::uint64_t> ended_;  // jobs; those from next_ on have not been returned yet
    std::size_t next_ = 0;
    std::size_t running_ = 0;
    std::uint64_t started_ = 0;
    Numbers link_busy_, lines_;
    std::vector<CorePart> need_;  // scratch of look_at_threads
    Numbers sorted_;              // and of equal_part
    Time now_ = 0, window_end_ = LoadWindow::window;
};

}  // namespace numatwin
