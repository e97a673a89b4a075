// A thread's changes to a shared prefix tree within one batch.
#pragma once

#include "storage/bucket.hpp"
#include "storage/shared_tree.hpp"

namespace numatwin::native {

/// Each call does all of one change or, where another thread has changed the place that was found,
/// nothing. When an allocation fails, nothing is done either, and no slot stays locked.
class SharedTree::Change {
  public:
    Change(SharedTree& tree, Memory& memory) : tree_(tree), memory_(memory), guard_(tree.epochs_) {}
    ~Change();

    /// False: find the place again.
    bool upsert(const Found& at, std::uint64_t key, std::uint64_t value);
    bool erase(const Found& at, std::uint64_t key);

    std::size_t inserted() const { return inserted_; }
    std::size_t erased() const { return erased_; }

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
    std::size_t inserted_ = 0, erased_ = 0;
    std::int64_t bytes_ = 0;
};

}  // namespace numatwin::native
