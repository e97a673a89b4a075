// An AEU's partition of an index: the tree, the keys that it answers for, what is on its way.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "storage/column.hpp"
#include "storage/far_values.hpp"
#include "storage/prefix_tree.hpp"
#include "systems/eris/cycle.hpp"
#include "systems/eris/partition_table.hpp"

namespace numatwin::native {

class IndexPartition {
  public:
    static constexpr std::uint64_t greatest = std::numeric_limits<std::uint64_t>::max();

    IndexPartition(Memory& memory, TreeShape shape, std::size_t value_bytes, std::uint32_t worker)
        : memory(memory), tree(memory, shape), far(value_bytes), worker_(worker) {}

    Memory& memory;
    PrefixTree tree;
    const FarValues far;

    /// As the tree's, with values wherever they lie.
    std::size_t lookup(std::span<const std::uint64_t> keys, std::uint64_t* values,
                       std::uint8_t* found) const noexcept {
        const std::size_t hits = tree.lookup(keys, values, found);
        if (far.used()) keep(far.read(values, found, keys.size()));
        return hits;
    }
    /// The same; `words` and `found` have room for as many.
    std::size_t upsert(std::span<const std::uint64_t> keys, std::span<const std::uint64_t> values,
                       std::uint64_t* words, std::uint8_t* found) {
        if (!far.used()) return tree.upsert(keys, values);
        std::size_t inserted = 0;
        if (tree.lookup(keys, words, found) < keys.size()) {
            for (std::size_t k = 0; k < keys.size(); ++k) {
                if (found[k]) continue;
                const std::uint64_t word = far.make(memory, values[k]);
                inserted += tree.upsert({&keys[k], 1}, {&word, 1});
            }
        }
        far.write(words, found, values.data(), keys.size());
        return inserted;
    }

    /// Takes over new bounds [A + 1]. The last partition reaches to the greatest key.
    void set_bounds(const std::vector<std::uint64_t>& bounds) {
        const bool last = worker_ + 2 == bounds.size();
        first_ = bounds[worker_];
        empty_ = !last && bounds[worker_ + 1] == first_;
        span_ = last ? greatest - first_ : empty_ ? 0 : bounds[worker_ + 1] - 1 - first_;
    }

    /// Keys that it owns but does not hold yet: their source does.
    struct Pending {
        std::uint64_t first, last;
        std::uint32_t source;
        std::size_t transfer;
    };
    /// Keys that it owns no more but holds still: from `first` on; those before have been sent.
    struct Leaving {
        std::shared_ptr<Cycle> cycle;
        std::size_t transfer;
        std::uint64_t first, last;
    };
    std::vector<Pending> pending;
    std::vector<Leaving> leaving;

    /// Nothing is on its way: who owns a key holds it.
    bool settled() const noexcept { return pending.empty() && leaving.empty(); }
    bool owns(std::uint64_t key) const noexcept { return key - first_ <= span_ && !empty_; }
    /// Whether it owns all of them, without a branch for each.
    bool owns_all(const std::uint64_t* keys, std::size_t count) const noexcept {
        if (empty_) return count == 0;
        std::uint64_t strange = 0;
        for (std::size_t k = 0; k < count; ++k) strange |= keys[k] - first_ > span_ ? 1 : 0;
        return strange == 0;
    }
    /// The worker to whom a command for the key has to go: itself where it holds the key.
    std::uint32_t place_of(std::uint64_t key, const PartitionTree& table) const {
        if (owns(key)) {
            for (const Pending& part : pending)
                if (key >= part.first && key <= part.last) return part.source;
            return worker_;
        }
        for (const Leaving& part : leaving)
            if (key >= part.first && key <= part.last) return worker_;
        return table.owner(key);
    }
    /// A part of a transfer is here: keys up to `last`, or all of it.
    void arrived(std::size_t transfer, std::uint64_t last) {
        const auto at = std::find_if(pending.begin(), pending.end(), [&](const Pending& part) {
            return part.transfer == transfer;
        });
        if (last >= at->last)
            pending.erase(at);
        else
            at->first = last + 1;
    }

  private:
    std::uint32_t worker_;
    std::uint64_t first_ = 0, span_ = 0;
    bool empty_ = true;
};

// An AEU's partition of a column, and what leaves or reaches it in a balancing cycle.

struct ColumnPartition {
    explicit ColumnPartition(Memory& memory) : memory(memory), own(memory) {}

    /// Entries on their way here. `source` is what the source set aside; it is linked, or copied.
    struct Arriving {
        std::size_t transfer;
        std::shared_ptr<Column> source;
        std::optional<Column> copy;

        bool ready() const { return !copy || source == nullptr; }
        Column& entries() { return copy ? *copy : *source; }
    };

    Memory& memory;
    Column own;
    /// The cycle that it takes part in, until it is over for this AEU.
    std::shared_ptr<Cycle> cycle;
    std::vector<std::shared_ptr<Column>> leaving;
    std::vector<Arriving> arriving;
};

}  // namespace numatwin::native
