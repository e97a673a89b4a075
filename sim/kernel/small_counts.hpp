// Many counters that are nearly always small: a byte each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernel/huge_pages.hpp"

namespace numatwin {

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
