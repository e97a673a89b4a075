// Memory for large arrays with random access: on huge pages, where the system has them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <new>
#include <utility>
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

// Many counters that are nearly always small: a byte each.

// Counts from 255 on are kept beside, sorted by place: there are few of them, or this is slow.
class SmallCounts {
  public:
    void assign(std::size_t size) {
        byte_.assign(size, 0);
        large_.clear();
    }
    bool empty() const { return byte_.empty(); }
    const std::uint8_t* place(std::size_t at) const { return byte_.data() + at; }

    std::uint32_t operator[](std::size_t at) const {
        const std::uint8_t found = byte_[at];
        return found < beyond ? found : find(at)->second;
    }
    void set(std::size_t at, std::uint32_t value) {
        if (byte_[at] < beyond && value < beyond) [[likely]]
            byte_[at] = static_cast<std::uint8_t>(value);
        else
            set_large(at, value);
    }
    // Returns the new count.
    std::uint32_t add(std::size_t at, std::uint32_t amount) {
        const std::uint8_t has = byte_[at];
        if (amount < beyond && has + amount < beyond) [[likely]] {
            byte_[at] = static_cast<std::uint8_t>(has + amount);
            return has + amount;
        }
        const std::uint32_t sum = (*this)[at] + amount;
        set(at, sum);
        return sum;
    }
    void subtract(std::size_t at, std::uint32_t amount) {
        const std::uint8_t has = byte_[at];
        if (has < beyond) [[likely]]
            byte_[at] = static_cast<std::uint8_t>(has - amount);
        else
            set(at, (*this)[at] - amount);
    }

    std::uint64_t sum() const {
        std::uint64_t found = 0;
        for (const auto byte : byte_) found += byte;
        for (const auto& [at, value] : large_) found += value - beyond;
        return found;
    }

  private:
    using Large = std::pair<std::size_t, std::uint32_t>;  // place, count
    static constexpr std::uint8_t beyond = 255;

    std::vector<Large>::const_iterator find(std::size_t at) const {
        return std::lower_bound(large_.begin(), large_.end(), Large{at, 0});
    }
    void set_large(std::size_t at, std::uint32_t value) {
        const auto found = large_.begin() + (find(at) - large_.cbegin());
        const bool was_large = byte_[at] == beyond;
        if (value < beyond) {
            large_.erase(found);
            byte_[at] = static_cast<std::uint8_t>(value);
        } else if (was_large) {
            found->second = value;
        } else {
            large_.insert(found, {at, value});
            byte_[at] = beyond;
        }
    }

    LargeVector<std::uint8_t> byte_;
    std::vector<Large> large_;
};

}  // namespace numatwin
