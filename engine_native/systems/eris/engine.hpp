// ERIS on this host: workers that own data and exchange commands, or the baselines.
//
//   Engine engine(setup);  engine.load();  engine.start();  …  engine.stop();
//
// Any thread may call; what waits says so. Where a worker throws, all halt, and the next call
// throws what it threw. The destructor halts and joins, whatever happens.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "kernel/described.hpp"
#include "systems/eris/command.hpp"
#include "systems/eris/requests.hpp"
#include "systems/eris/shared_worker.hpp"
#include "systems/eris/worker.hpp"
#include "systems/eris/world.hpp"

namespace numatwin::native {

/// What a cycle did, once it is over.
struct CycleReport {
    FIELDS_OF(CycleReport);
    FIELD(std::size_t, object, "which");
    FIELD(std::size_t, links, "transfers that linked a part");
    FIELD(std::size_t, copies, "and those that copied one");
    FIELD(std::uint64_t, copied_bytes, "by these");
    FIELD(double, began_s, "since ``start``");
    FIELD(double, ended_s, "since ``start``");
    END_OF_FIELDS;
};

class Engine {
  public:
    /// Throws std::invalid_argument for what does not fit together, std::bad_alloc.
    explicit Engine(const EngineSetup& setup);
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    /// Workers begin to build their parts.
    void begin_load();
    /// Waits for so long at most; true once all is loaded. Throws what a worker threw.
    bool wait_loaded(double seconds);
    void load();
    /// Keys and entries: loaded so far, and to be loaded.
    std::uint64_t loaded() const noexcept;
    std::uint64_t to_load() const noexcept;
    /// Ends loading, or all, as soon as can be; nothing is left running. stop() without its checks.
    void cancel() noexcept;

    /// Clients begin; time begins.
    void start();
    /// Clients pause, or go on.
    void set_making(bool on) noexcept { world_.control.set_making(on && world_.setup.clients); }
    void set_phase(const PhaseSetup& phase);
    /// New bounds [A + 1] of an index, or entries [A] of a column: a balancing cycle. False where
    /// nothing has to move. Throws std::invalid_argument where they do not fit, or a cycle of the
    /// object is under way.
    bool rebalance(std::size_t object, const std::vector<std::uint64_t>& wanted);
    bool balancing(std::size_t object) const;
    std::vector<CycleReport> cycles() const;
    /// [A + 1], of an index; empty of a column.
    std::vector<std::uint64_t> bounds(std::size_t object) const;

    /// Does commands from outside, as if one after the other, and waits for their answers.
    std::vector<Answer> execute(std::span<const Ask> commands);

    /// Clients make no more; waits until all commands are done and cycles over; ends the workers.
    /// Throws std::logic_error where a command was lost (nothing has moved for so long, and some
    /// are not done) or done twice.
    void stop(double patience_s = 60);

    /// Throws what a worker failed with.
    void check() const { world_.control.check(); }
    bool running() const noexcept { return state_ == State::running; }
    /// Seconds since start().
    double time_s() const noexcept;
    const World& world() const noexcept { return world_; }
    std::uint64_t executed() const noexcept;

  private:
    enum class State : std::uint8_t { made, loading, loaded, running, stopped };

    void build();
    void build_object(std::size_t number);
    void begin_workers();
    void build_worker(std::uint32_t number);
    void share(ObjectState& object);
    void run(std::uint32_t worker) noexcept;
    void work(std::uint32_t worker) noexcept;
    void expect(State state, const char* message) const;
    void halt() noexcept;
    bool drain(double patience_s);
    void check_conservation() const;
    std::uint64_t made() const noexcept;

    void execute_keyed(std::span<const Ask> commands, Answer* answers);
    void execute_appends(std::span<const Ask> commands, Answer* answers);
    void execute_scan(const Ask& command, Answer& answer);
    void execute_shared(const Ask& command, Answer& answer);
    void send(std::uint32_t target, const CommandHeader& header,
              std::span<const std::uint64_t> words);
    template <class Done>
    void wait_until(const Done& done);
    [[noreturn]] void give_up();

    World world_;
    CommonScan common_;
    std::vector<std::unique_ptr<EngineWorker>> workers_;
    std::vector<std::vector<std::uint64_t>> bounds_;  // [objects], under the control's mutex
    bool crowded_ = false;                            // more workers than CPUs

    mutable std::mutex mutex_;  // of what follows
    std::condition_variable changed_;
    std::atomic<State> state_ = State::made;
    std::size_t built_workers_ = 0, loaded_workers_ = 0;
    std::mutex joining_;
    std::vector<std::thread> threads_;
    Ticks started_ = 0;

    std::mutex calls_;  // one call of execute at a time
    Counter made_outside_, scans_outside_;
    std::vector<std::uint64_t> inserted_outside_;  // [objects] into what all share
    std::size_t next_worker_ = 0;
};

}  // namespace numatwin::native
