// Memory that fails at the n-th allocation, to test each failure in turn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

#include "memory/memory.hpp"

namespace numatwin::native {

class FailingMemory final : public Memory {
  public:
    static constexpr std::uint64_t never = UINT64_MAX;

    /// Fails once, at the allocation of this number (the first is 0).
    explicit FailingMemory(Memory& memory, std::uint64_t failing = never)
        : memory_(memory), failing_(failing) {}

    void* allocate(std::size_t bytes) override {
        if (allocations_++ == failing_) throw std::bad_alloc();
        void* block = memory_.allocate(bytes);
        used_bytes_ += bytes;
        return block;
    }
    void release(void* block, std::size_t bytes) noexcept override {
        memory_.release(block, bytes);
        used_bytes_ -= bytes;
    }

    /// Asked for so far, the failed one included.
    std::uint64_t allocations() const { return allocations_; }
    /// Not released yet: 0 at the end of a test that leaks nothing.
    std::size_t used_bytes() const { return used_bytes_; }
    /// From now on: fails once, after this many more allocations.
    void fail_after(std::uint64_t allocations) { failing_ = allocations_ + allocations; }

  private:
    Memory& memory_;
    std::uint64_t failing_;
    std::uint64_t allocations_ = 0;
    std::size_t used_bytes_ = 0;
};

}  // namespace numatwin::native
