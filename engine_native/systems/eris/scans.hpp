// Scans under way, and the versions of a column's layout that they were made under.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "storage/scan.hpp"
#include "systems/eris/holder_bitmap.hpp"

namespace numatwin::native {

/// A scan on its way; its address travels. Who executes the last part ends it. What its maker
/// writes and what all write who have a part stand on lines apart.
struct alignas(64) ScanTask {
    static constexpr std::uint32_t outside = ~std::uint32_t{0};

    std::uint32_t operation = outside;  // of clients
    std::uint32_t object = 0;
    std::uint32_t origin = 0;
    Scan scan;
    std::uint64_t version = 0;
    std::uint64_t since_ns = 0;
    alignas(64) std::atomic<std::uint32_t> left{0};
    /// Who asked waits for this where it is a scan from outside; else may use the task again.
    std::atomic<bool> finished{false};
    std::atomic<std::uint64_t> matches{0}, sum{0};
};

/// The scans that one worker's clients have asked for: as many tasks as were ever under way
/// together, used again and again. No other worker takes one, so nobody waits for anybody.
class ScanTasks {
  public:
    /// One that is not under way, with nothing found yet.
    ScanTask& take() {
        for (const auto& task : tasks_) {
            // Acquire: whoever ended it is done with it.
            if (!task->finished.load(std::memory_order_acquire)) continue;
            task->finished.store(false, std::memory_order_relaxed);
            task->matches.store(0, std::memory_order_relaxed);
            task->sum.store(0, std::memory_order_relaxed);
            return *task;
        }
        tasks_.push_back(std::make_unique<ScanTask>());
        return *tasks_.back();
    }

  private:
    std::vector<std::unique_ptr<ScanTask>> tasks_;
};

/// A column's layouts: the present version, the one before it while scans of it are left, and who
/// holds a part in each.
class ColumnVersions {
  public:
    explicit ColumnVersions(HolderBitmap holders) { holders_[1] = std::move(holders); }

    /// A scan begins: counts it under the present version. Sequentially consistent, as a maker
    /// (counts, then reads the version) and the publisher (writes the version, then reads the
    /// count) must not both miss the other.
    std::uint64_t begin() {
        while (true) {
            const std::uint64_t version = version_.load();
            running_[version & 1].fetch_add(1);
            if (version_.load() == version) return version;
            running_[version & 1].fetch_sub(1);
        }
    }
    void end(std::uint64_t version) { running_[version & 1].fetch_sub(1); }
    const HolderBitmap& holders(std::uint64_t version) const { return holders_[version & 1]; }

    std::uint64_t present() const { return version_.load(); }
    /// One thread, while no scan of the version before the present one is left.
    void publish(HolderBitmap holders) {
        const std::uint64_t next = version_.load() + 1;
        holders_[next & 1] = std::move(holders);
        version_.store(next);
    }
    /// Whether no scan of the version before `version` is left.
    bool is_alone(std::uint64_t version) const { return running_[(version - 1) & 1].load() == 0; }

  private:
    std::atomic<std::uint64_t> version_{1};
    std::atomic<std::uint64_t> running_[2] = {0, 0};
    HolderBitmap holders_[2];
};

}  // namespace numatwin::native
