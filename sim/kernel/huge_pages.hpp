// Memory for large arrays with random access: on huge pages, where the system has them.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace numatwin {

// An array of hundreds of megabytes has more pages of 4 KiB than a core remembers the places of: a
// look at a random element then costs a walk through the page table besides, the more so in a
// virtual machine, where each step of that walk is a walk of its own.
inline constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

// Aligned to a line at least; large ones on huge pages. Freed by std::free.
inline void* allocate_large(std::size_t bytes) {
    const std::size_t align = bytes < huge_page_bytes / 8 ? 64 : huge_page_bytes;
    if (bytes > std::numeric_limits<std::size_t>::max() - align) throw std::bad_alloc();
    const std::size_t rounded = (bytes + align - 1) / align * align;
    void* const found = std::aligned_alloc(align, rounded);
    if (found == nullptr) throw std::bad_alloc();
#if defined(__linux__)
    // A wish: where it is refused, nothing is lost but time.
    if (align == huge_page_bytes) madvise(found, rounded, MADV_HUGEPAGE);
#endif
    return found;
}

template <class T>
struct LargeAllocator {
    using value_type = T;
    LargeAllocator() = default;
    template <class U>
    LargeAllocator(const LargeAllocator<U>&) {}
    T* allocate(std::size_t count) {
        if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_alloc();
        return static_cast<T*>(allocate_large(count * sizeof(T)));
    }
    void deallocate(T* at, std::size_t) { std::free(at); }
    friend bool operator==(const LargeAllocator&, const LargeAllocator&) { return true; }
};

template <class T>
using LargeVector = std::vector<T, LargeAllocator<T>>;

}  // namespace numatwin
