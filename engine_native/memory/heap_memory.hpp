// Memory from the heap, of any node: for tests and for what is not a data object's.
#pragma once

#include <new>

#include "memory/memory.hpp"

namespace numatwin::native {

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
