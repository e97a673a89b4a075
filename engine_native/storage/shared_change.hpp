// A thread's changes to a shared prefix tree within one batch.
#pragma once

#include <atomic>
#include <thread>

#include "storage/bucket.hpp"
#include "storage/shared_tree.hpp"
#include "storage/tree_word.hpp"

namespace numatwin::native {

// Slots, keys and values of a shared prefix tree, read and written with named memory orders.

namespace shared {

inline constexpr std::uint64_t LOCK = 4;
/// The node of this slot has been replaced.
inline constexpr Word MOVED{32};

inline bool is_locked(Word word) {
    return (word.raw & LOCK) != 0;
}
inline Word unlocked(Word word) {
    return {word.raw & ~LOCK};
}

/// What the word says has been written (buckets, nodes) is then seen.
inline Word load_acquire(const Word* slot) {
    return {std::atomic_ref(const_cast<Word*>(slot)->raw).load(std::memory_order_acquire)};
}
inline void store_release(Word* slot, Word word) {
    std::atomic_ref(slot->raw).store(word.raw, std::memory_order_release);
}
/// Acquires what others wrote under the lock, and releases what `to` links.
inline bool cas_acquire_release(Word* slot, Word from, Word to) {
    return std::atomic_ref(slot->raw).compare_exchange_strong(
        from.raw, to.raw, std::memory_order_acq_rel, std::memory_order_relaxed);
}

/// Locks a slot, whatever it holds; returns that. MOVED is not locked.
inline Word lock(Word* slot) {
    for (unsigned tried = 1;; ++tried) {
        const Word word = load_acquire(slot);
        if (word == MOVED) return word;
        if (!is_locked(word) && cas_acquire_release(slot, word, {word.raw | LOCK})) return word;
        // Who holds it may have lost its core.
        if (tried % 64 == 0) std::this_thread::yield();
    }
}

/// A key of a place that the word calls taken is ordered by the word; others are not looked at.
struct LoadRelaxed {
    std::uint64_t operator()(const std::uint64_t& from) const {
        return std::atomic_ref(const_cast<std::uint64_t&>(from)).load(std::memory_order_relaxed);
    }
};
/// Who reads a value sees what its writer did before.
inline std::uint64_t load_value_acquire(Word word, int place) {
    return std::atomic_ref(bucket::value_at(word, place)).load(std::memory_order_acquire);
}
inline void store_value_release(Word word, int place, std::uint64_t value) {
    std::atomic_ref(bucket::value_at(word, place)).store(value, std::memory_order_release);
}
/// Into a free place; the word that says it is taken is to be stored with release.
inline Word put_relaxed(Word word, int place, std::uint64_t key, std::uint64_t value) {
    std::atomic_ref(bucket::key_at(word, place)).store(key, std::memory_order_relaxed);
    std::atomic_ref(bucket::value_at(word, place)).store(value, std::memory_order_relaxed);
    return word.with_taken(word.taken() | std::uint64_t{1} << place);
}
/// The pairs of a bucket that others may be writing to.
inline bucket::Pairs pairs_of(Word word) {
    bucket::Pairs pairs;
    for (std::uint64_t left = word.taken(); left != 0; left &= left - 1) {
        const int place = std::countr_zero(left);
        pairs.add({LoadRelaxed{}(bucket::key_at(word, place)), load_value_acquire(word, place)});
    }
    return pairs;
}

inline Word* slot_of(Word node, std::uint64_t key) {
    return node.block<Node>()->slots + node.index(key);
}

}  // namespace shared

/// Each call does all of one change or, where another thread has changed the place that was found,
/// nothing. When an allocation fails, nothing is done either, and no slot stays locked.
class SharedTree::Change {
  public:
    Change(SharedTree& tree, Memory& memory) : tree_(tree), memory_(memory), guard_(tree.epochs_) {}
    ~Change();

    /// False: find the place again.
    bool upsert(const Found& at, std::uint64_t key, std::uint64_t value);

    std::size_t inserted() const { return inserted_; }

  private:
    /// Blocks that are released unless they are linked.
    class Unlinked;
    class Locked;

    void* allocate(std::size_t bytes);
    void release(void* block, std::size_t bytes) noexcept;
    void retire(void* block, std::size_t bytes) noexcept;
    /// Whether the node is of the digit that `bit` is in, and so tells it once it has grown.
    bool is_in_digit(Word node, unsigned bit) const;
    Word with_pair(Word full, std::uint64_t key, std::uint64_t value, const Found& at);
    Word make_node(std::uint64_t key, unsigned bit, bool is_whole, Unlinked& blocks);
    void add(Word node, std::span<const KeyValue> pairs, Unlinked& blocks);
    bool put_above(const Found& at, Word node, std::uint64_t key, std::uint64_t value);
    void grow(const Found& at);

    SharedTree& tree_;
    Memory& memory_;
    Epochs::Guard guard_;
    std::size_t inserted_ = 0;
    std::int64_t bytes_ = 0;
};

}  // namespace numatwin::native
