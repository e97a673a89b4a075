// Memory of one data object on one node, as one thread allocates it.
#pragma once

#include <cstddef>

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

}  // namespace numatwin::native
