// What AEUs hand each other in balancing cycles: rare, and too big for buffers.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "storage/column.hpp"
#include "storage/prefix_tree.hpp"
#include "storage/tree_word.hpp"
#include "systems/eris/cycle.hpp"

namespace numatwin::native {

/// A part of a transfer: a tree to link, a run to build, or entries of a column.
struct Parcel {
    std::shared_ptr<Cycle> cycle;
    std::size_t transfer = 0;
    std::uint64_t first = 0, last = 0;  // the keys that it covers
    std::optional<PrefixTree> tree;
    std::vector<KeyValue> run;
    std::shared_ptr<Column> column;
};

class TransferMailbox {
  public:
    void put(Parcel&& parcel) {
        const std::scoped_lock lock(mutex_);
        parcels_.push_back(std::move(parcel));
        // Released by the mutex, and by whatever write into the owner's incoming buffer follows.
        waiting_.store(true, std::memory_order_relaxed);
    }
    /// The owner. What was put before a command that it has received is among them.
    std::vector<Parcel> take() {
        if (!waiting_.load(std::memory_order_relaxed)) return {};
        const std::scoped_lock lock(mutex_);
        waiting_.store(false, std::memory_order_relaxed);
        return std::exchange(parcels_, {});
    }

  private:
    std::atomic<bool> waiting_{false};
    std::mutex mutex_;
    std::vector<Parcel> parcels_;
};

}  // namespace numatwin::native
