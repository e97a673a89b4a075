// The shared index, a baseline: one prefix tree for all threads, updated by atomics.
//
// Protocol. A slot of a node holds a Word (tree_word.hpp; its bit 2 is the slot's lock), and
// changes only by compare-and-swap or by the thread that has locked it:
//   look-up  takes no lock. Of a bucket it reads the places that the word says are taken: their
//            keys never change as long as anybody can reach the bucket (epochs.hpp).
//   upsert   locks the slot of the key's bucket; writes a value, or a pair to a free place, and
//            unlocks with the word that says so; or replaces the bucket by a larger one or a node.
//   a node   has 16 slots, or all that prefix_bits allow. To grow, it is locked in its parent, then
//            slot by slot; the larger one is linked; the old slots say MOVED: start again.
// Nodes lie at whole digits of prefix_bits; digits that all keys below share are skipped.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <type_traits>

#include "memory/memory.hpp"
#include "storage/epochs.hpp"
#include "storage/prefix_tree.hpp"
#include "storage/tree_word.hpp"

namespace numatwin::native {

/// All but constructor and destructor may be called by any thread at any time. Whose memory is
/// asked for says the caller: its own Memory of one manager, which for the baseline spreads its
/// pages over all nodes.
class SharedTree {
  public:
    /// Throws std::invalid_argument as PrefixTree does. `memory` outlives the tree.
    explicit SharedTree(Memory& memory, TreeShape shape = {});
    ~SharedTree();
    SharedTree(const SharedTree&) = delete;
    SharedTree& operator=(const SharedTree&) = delete;

    /// As PrefixTree's.
    std::size_t lookup(std::span<const std::uint64_t> keys, std::uint64_t* values,
                       std::uint8_t* found) const noexcept;
    std::size_t upsert(std::span<const std::uint64_t> keys, std::span<const std::uint64_t> values,
                       Memory& mine);

    /// Calls visit(key, value) in the order of keys. Each key that is there all the time is seen;
    /// what others change meanwhile is seen or not.
    template <class Visit>
    void scan(std::uint64_t first, std::uint64_t last, Visit&& visit) const {
        walk(first, last, visit_each<std::remove_reference_t<Visit>>,
             const_cast<void*>(static_cast<const void*>(&visit)));
    }

    /// Exact when no other thread changes the tree.
    std::uint64_t keys() const noexcept { return keys_.load(std::memory_order_relaxed); }
    /// With what waits to be released.
    std::uint64_t bytes() const noexcept {
        return bytes_.load(std::memory_order_relaxed) + epochs_.waiting_bytes();
    }
    TreeShape shape() const noexcept { return shape_; }

  private:
    class Change;
    /// Where a descent ended: at a bucket, at nothing, at MOVED, or above a node whose skipped bits
    /// differ from the key's.
    struct Found {
        Word* slot;
        /// The node of the slot, and the slot that links it; null at the root.
        Word node;
        Word* parent;
    };

    Found find(std::uint64_t key) const noexcept;
    void descend(std::span<const std::uint64_t> keys, Found* found) const noexcept;
    void walk(std::uint64_t first, std::uint64_t last, Sink sink, void* context) const;
    bool walk_slot(const Word* slot, std::uint64_t& first, std::uint64_t last, Sink sink,
                   void* context) const;
    void release_all(Word word) noexcept;

    Memory& memory_;
    TreeShape shape_;
    mutable Word root_;
    mutable Epochs epochs_;
    alignas(64) std::atomic<std::uint64_t> keys_{0};
    std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace numatwin::native
