// A worker of the baselines: all use one index and one column, whose memory lies on all nodes in
// turn, or on one. No commands travel: a worker does a batch from beginning to end, then the next.
//
// Where there are only scans, and clients neither think nor arrive, all workers are at one scan
// together: who is done with a morsel takes the next, until there is none; the last one ends the
// scan, and the next begins. Else a worker does each of its scans alone, from beginning to end.
// (sim/systems/eris/kernel/shared.cpp is its model.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "storage/shared_column.hpp"
#include "systems/eris/command_maker.hpp"
#include "systems/eris/worker.hpp"
#include "systems/eris/world.hpp"

namespace numatwin::native {

/// The scan that all workers are at.
class CommonScan {
  public:
    /// Takes part in the scan under way, or begins one, as `make` says. False where it is about to
    /// end and others still work. `ended(scan's start, its operation)` is called by who is last.
    template <class Make, class Ended>
    bool take_part(Make make, Ended ended) {
        std::shared_ptr<Running> running;
        {
            const std::scoped_lock lock(mutex_);
            if (!running_) running_ = make();
            if (running_->ending) return false;
            running = running_;
            ++running->workers;
        }
        running->scan->work();
        const std::scoped_lock lock(mutex_);
        running->ending = true;
        if (--running->workers > 0) return true;
        running_ = nullptr;
        ended(*running);
        return true;
    }

    struct Running {
        std::uint32_t operation = 0;
        std::uint64_t since_ns = 0;
        std::unique_ptr<MorselScan> scan;
        std::size_t workers = 0;
        bool ending = false;
    };

  private:
    std::mutex mutex_;
    std::shared_ptr<Running> running_;
};

class SharedWorker final : public EngineWorker {
  public:
    SharedWorker(World& world, CommonScan& common, std::uint32_t number);

    void load() override;
    bool round() override;
    double idle_ns() const override;

  private:
    std::uint64_t now_ns() const noexcept;
    void adopt();
    void execute(Drawn& drawn);
    bool scan_together();
    void scan_alone(const Drawn& drawn);
    void done(std::uint32_t operation, std::uint64_t since_ns, std::size_t count);

    World& world_;
    const EngineSetup& setup_;
    CommonScan& common_;
    const std::uint32_t number_;
    const double ns_per_tick_;
    WorkerCounts& counts_;
    CommandMaker maker_;
    std::vector<Memory*> memory_;  // [objects] for what it allocates
    std::shared_ptr<const ClientPhase> phase_;
    std::uint32_t version_ = 0;
    bool only_scans_ = false;
    std::vector<std::uint64_t> values_, words_;
    std::vector<std::uint8_t> found_;
    std::vector<ScanResult> results_;
};

}  // namespace numatwin::native
