// Memory for tests: counts what is out, and fails the allocation that it is told to.
#pragma once

#include <cstdint>
#include <limits>
#include <new>

#include "memory/memory.hpp"

namespace numatwin::native::testing {

class ScarceMemory final : public Memory {
  public:
    void* allocate(std::size_t bytes) override {
        if (until_failure_ == 0) throw std::bad_alloc();
        --until_failure_;
        ++allocations_;
        void* block = heap_.allocate(bytes);
        bytes_out_ += bytes;
        return block;
    }
    void release(void* block, std::size_t bytes) noexcept override {
        bytes_out_ -= bytes;
        heap_.release(block, bytes);
    }
    /// So many allocations still succeed, none after them.
    void fail_after(std::uint64_t allocations) { until_failure_ = allocations; }
    void never_fail() { until_failure_ = std::numeric_limits<std::uint64_t>::max(); }
    std::uint64_t bytes_out() const { return bytes_out_; }
    /// That succeeded so far.
    std::uint64_t allocations() const { return allocations_; }

  private:
    HeapMemory heap_;
    std::uint64_t until_failure_ = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t bytes_out_ = 0, allocations_ = 0;
};

}  // namespace numatwin::native::testing
