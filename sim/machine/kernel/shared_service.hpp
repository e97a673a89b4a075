// Long pieces of work (scans, copies, tasks) that share cores, memory controllers and links max-min
// fair for as long as they last.
//
// A running piece is one demand on all that it uses at once. Per unit of it:
//
//     controllers   lines * time of a line, of each node whose memory it reads or writes
//     links         wire time of lines and requests, on the way between its core and these nodes
//     core          instructions, and the time that its misses hold the miss slots; only where
//                   several threads share a core
//     itself        no faster than separate + max(instructions, misses * latency / slots), where
//                   `slots` misses are under way at a time, at the latency under present load
//
// Rates are shared out anew when a piece comes, ends or moves, and when a controller's latency has
// changed: loads are those of the last window, and every window pieces follow (where a wait has
// changed by more than `wait_tolerance` of the latency). Between these times all is constant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernel/event_queue.hpp"
#include "kernel/flow_network.hpp"
#include "machine/kernel/interconnect.hpp"
#include "machine/kernel/memory_controller.hpp"

namespace numatwin {

// n nodes, C cores, 2L directed links, v vertices (nodes first); times in picoseconds.
struct ServiceMachine {
    Numbers read_ps, write_ps;        // [n] of a line at the controller; 0: not limited
    Numbers latency_ps;               // [n, n] of a line of node j's memory on node i, without load
    LoadCurve curve;                  // latency by load
    Positions core_node;              // [C]
    Positions core_threads;           // [C] how many pieces run on a core at most
    Positions data_ps;                // [2L] wire time of a line
    Positions request_ps;             // [2L] and of a request for one
    Positions entering, predecessor;  // [n, v] as for Interconnect
    std::int64_t vertices = 0;
};

// Lines of one node's memory, per unit of a piece.
struct PieceMemory {
    std::uint32_t home;
    double read, written;
};

struct Piece {
    double units;                         // how much of it there is
    double instructions_ps, separate_ps;  // per unit; separate: overlaps with nothing
    double slots;                         // lines that it reads at a time
    std::span<const PieceMemory> memory;
};

// A model keeps one timer, at next_change(), which it sets anew after each call that changes
// something; when it goes off, it calls finish() until that returns false.
class SharedService {
  public:
    static constexpr double wait_tolerance = 0.01;

    // Throws std::invalid_argument, with the field's name, where shapes or values are wrong.
    explicit SharedService(ServiceMachine machine);

    // A piece begins on a core; `job` is what finish() returns at its end. Returns its name. Throws
    // std::logic_error where as many pieces as the core has threads run there.
    std::int64_t start(Time now, std::size_t core, const Piece& piece, std::uint64_t job);
    // It goes on there from now on.
    void move(Time now, std::int64_t piece, std::size_t core);
    // It ends early. Returns how many of its units were left.
    double cancel(Time now, std::int64_t piece);

    // When something ends or changes next; `never` if nothing does.
    Time next_change();
    // The first piece to end up to now leaves. False if there is none (left).
    bool finish(Time now, std::uint64_t& job);

    std::size_t running() const { return network_.active(); }
    double rate(std::int64_t piece);       // units per picosecond
    double remaining(std::int64_t piece);  // units, as of the last call's time
    double wait_ps(std::size_t node) const { return node_[node].wait_ps; }

    // -- counted since the start, up to `now`
    void count(Time now);  // brings what follows up to date
    double lines_read(std::size_t node) const { return node_[node].read; }
    double lines_written(std::size_t node) const { return node_[node].written; }
    double controller_ps(std::size_t node) const { return node_[node].work; }
    double link_ps(std::size_t link) const { return link_work_[link]; }
    Time core_busy(std::size_t core) const { return core_[core].busy; }

  private:
    struct Node {
        double wait_ps = 0;  // at which the pieces that run were started
        double read = 0, written = 0, work = 0;
        LoadWindow load;
    };
    struct UsedCore {
        std::uint32_t node, threads, running = 0;
        Time busy = 0;
    };
    struct Running {
        std::uint64_t job = 0;
        std::int64_t flow = -1;  // in the network; -1: it does not run
        std::uint32_t core = 0, generation = 0;
        double instructions_ps = 0, separate_ps = 0, slots = 0;
        double left = 0;  // units, as of `counted`
        Time counted = 0;
        std::vector<PieceMemory> memory;
    };

    std::uint32_t slot_of(std::int64_t piece) const;
    void require_core(std::size_t core) const;
    void enter(std::uint32_t slot, std::size_t core);
    void launch(std::uint32_t slot);
    void leave(std::uint32_t slot);
    void count_until(Running& piece, double left);
    void count_all();
    void progress(Time now);
    void advance(Time now);
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

    const ServiceMachine machine_;
    FlowNetwork network_;  // controllers; links; pipeline and miss slots of each core
    std::vector<Hop> hop_;
    std::size_t vertices_;
    std::vector<Node> node_;
    std::vector<double> link_work_;
    std::vector<UsedCore> core_;
    std::vector<Running> piece_;
    std::vector<std::uint32_t> unused_;
    std::vector<std::uint32_t> piece_of_;  // by the network's slot
    std::vector<std::int64_t> resource_;   // scratch of launch, as coefficient_ and completions_
    std::vector<double> coefficient_;
    std::vector<Completion> completions_;
    std::vector<std::uint8_t> changed_;
    std::vector<std::uint64_t> ended_;  // jobs; those from next_ on have not been returned yet
    std::size_t next_ = 0;
    Time now_ = 0, window_end_ = LoadWindow::window;
};

}  // namespace numatwin
