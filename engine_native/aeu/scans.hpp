// Scans under way, and the versions of a column's layout that they were made under.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "routing/holder_bitmap.hpp"
#include "storage/scan.hpp"

namespace numatwin::native {

/// A scan on its way; its address travels. Who executes the last part ends it.
struct ScanTask {
    static constexpr std::uint32_t outside = ~std::uint32_t{0};

    std::uint32_t operation = outside;  // of clients
    std::uint32_t object = 0;
    std::uint32_t origin = 0;
    Scan scan;
    std::uint64_t version = 0;
    std::uint64_t since_ns = 0;
    std::atomic<std::uint32_t> left{0};
    std::atomic<std::uint64_t> matches{0}, sum{0};
    /// Of a scan from outside: who asked owns it, and waits for this.
    std::atomic<bool> finished{false};
};

/// The clients' scans that have not ended: who halts in the middle leaves none behind.
class ScanTasks {
  public:
    ScanTask& add() {
        auto task = std::make_unique<ScanTask>();
        ScanTask& added = *task;
        const std::scoped_lock lock(mutex_);
        tasks_.emplace(&added, std::move(task));
        return added;
    }
    void remove(const ScanTask& task) {
        const std::scoped_lock lock(mutex_);
        tasks_.erase(&task);
    }

  private:
    std::mutex mutex_;
    std::unordered_map<const ScanTask*, std::unique_ptr<ScanTask>> tasks_;
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
