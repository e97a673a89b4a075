#include "systems/eris/engine.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include "memory/host.hpp"
#include "systems/eris/spinning.hpp"

namespace numatwin::native {
namespace {

// What a worker does that has nothing to do: first it looks again at once, then lets others run,
// then sleeps, but not beyond the time when it knows of something to do.
class Rest {
  public:
    explicit Rest(bool crowded) : turns_(crowded ? on_core : 0) {}
    void operator()(double idle_ns) {
        if (turns_ < on_core) {
            relax_core();
        } else if (turns_ < on_core + giving_way ||
                   (idle_ns < sleep_ns && turns_ < on_core + waking)) {
            std::this_thread::yield();
        } else {
            const double most = std::min(sleep_ns * (1 + slept_), std::max(idle_ns, sleep_ns));
            std::this_thread::sleep_for(std::chrono::nanoseconds(static_cast<std::int64_t>(most)));
            slept_ = std::min(slept_ + 1, sleeps_longer);
        }
        turns_ = std::min(turns_ + 1, on_core + waking);
    }

  private:
    static constexpr int on_core = 64, giving_way = 64, waking = 2048;
    static constexpr int sleeps_longer = 24;  // up to half a millisecond
    static constexpr double sleep_ns = 20'000;
    int turns_, slept_ = 0;
};

}  // namespace

Engine::Engine(const EngineSetup& setup) : world_((numatwin::native::check(setup), setup)) {
    crowded_ = setup.crowded();
    (void)ps_per_tick();
    inserted_outside_.assign(setup.objects.size(), 0);
    build();
    begin_workers();
}

Engine::~Engine() {
    cancel();
}

// A thread moves to its processor, and its stack to that one's node, before it makes anything.
void Engine::run(std::uint32_t number) noexcept {
    const EngineSetup& setup = world_.setup;
    try {
#if defined(__linux__)
        prctl(PR_SET_TIMERSLACK, 1000UL);  // sleeps end after 1 µs more, not 50
#endif
        if (const int cpu = setup.cpu[number]; cpu >= 0) pin_thread(cpu);
        move_stack(setup.host_node[setup.node[number]]);
    } catch (...) {
        world_.control.fail(std::current_exception());
    }
    work(number);
}

void Engine::work(std::uint32_t number) noexcept {
    // What each worker does once; then it waits for the engine's next state.
    const auto once = [&](auto&& act, std::size_t& done, State next) {
        try {
            if (!world_.control.halted()) act();
        } catch (...) {
            world_.control.fail(std::current_exception());
        }
        std::unique_lock lock(mutex_);
        ++done;
        changed_.notify_all();
        changed_.wait(lock, [&] { return state_ >= next || world_.control.halted(); });
    };
    once([&] { build_worker(number); }, built_workers_, State::loading);
    once([&] { workers_[number]->load(); }, loaded_workers_, State::running);
    if (world_.control.halted()) return;
    EngineWorker& worker = *workers_[number];
    const bool crowded = crowded_;
    try {
        while (!world_.control.halted()) {
            if (worker.round()) continue;
            Rest rest(crowded);
            do rest(worker.idle_ns());
            while (!world_.control.halted() && !worker.round());
        }
    } catch (...) {
        world_.control.fail(std::current_exception());
    }
}

void Engine::halt() noexcept {
    const std::scoped_lock lock(mutex_);
    world_.control.halt();
    changed_.notify_all();
}

void Engine::cancel() noexcept {
    halt();
    const std::scoped_lock lock(joining_);
    for (std::thread& thread : threads_)
        if (thread.joinable()) thread.join();
    state_ = State::stopped;
}

void Engine::expect(State state, const char* message) const {
    check();
    if (state_ != state) throw std::logic_error(message);
}

void Engine::begin_load() {
    expect(State::made, "load: expected once, before start");
    const std::scoped_lock lock(mutex_);
    state_ = State::loading;
    changed_.notify_all();
}

bool Engine::wait_loaded(double seconds) {
    std::unique_lock lock(mutex_);
    const bool all = changed_.wait_for(lock, std::chrono::duration<double>(seconds), [this] {
        return loaded_workers_ == workers_.size() || world_.control.halted();
    });
    if (!all) return false;
    lock.unlock();
    if (world_.control.halted()) {
        cancel();
        check();
        throw std::runtime_error("loading was cancelled");
    }
    State loading = State::loading;
    state_.compare_exchange_strong(loading, State::loaded);
    return true;
}

void Engine::load() {
    begin_load();
    while (!wait_loaded(1.0)) {
    }
}

std::uint64_t Engine::loaded() const noexcept {
    std::uint64_t sum = 0;
    for (const auto& counts : world_.counts) sum += counts->loaded.load(std::memory_order_relaxed);
    return sum;
}

std::uint64_t Engine::to_load() const noexcept {
    std::uint64_t sum = 0;
    for (const auto& object : world_.setup.objects) sum += object.amount;
    return sum;
}

void Engine::start() {
    expect(State::loaded, "start: expected after load");
    const std::scoped_lock lock(mutex_);
    world_.control.set_making(world_.setup.clients);
    started_ = ticks();
    state_ = State::running;
    changed_.notify_all();
}

double Engine::time_s() const noexcept {
    return state_ < State::running ? 0
                                   : static_cast<double>(ticks() - started_) * ps_per_tick() / 1e12;
}

void Engine::set_phase(const PhaseSetup& phase) {
    numatwin::native::check(phase, world_.setup);
    auto next = std::make_shared<const ClientPhase>(phase);
    Control& control = world_.control;
    const std::scoped_lock lock(control.mutex);
    control.phase.swap(next);
    control.publish();
}

std::uint64_t Engine::executed() const noexcept {
    std::uint64_t sum = 0;
    for (const auto& counts : world_.counts) sum += counts->executed.read();
    return sum;
}

std::uint64_t Engine::made() const noexcept {
    std::uint64_t sum = made_outside_.read();
    for (const auto& counts : world_.counts) sum += counts->made.read();
    return sum;
}

void Engine::stop(double patience_s) {
    expect(State::running, "stop: expected after start");
    const std::scoped_lock calls(calls_);
    const bool all_done = drain(patience_s);
    cancel();
    check();
    check_conservation();
    if (!all_done) throw std::logic_error("a scan or a balancing cycle did not end");
}

// Waits until each worker has gone round with the order to make no more, and all that was made is
// done. False where something is left and nothing has moved for so long: a command was lost.
bool Engine::drain(double patience_s) {
    world_.control.set_making(false);
    std::vector<std::uint64_t> rounds;
    for (const auto& counts : world_.counts) rounds.push_back(counts->rounds.read());
    const auto idle = [&] {
        for (std::size_t k = 0; k < rounds.size(); ++k)
            if (world_.counts[k]->rounds.read() < rounds[k] + 2) return false;
        const std::uint64_t done = executed();
        std::uint64_t scans = scans_outside_.read();
        for (const auto& counts : world_.counts)
            scans += counts->scans_made.read() - counts->scans_done.read();
        if (done != made() || scans != 0) return false;
        for (std::size_t k = 0; k < world_.objects.size(); ++k)
            if (balancing(k)) return false;
        return true;
    };
    const auto moved = [&] {
        std::uint64_t sum = 0;
        for (const auto& counts : world_.counts)
            sum += counts->executed.read() + counts->forwarded.read() +
                   counts->copied_bytes.read() + counts->step(Step::walk).read() +
                   counts->step(Step::scan).read();
        return sum;
    };
    using Clock = std::chrono::steady_clock;
    std::uint64_t seen = moved();
    auto since = Clock::now();
    while (!world_.control.halted() && !idle()) {
        std::this_thread::sleep_for(std::chrono::microseconds(100));
        if (const std::uint64_t now = moved(); now != seen) {
            seen = now;
            since = Clock::now();
        } else if (Clock::now() - since > std::chrono::duration<double>(patience_s)) {
            return false;
        }
    }
    return true;
}

void Engine::check_conservation() const {
    if (executed() != made())
        throw std::logic_error("commands made: " + std::to_string(made()) +
                               ", executed: " + std::to_string(executed()));
    for (std::size_t k = 0; k < world_.objects.size(); ++k) {
        std::uint64_t held = 0, inserted = 0;
        for (const auto& counts : world_.counts) {
            held += counts->object[k].entries.load();
            inserted += counts->object[k].inserted.read();
        }
        const ObjectState& object = world_.objects[k];
        const ObjectSetup& setup = object.setup;
        if (object.shared_tree) held = object.shared_tree->keys();
        if (object.shared_column) held = object.shared_column->entries();
        inserted += inserted_outside_[k];
        if (held != setup.amount + inserted)
            throw std::logic_error("object " + setup.name + " was loaded with " +
                                   std::to_string(setup.amount) + " and given " +
                                   std::to_string(inserted) + ", but has " + std::to_string(held));
    }
}

}  // namespace numatwin::native
