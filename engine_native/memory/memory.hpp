// Memory of one data object on one node, as one thread allocates it.
#pragma once

#include <cstddef>
#include <new>

namespace numatwin::native {

/// Where a thread gets an object's memory from. Who frees a block may be another thread than who
/// allocated it, through its own Memory of the same manager.
class Memory {
  public:
    virtual ~Memory() = default;
    /// A block aligned to 64 bytes (to `bytes` below that). Throws std::bad_alloc.
    virtual void* allocate(std::size_t bytes) = 0;
    /// Gives back what `allocate(bytes)` returned.
    virtual void release(void* block, std::size_t bytes) noexcept = 0;
};

// Memory from the heap, of any node: for tests and for what is not a data object's.

class HeapMemory final : public Memory {
  public:
    void* allocate(std::size_t bytes) override {
        return ::operator new(bytes, std::align_val_t{64});
    }
    void release(void* block, std::size_t bytes) noexcept override {
        ::operator delete(block, bytes, std::align_val_t{64});
    }
};

}  // namespace numatwin::native
