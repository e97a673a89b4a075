// ERIS, every buffer and every exchange of a descriptor: workers that own their data, and the
// commands that travel to it.
//
// A worker's loop, round after round (Kissinger et al., ERIS, ADMS 2014):
//   1. swap the incoming buffers, wait for the writers of the old one
//   2. receive: take its commands, put them to those of their operation
//   3. execute each group, a batch at a time; scans of one column together. In turn with that,
//      make new commands, a batch at a time, at most `round_commands` in a round, and route them;
//      an outgoing buffer that is full is flushed at once
//   4. balancing commands and transfers
//   5. flush what the outgoing buffers hold
//
// Incoming buffers. A 64-bit descriptor each: 1 bit active, 32 bits offset, 31 bits writers. A
// writer reads the active one; what it read is as old as the line's way. It reserves room by one
// CAS, which fails if the word has changed meanwhile, copies, and takes itself off by an atomic
// subtraction. A buffer without room sends the writer back with its commands in hand.
//
// A worker makes no commands while what it has taken, or what waits for it, fills more than half a
// buffer: who is behind does not make more work. Who has nothing to do sleeps until something comes
// or a full buffer that it waits for is swapped.
#pragma once

#include <cstdint>
#include <vector>

#include "machine/disturbances/kernel/disturbances.hpp"
#include "systems/eris/kernel/batches.hpp"
#include "systems/eris/kernel/machine_parts.hpp"

namespace numatwin {

// The 64-bit descriptor of an incoming buffer: 1 bit active, 32 bits offset, 31 bits writers.

namespace descriptor {

inline constexpr std::uint64_t active_bit = std::uint64_t{1} << 63;
inline constexpr std::uint64_t one_writer = 1;
inline constexpr int offset_shift = 31;
inline std::uint64_t writers(std::uint64_t word) {
    return word & ((std::uint64_t{1} << 31) - 1);
}
inline std::uint64_t offset(std::uint64_t word) {
    return (word & ~active_bit) >> offset_shift;
}

}  // namespace descriptor

// One event of a trace.
struct ErisTrace {
    Time time;
    std::uint32_t kind, worker, other, amount;
};

// A part that goes from worker to worker; per unit (a key or an entry).
struct ErisTransfer {
    FIELDS_OF(ErisTransfer);
    FIELD(std::uint32_t, source, "the worker that has it");
    FIELD(std::uint32_t, target, "and the one that gets it");
    FIELD(double, volume, "units");
    FIELD(double, source_ps, "instructions of the source");
    FIELD(double, target_ps, "and of the target");
    FIELD(double, source_lines, "lines read at the source");
    FIELD(double, lines, "sent");
    FIELD(double, written_lines, "written");
    FIELD(double, source_slots, "lines that the source has under way");
    FIELD(double, target_slots, "and the target");
    FIELD(double, across_ps, "latency of a line between them");
    FIELD(double, chunk, "units of a message");
    END_OF_FIELDS;
    double sent = 0, rebuilt = 0;
    double messages = 0;          // sent so far
    std::uint32_t under_way = 0;  // messages sent and not yet rebuilt
};

// A part of a worker's commands that belongs to another since the table of this version.
struct ErisMove {
    std::uint32_t version, operation, target;
    double part;
};

struct ErisCounts {
    std::vector<std::uint64_t> executed;  // [O, A] commands; scans by workers
    std::vector<std::uint64_t> done;      // [O] operations that are done
    std::vector<double> progress;         // [O] scans, with parts of scans
    std::uint64_t made = 0, flushes = 0, flushed = 0, retries = 0, full = 0, rounds = 0,
                  forwarded = 0;
};

class ErisRouting : public ErisParts {
  public:
    enum Step : std::uint8_t { issue, flush, receive, walk, scan, transfer, steps };
    enum Kind : std::uint32_t {
        round,
        swapped,
        received,
        executed,
        issued,
        attempted,
        copied,
        released,
        alarm,
        transferred,
        arrived,
        rebuilt,
        linked,
        going_on
    };

    // `streams`: of each worker's commands, then of what each forwards.
    ErisRouting(ErisMachine machine, std::size_t operations, std::size_t keyed,
                std::vector<Stream> streams, std::uint64_t seed, std::uint64_t replication);

    void update(const ErisDemands& demands);
    // A new table; `moves` [A] say what has left each worker since the one before.
    void route(ErisTable table, const std::vector<std::vector<ErisMove>>& moves);
    void start();
    void handle(const Event& event);
    // Prefetches what the next events read; few workers are in the caches anyhow.
    bool prefetches() const { return prefetches_; }
    void prefetch(const EventQueue::Rising& soon) const;
    void start_counting();
    // Throws std::logic_error where a command was lost or done twice.
    void check() const;

    // From now on these workers take so many times as long; without end: they stop, each before its
    // next round, or the next batch that it would execute or make.
    void pace(const std::vector<std::uint32_t>& who, double factor);

    // -- balancing: the workers named meet, each after its round's work; then the run halts
    void call(const std::vector<std::uint32_t>& workers);
    bool gathered() const { return called_ > 0 && called_ == at_barrier_.size(); }
    // All who met go on; each has `link_ps` of work with its links first.
    void dismiss(const std::vector<Time>& link_ps);
    void begin(const std::vector<ErisTransfer>& more);
    const std::vector<ErisTransfer>& transfers() const { return transfers_; }
    // Halts when so many more units in all have been rebuilt.
    void halt_after(double units) {
        grain_ = units;
        progressed_ = 0;
    }

    static const char* event_name(std::uint32_t kind);

    ErisCounts counts;
    std::vector<ErisTrace> trace;
    bool tracing = false;

    std::size_t workers() const { return machine_.node.size(); }
    std::size_t operations() const { return operations_; }
    std::size_t core_of(std::size_t i) const { return worker_[i].core; }
    // Slot time of misses that is ahead in the worker's phase.
    double held_left(std::size_t i) const { return worker_[i].time.held_left(clock.now()); }
    Time step_time(Step step, std::size_t worker) const { return worker_[worker].step[step]; }
    // Time that a worker had use for: neither asleep nor held up.
    Time busy(std::size_t worker) const;
    Time held_up(std::size_t worker) const;
    std::uint64_t in_flight() const;

  private:
    static constexpr std::uint32_t none = ~std::uint32_t{0};
    static constexpr std::uint32_t chunks_under_way = 2;
    static constexpr std::uint8_t nothing_taken = 2;
    static constexpr std::uint32_t prefetch_workers_min = 1024;  // workers
    static constexpr std::uint32_t draws_ahead = 64;             // a whole number of lines
    // Batches of closed clients of which each target gets so many commands on average are kept
    // as parts of its buffer, as in the engine; else a flush holds commands of many batches.
    static constexpr std::int64_t batch_per_target_min = 16;

    struct Incoming {
        std::uint64_t word = 0;
        ErisBatches batches;
    };
    struct MixedContent {  // of an incoming buffer, where not all commands are of one operation by
                           // key
        std::vector<std::uint32_t> by_operation;  // [batches, K] where K > 1
        std::vector<std::uint32_t> scans;         // ids, in the order of references
    };
    struct Portion {  // of what waits for one worker
        std::uint32_t commands = 0, references = 0, answers = 0;
        std::uint64_t all() const { return std::uint64_t{commands} + references + answers; }
    };
    struct Part {  // of an outgoing buffer: commands of one operation, handed over at one time
        Time since;
        std::uint32_t operation, count;
    };
    static_assert(sizeof(Incoming) == 24);
    enum class State : std::uint8_t { working, waiting_for_writers, asleep, at_barrier, stopped };
    enum class After : std::uint8_t { making, end_of_round };
    // Thousands of workers do not fit a core's caches, and each event is about another one: so
    // what most events look at is kept in few lines, in this order.
    struct alignas(64) Worker {
        // Line 0: what those look at that flush to this worker.
        Incoming incoming[2];
        std::uint8_t active = 0;
        std::uint8_t taken = nothing_taken;  // which of the two is being worked off
        State state = State::working;
        bool called = false;
        bool stops = false;
        std::uint8_t goes_on_with = round;  // a Kind, once it has stopped
        Time asleep_since = 0;
        // Line 1: its phase, and the flush under way.
        ThreadTime time;
        std::uint64_t read_word = 0;
        Portion sends;
        std::uint32_t to = 0;
        // Line 2: times by step, counted.
        std::uint32_t core = 0;
        std::uint32_t drawn = draws_ahead;  // cells drawn ahead: the next one's place
        std::uint8_t into = 0;
        After after = After::making;
        bool received = false;  // the commands of `taken` are in `to_do`
        bool first_round = true;
        bool makes = false;  // whose turn it is: to make commands, or to execute some
        bool stuck = false;  // no more commands can be made in this round
        bool idle = true;    // nothing was received, made or moved in this round
        Time step[steps] = {};
        // Line 3: commands being made, and the round.
        std::uint32_t pending = none;  // a cell that was drawn and has no room yet
        std::uint32_t full = none;     // a buffer that has just been filled
        std::uint32_t made = 0;
        std::uint32_t version = 0;  // of the table by which its outgoing commands were routed
        std::uint64_t to_make = 0;
        std::uint64_t in_row = 0;     // commands in its outgoing buffers
        Time making_since = 0;        // when the batch under way was begun
        Time last_made = 0;           // when the last command was put into a buffer
        std::uint32_t of_making = 0;  // commands of that batch to be made yet
        std::uint32_t next_flush = 0;
        std::uint32_t executing = 0;
        std::uint32_t operation = 0;
        // Line 4: what was received, and is being executed.
        Time waits[2] = {};          // for lines of those who wrote into its incoming buffers
        ErisBatch* batch = nullptr;  // whose commands are being executed
        std::size_t batch_number = 0;
        std::uint32_t of_batch = 0;  // commands of that batch's that are done
        Time pending_since = 0;
        Time round_start = 0, transfers_until = 0;
        // Line 5.
        Time asleep = 0;  // with nothing to do, counted
        double scan_left = 0, scan_now = 0;
        // clients
        std::uint64_t outstanding = 0;
        Time think_until = 0, next_arrival = 0;
        // What few events look at.
        MixedContent mixed[2];
        std::vector<std::uint32_t> full_targets;        // of this round
        std::vector<std::uint32_t> requested_scans;     // scans that this worker has asked for
        std::vector<std::uint32_t> waiters;             // workers that wait for room here
        std::vector<std::uint32_t> outgoing, rebuilds;  // transfers
        std::vector<ErisMove> moves;
    };
    struct alignas(64) Demand {  // of ErisDemands
        double core_ps, hit_ps, lines, slots, line_max_ps, memory_lines, written, scan_lines;
    };
    struct Scan {
        std::uint32_t operation, left;
        Time since;
    };

    static bool rests(const Worker& w) {
        return w.state == State::asleep || w.state == State::stopped;
    }
    std::size_t pair(std::size_t i, std::size_t t) const { return i * machine_.node.size() + t; }
    std::size_t node(std::size_t i) const { return node_[i]; }
    double threads(std::size_t i) const { return core_[worker_[i].core].threads(); }
    std::uint64_t& to_do(std::size_t i, std::size_t operation) {
        return to_do_[i * operations_ + operation];
    }
    const Demand& demand(std::size_t i, std::size_t operation) const {
        return demand_[operation * workers() + i];
    }
    bool has_lines(std::size_t i, std::size_t operation) const {
        return demand(i, operation).scan_lines > 0;
    }
    Time handed(std::size_t i, std::size_t t) const {
        if (i == t && machine_.own_cached) return 0;
        return handed_[node(i) * nodes_ + node(t)];
    }
    double lines_of(std::uint64_t commands, std::uint64_t answers) const {
        return static_cast<double>(commands) * machine_.lines_per_command +
               static_cast<double>(answers) * machine_.answer_lines;
    }
    double handed_lines_ps(std::size_t i, std::size_t t, double lines, const Numbers& slots) const {
        return lines * static_cast<double>(handed(i, t)) / slots[node(i)];
    }

    // What takes a worker so long on a core of its own.
    Time paced(std::size_t i, Time ps) const {
        return pace_.empty() ? ps : rounded_ps(static_cast<double>(ps) * pace_[i]);
    }
    Time lines_awaited(double waits, std::size_t i, std::size_t t) const {
        return rounded_ps(waits * static_cast<double>(handed(i, t)));
    }
    // Headers of parts of what was made together, in the batch at place `b` of what was taken.
    std::uint32_t parts_in(std::size_t i, const ErisBatch& batch, std::size_t b) const;

    // Of a phase, lines at the home's controller, and those of them that it writes.
    struct FromMemory {
        double lines, written;
    };
    // A phase of a worker. Returns when it is over.
    Time phase(std::size_t i, Step step, const CoreWork& needs, const FromMemory& from = {0, 0});
    // A phase that hands over lines, which hold so much of a core's slots.
    Time handing(std::size_t i, Step step, double core, double held) {
        if (machine_.handed_additive) return phase(i, step, {.held = held, .separate = core});
        return phase(i, step, {core, held});
    }
    double memory_latency(std::size_t i);
    void note(Kind kind, std::uint32_t worker, std::uint32_t other, std::uint64_t amount);

    void begin_round(std::uint32_t i);
    void collect(std::uint32_t i);
    void take(std::uint32_t i);
    void spread(Histogram& into, Time least, Time most, std::uint32_t count) const;
    std::uint64_t forward(std::uint32_t i);
    std::uint32_t forward(std::uint32_t i, const ErisBatch& batch, std::uint32_t operation,
                          std::uint32_t count);
    void receive_all(std::uint32_t i);
    void execute(std::uint32_t i);
    void execute_scan(std::uint32_t i);
    void done_executing(std::uint32_t i);
    void complete(std::uint32_t i, std::uint32_t count);
    void answer(std::uint32_t source, std::uint32_t count);
    void finish_scans(std::uint32_t i);
    void balance(std::uint32_t i);
    void go_on_balancing(std::uint32_t i);
    bool work_at_transfers(std::uint32_t i);
    void begin_work(std::uint32_t i);
    void work(std::uint32_t i);
    void begin_batch(std::uint32_t i);
    void make(std::uint32_t i);
    void made(std::uint32_t i);
    void transfer_event(const Event& event);
    std::uint32_t draw(std::uint32_t i);
    // Inline, it makes draws of few workers slower.
    [[gnu::noinline]] std::uint32_t next_drawn(std::uint32_t i);
    void draw_ahead(std::uint32_t i, std::uint32_t* cells);
    void draw_anew();
    bool request_scan(std::uint32_t i, std::uint32_t operation, Time since);
    bool is_flush(const Event& event) const {
        return event.kind == attempted || event.kind == copied || event.kind == released;
    }
    void prefetch_far(const Event& event) const;
    void prefetch_halfway(const Event& event) const;
    void prefetch_near(const Event& event) const;
    void prefetch_making(std::uint32_t i) const;
    void prefetch_target(std::uint32_t i, std::uint32_t to) const;
    void begin_flush(std::uint32_t i, std::uint32_t to, After after);
    void read_descriptor(std::uint32_t i);
    void attempt(std::uint32_t i);
    Time hand_over(std::size_t writer, std::size_t reader, double lines, Time done);
    void arrive(std::uint32_t i);
    void deliver(std::uint32_t i, std::size_t at);
    void deliver_parts(std::uint32_t i, std::size_t at);
    void release(std::uint32_t i);
    void after_flush(std::uint32_t i, bool sent);
    void flush_rest(std::uint32_t i);
    void end_round(std::uint32_t i);
    void sleep(std::uint32_t i);
    void awake(std::uint32_t i, Time delay);
    void stop(std::uint32_t i, Kind before);
    void go_on(std::uint32_t i, std::uint32_t with, Time delay);
    void append(std::uint32_t i, std::uint32_t to, std::uint32_t operation, std::uint32_t count,
                Time first);
    bool is_behind(std::uint32_t i) const;
    bool has_room(std::uint32_t to, std::uint64_t commands) const;
    std::uint32_t references(std::uint32_t i, std::uint32_t to) const;
    std::uint32_t waiting_for(std::uint32_t i, std::uint32_t to) const;
    Portion portion(std::uint32_t i, std::uint32_t to) const;

    ErisMachine machine_;
    LargeVector<Demand> demand_;  // [O, A]
    Numbers sum_;                 // of ErisTable
    std::vector<std::uint32_t> guide_;
    double guide_slots_ = 0;
    std::size_t nodes_, operations_, keyed_;
    std::uint32_t version_ = 0;
    bool prefetches_ = false;
    LargeVector<std::uint32_t>
        drawn_;  // [A, draws_ahead] cells, where a worker's stream tells these alone
    LargeVector<Stream> streams_;
    LargeVector<Worker> worker_;
    std::vector<std::uint32_t> node_;   // [A]
    std::vector<std::uint64_t> to_do_;  // [A, O] of what the worker has taken
    Numbers pace_;              // [A] times that each takes as long; empty where none ever did
    LargeVector<Time> handed_;  // [n, n] of ErisMachine
    ErisBlocks blocks_;
    // outgoing buffers, [A, A]
    SmallCounts count_, answers_;
    LargeVector<std::uint32_t> by_operation_, sent_references_;
    LargeVector<Time> first_;
    // Instead of the two above, where batches are kept as parts.
    std::vector<std::vector<Part>> parts_out_;
    std::int64_t whole_ = 0;  // commands under a header that is no part, nor more
    std::vector<Scan> scans_;
    Numbers scan_lines_;  // [O] of all workers
    std::vector<std::uint32_t> free_scans_;
    std::vector<std::uint32_t> running_scans_;              // [O]
    std::vector<std::vector<std::uint32_t>> scan_waiters_;  // [O]
    std::vector<std::uint32_t> at_barrier_;
    std::size_t called_ = 0;
    std::vector<ErisTransfer> transfers_;
    double grain_ = 0, progressed_ = 0;
    std::uint64_t made_ = 0, executed_ = 0;  // by key, since the start
};

extern template bool Simulation::run(ErisRouting&, Time, Interrupt*);

}  // namespace numatwin
