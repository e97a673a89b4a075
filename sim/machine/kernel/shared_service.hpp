// Long pieces of work (scans, copies, tasks) that share cores, memory controllers and links max-min
// fair for as long as they last.
//
// A demand says what a unit of a piece takes: instructions, and cache lines of nodes' memory that
// are read and written, so many read at a time. While a piece runs, a unit takes at least
//
//     separate + max(instructions, sum of lines read * latency / slots)
//
// (of each loop, where it has several: separate + sum of max)
// at the latency under present load, and all pieces that run take no more than all the time of
//
//     controllers   lines * time of a line, of each node whose memory they use
//     links         wire time of lines and requests, on the way between their cores and these nodes
//     locks         time that each is held
//
// Who is bound by one of these gets as many lines a second as all others whom it bounds: shares are
// counted in lines (read and written), so that it does not matter what a unit is.
//
// What threads share of their core, they share as in `core_parts.hpp`. Latencies follow loads, and
// lines wait for entries of home agents, by windows of 100 us: `memory_home.hpp`. Before links
// lines wait by the same windows, each for others that come at random (M/D/1). A piece with as many
// lines under way as a core's stream gets each as fast as streams were measured to, at least.
//
// How it is done: pieces of one demand on cores of one node, with equal parts of their cores, are
// alike: a *class* (`piece_class.hpp`; ClassSharing finds their paces). So what a change costs
// depends on how many classes it reaches, not on how many pieces. Where a piece is followed at the
// same time by one of its class, nothing changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "kernel/class_sharing.hpp"
#include "kernel/event_queue.hpp"
#include "kernel/indexed_heap.hpp"
#include "machine/kernel/core_parts.hpp"
#include "machine/kernel/memory_controller.hpp"
#include "machine/kernel/memory_home.hpp"
#include "machine/kernel/piece_class.hpp"
#include "machine/kernel/routes.hpp"
#include "machine/kernel/service_machine.hpp"

namespace numatwin {

// A model keeps one timer, at next_change(), which it sets again after each call that changes
// something; when it goes off, it calls finish() until that returns false.
//
// Times of calls do not fall. An end is rounded up to a whole picosecond. Doubles, with nothing but
// + - * /, square root and ceil: the same calls give the same bits, in C++ and in Python.
class SharedService {
  public:
    // Throws std::invalid_argument, with the field's name, where shapes or values are wrong.
    explicit SharedService(ServiceMachine machine);

    // The number of a demand; equal ones have the same.
    std::uint32_t demand(const PieceDemand& demand);

    // A piece of so many units begins on a core; `job` is what finish() returns at its end. Returns
    // its name. Throws std::logic_error where as many pieces as the core has threads run there.
    std::int64_t start(Time now, std::size_t core, std::uint32_t demand, double units,
                       std::uint64_t job);
    // It goes on there from now on.
    void move(Time now, std::int64_t name, std::size_t core);
    // It ends early. Returns how many of its units were left.
    double cancel(Time now, std::int64_t name);

    // When something ends or changes next; `never` if nothing does.
    Time next_change();
    // The first piece to end up to now leaves. False if there is none (left).
    bool finish(Time now, std::uint64_t& job);

    std::size_t running() const { return running_; }
    std::size_t running(std::size_t core) const { return core_[core].running; }
    double rate(std::int64_t name);       // units per picosecond
    double remaining(std::int64_t name);  // units, as of the last call's time
    double wait_ps(std::size_t node) const { return node_[node].home.controller_wait_ps(); }
    double entry_wait_ps(std::size_t node) const { return node_[node].home.entry_wait_ps(); }

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
    Time core_busy(std::size_t core) const { return core_[core].busy_at(now_); }

  private:
    using Index = ClassSharing::Index;
    static constexpr Index none = ClassSharing::none;

    struct Node {
        MemoryHome home;
        double read = 0, written = 0, busy = 0;  // by the last count()
        bool changed = false;                    // waits, in the window that is over
    };
    struct UsedCore {
        std::uint32_t node, threads, running = 0;
        bool changed = false;
        Time busy = 0, counted = 0;
        std::vector<std::uint32_t> piece;  // where it has several threads

        Time busy_at(Time now) const { return busy + running * (now - counted); }
        void count(Time now) {
            busy = busy_at(now);
            counted = now;
        }
    };
    struct Demand {
        double instructions_ps, separate_ps;
        double lines;  // per unit; 1 if it uses no memory: work is counted in these
        std::vector<MemoryUse> memory;
        std::vector<Loop> loops;
        std::vector<Held> held;
    };
    struct Piece {
        std::uint64_t job = 0, order = 0;
        std::uint32_t core = 0, generation = 0, demand = 0;
        bool active = false;
        Index class_index = none;   // until its core's threads are looked at
        double left = 0;            // lines, when it joined the class
        double began = 0, end = 0;  // on the class's clock
    };

    std::uint32_t slot_of(std::int64_t name) const;
    void require_core(std::size_t core) const;
    void occupy(std::uint32_t slot, std::size_t core);
    void vacate(std::uint32_t slot);
    void release(std::uint32_t slot);
    void change_core(std::uint32_t core) {
        if (!core_[core].changed) changed_cores_.push_back(core);
        core_[core].changed = true;
    }
    void look_at_threads(UsedCore& core);
    Index class_of(std::uint32_t demand, std::uint32_t node, CorePart part);
    Index add_class(std::uint32_t demand, std::uint32_t node, CorePart part);
    double held_ps(std::span<const MemoryUse> memory, std::size_t node, bool loaded) const;
    double before_links_ps(std::size_t node, std::size_t home) const;
    bool settle_links();
    double overlapped_ps(const Demand& demand, std::size_t node, double slots) const;
    double stall(std::span<const MemoryUse> memory, std::size_t node) const;
    double least_pace(const PieceClass& piece_class) const;
    void wait_for_link(Index index, double units);
    void join(std::uint32_t slot, Index index);
    void quit(std::uint32_t slot);
    void change(Index index);
    void plan(Index index);
    void share();
    void take_ends();
    void advance(Time now);
    void rest(Time now);
    Time next_time();
    void close_window();

    // use(link, wire time) for lines between a node and a home's memory: those read come from
    // home, for a request; those written go there, for an answer. Reads make further messages,
    // and take limits of transfers, which are numbered behind the links.
    template <class Use>
    void each_wire(std::size_t node, const MemoryUse& memory, Use use) const {
        if (memory.home != node && !machine_.data_ps.empty()) {
            routes_.each_link(memory.home, node, [&](std::size_t link) {
                use(link, memory.read * machine_.data_ps[link] + memory.written * answer_ps_[link]);
            });
            routes_.each_link(node, memory.home, [&](std::size_t link) {
                use(link, memory.read * machine_.request_ps[link] +
                              memory.written * machine_.data_ps[link]);
            });
        }
        const auto snooping = static_cast<std::size_t>(machine_.snooping);
        if (node >= snooping || memory.home >= snooping) return;
        const auto* const first = machine_.message_first.data() + node * snooping + memory.home;
        for (auto k = static_cast<std::size_t>(first[0]); k < static_cast<std::size_t>(first[1]);
             ++k)
            use(static_cast<std::size_t>(machine_.message_link[k]),
                memory.read * machine_.message_ps[k]);
    }

    const ServiceMachine machine_;
    ClassSharing sharing_;  // controllers, links, limits of transfers
    Numbers answer_ps_;
    Routes routes_;
    std::vector<Node> node_;
    std::vector<UsedCore> core_;
    std::vector<Demand> demand_;
    std::map<Numbers, std::uint32_t> demand_number_;
    std::vector<PieceClass> class_;
    std::vector<std::vector<Index>> class_of_;  // [demands, n]
    std::vector<Piece> piece_;
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
    std::vector<Time> link_work_, link_wait_;  // [2L] of the window under way; of a line
    bool links_wait_ = false;                  // of any of them
    CoreParts parts_;                          // scratch of look_at_threads
    Time now_ = 0, window_end_ = LoadWindow::window;
};

}  // namespace numatwin
