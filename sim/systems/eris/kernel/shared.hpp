// ERIS's baselines, event by event: workers that all use one structure, over all nodes or on one.
//
// A worker does a batch of operations from beginning to end, step by step; then the next one. All
// it reads and writes takes the controllers and links on the way. Where there are only scans, all
// workers are at one together: who is done with a chunk takes the next, until there is none; the
// last one ends the scan, and the next begins.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel/fifo_server.hpp"
#include "systems/eris/kernel/machine_parts.hpp"

namespace numatwin {

class ErisShared : public ErisParts {
  public:
    enum Kind : std::uint32_t { begin, step_done, alarm };

    ErisShared(SharedSetup setup, std::vector<Stream> streams, std::uint64_t seed,
               std::uint64_t replication);
    // Other demands from now on, for the same workers.
    void update(SharedSetup setup);
    void start();
    // From now on these workers take so many times as long; without end: they stop, each before its
    // next batch, or chunk of a scan.
    void pace(const std::vector<std::uint32_t>& who, double factor);
    void handle(const Event& event);
    void start_counting();
    static const char* event_name(std::uint32_t kind);

    std::vector<double> done;             // [O] with parts of scans
    std::vector<std::vector<Time>> step;  // [S, A]

    std::size_t workers() const { return setup_.node.size(); }
    std::size_t core_of(std::size_t i) const { return static_cast<std::size_t>(setup_.core[i]); }
    // Slot time of misses that is ahead in the worker's phase.
    double held_left(std::size_t i) const { return worker_[i].time.held_left(clock.now()); }
    // Time that a worker had use for: neither asleep nor held up by memory, links or its core.
    Time busy(std::size_t worker) const;

  private:
    struct Worker {
        std::size_t step = 0;
        std::uint32_t units = 0;  // operations of the batch
        ThreadTime time;
        Time begun = 0, arrived = 0, asleep_since = 0, next_arrival = 0;
        bool asleep = false, stops = false, stopped = false;
        double pace = 1;
    };

    void begin_batch(std::uint32_t i);
    void next_step(std::uint32_t i);
    void end_batch(std::uint32_t i);
    void sleep(std::uint32_t i);
    void wake(std::uint32_t i);
    void look_at_loads();
    double held_ps(const SharedStep& of, std::size_t node) const;
    std::size_t operation(std::uint32_t i);

    SharedSetup setup_;
    std::vector<Stream> streams_;
    std::vector<Worker> worker_;
    std::vector<Backlog> limit_;
    Backlog line_;
    std::vector<Time> asleep_;       // [A]
    std::vector<Time> link_before_;  // [2L] what had arrived when loads were looked at
    Numbers memory_wait_, link_wait_;
    std::vector<Numbers> held_of_;  // [S, n] at present loads
    std::size_t scan_operation_ = 0;
    Time looked_ = 0, scan_began_ = 0;
    std::int64_t chunks_left_ = 0, chunks_under_way_ = 0;
};

extern template bool Simulation::run(ErisShared&, Time, Interrupt*);

}  // namespace numatwin
