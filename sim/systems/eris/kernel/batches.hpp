// Contents of ERIS's incoming buffers: lists of batches, in blocks from one pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "kernel/event_queue.hpp"
#include "kernel/huge_pages.hpp"

namespace numatwin {

// What one flush brought, or a part of it.
struct ErisBatch {
    std::uint32_t source, version, count, answers, references;
    Time first, last;  // when its first and last command were handed over
};

// A block is aligned to its size: so a place in it tells where it begins and ends.
struct ErisBlock {
    static constexpr std::size_t bytes = 1024, holds = 25;

    ErisBlock* next;
    std::uint64_t unused[2];
    ErisBatch batch[holds];

    static ErisBlock* around(const ErisBatch* at) {
        return reinterpret_cast<ErisBlock*>(reinterpret_cast<std::uintptr_t>(at) & ~(bytes - 1));
    }
};
static_assert(sizeof(ErisBlock) == ErisBlock::bytes);

// Blocks that no list holds; who gives one back gives it to the next who asks, still in the cache.
class ErisBlocks {
  public:
    ErisBlock* take() {
        if (free_ == nullptr) grow();
        ErisBlock* const found = free_;
        free_ = found->next;
        return found;
    }
    // A chain, from its first to its last.
    void give(ErisBlock* first, ErisBlock* last) {
        last->next = free_;
        free_ = first;
    }

  private:
    struct Free {
        void operator()(void* at) const { std::free(at); }
    };
    void grow() {
        const std::size_t bytes = next_bytes_;
        if (next_bytes_ < 8 * huge_page_bytes) next_bytes_ *= 2;
        slab_.emplace_back(allocate_large(bytes + ErisBlock::bytes));
        const auto at = reinterpret_cast<std::uintptr_t>(slab_.back().get());
        auto* const blocks =
            reinterpret_cast<ErisBlock*>((at + ErisBlock::bytes - 1) & ~(ErisBlock::bytes - 1));
        for (std::size_t k = bytes / ErisBlock::bytes; k-- > 0;) give(blocks + k, blocks + k);
    }

    std::vector<std::unique_ptr<void, Free>> slab_;
    std::size_t next_bytes_ = std::size_t{64} << 10;
    ErisBlock* free_ = nullptr;
};

// Batches in the order in which they came.
//
//     for (auto* batch = list.begin(); batch != list.end(); batch = list.after(batch)) …
class ErisBatches {
  public:
    bool empty() const { return end_ == nullptr; }
    ErisBatch* begin() const { return end_ == nullptr ? nullptr : first_->batch; }
    ErisBatch* end() const { return end_; }
    ErisBatch* after(ErisBatch* at) const {
        ++at;
        return at == end_ || !is_full(at) ? at : block_before(at)->next->batch;
    }

    // Where the next one goes, if its block has room.
    const ErisBatch* next_place() const { return end_; }
    void push(const ErisBatch& batch, ErisBlocks& pool) {
        if (is_full(end_)) {
            ErisBlock* const block = pool.take();
            (end_ == nullptr ? first_ : block_before(end_)->next) = block;
            end_ = block->batch;
        }
        *end_++ = batch;
    }
    void clear(ErisBlocks& pool) {
        if (empty()) return;
        pool.give(first_, ErisBlock::around(end_ - 1));
        end_ = nullptr;
    }

  private:
    // Whether a place is the end of a block; nullptr counts as one.
    static bool is_full(const ErisBatch* at) {
        return reinterpret_cast<std::uintptr_t>(at) % ErisBlock::bytes == 0;
    }
    static ErisBlock* block_before(ErisBatch* at) { return ErisBlock::around(at - 1); }

    ErisBlock* first_ = nullptr;
    ErisBatch* end_ = nullptr;
};

}  // namespace numatwin
