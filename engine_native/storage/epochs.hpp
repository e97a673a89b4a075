// When memory that others may still read can be released: epoch-based reclamation.
//
// Protocol (Fraser, Practical lock-freedom, 2004, with a free-running epoch):
//   enter:  write the current epoch to a slot of one's own; read it again, until it has not moved
//   retire: blocks unlinked while inside are stamped with the epoch e that leave() finds when it
//           advances it to e + 1
//   free:   blocks stamped e, once every slot is empty or above e
// A reader that enters at an epoch above e has read what the advance from e wrote, and so sees the
// unlinking that came before. A reader that a freeing thread's look at the slots misses wrote its
// slot after that look, and so reads the epoch as that thread left it, above e.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "memory/memory.hpp"

namespace numatwin::native {

class Epochs {
  public:
    struct Block {
        void* block;
        std::size_t bytes;
    };

    /// While a thread holds one, nothing that it can reach is released.
    class Guard {
      public:
        explicit Guard(Epochs& epochs) : epochs_(epochs), slot_(epochs.enter()) {}
        Guard(const Guard&) = delete;
        Guard& operator=(const Guard&) = delete;
        /// Leaves; what was retired is released through `memory` once nobody reads it.
        void leave(Memory& memory) noexcept;
        ~Guard();

        /// Makes sure that so many blocks can be retired without allocating. Throws bad_alloc.
        void reserve(std::size_t blocks) {
            if (retired_.capacity() < retired_.size() + blocks)
                retired_.reserve(2 * retired_.size() + blocks);
        }
        void retire(void* block, std::size_t bytes) noexcept { retired_.push_back({block, bytes}); }

      private:
        Epochs& epochs_;
        std::atomic<std::uint64_t>* slot_;
        std::vector<Block> retired_;
    };

    /// Releases all that waits; nobody may be inside.
    void drain(Memory& memory) noexcept;
    std::uint64_t waiting_bytes() const noexcept {
        return waiting_bytes_.load(std::memory_order_relaxed);
    }

  private:
    static constexpr std::size_t SLOTS = 256, BATCHES = 16;
    struct alignas(64) Slot {
        /// 0: free.
        std::atomic<std::uint64_t> epoch{0};
    };
    struct Batch {
        std::uint64_t epoch;
        std::vector<Block> blocks;
    };

    std::atomic<std::uint64_t>* enter() noexcept;
    std::uint64_t least_inside() const noexcept;
    void release(const std::vector<Block>& blocks, Memory& memory) noexcept;
    void release_what_may(Memory& memory) noexcept;

    std::array<Slot, SLOTS> slots_;
    alignas(64) std::atomic<std::uint64_t> epoch_{1};
    std::atomic<std::uint64_t> waiting_bytes_{0};
    std::mutex mutex_;
    std::vector<Batch> waiting_;
};

}  // namespace numatwin::native
