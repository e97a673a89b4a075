// Groups of an aggregation: how many rows each has, and sums of their values.
//
// Open addressing with linear probing, at most half full. A group's home is the upper bits of its
// hash, and nothing wraps around: so groups lie in the order of their hash, but for those that were
// pushed on, and tables of any sizes can be merged by ranges of hashes.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "systems/tasks/buffers.hpp"

namespace numatwin::native::tasks {

class GroupSums {
  public:
    /// Room for so many groups, to begin with.
    GroupSums(Buffers& buffers, std::uint64_t groups, std::uint32_t sums)
        : buffers_(&buffers), width_(2 + sums) {
        make(std::bit_ceil(std::max<std::uint64_t>(2 * groups, 8)));
    }
    GroupSums(GroupSums&&) noexcept = default;
    GroupSums& operator=(GroupSums&&) = delete;
    ~GroupSums() { buffers_->give(std::move(buffer_)); }

    std::uint64_t groups() const { return groups_; }
    std::uint32_t sums() const { return width_ - 2; }
    std::uint64_t bytes() const { return groups_ * width_ * sizeof(std::uint64_t); }
    /// The group's words, made where there are none: rows, key, sums.
    std::uint64_t* group(std::uint64_t key) {
        for (std::uint64_t at = home(hash(key)); at < slots_; ++at) {
            std::uint64_t* words = slot(at);
            if (words[0] != 0 && words[1] == key) return words;
            if (words[0] != 0) continue;
            if (2 * (groups_ + 1) > slots_ - slack) break;
            ++groups_;
            words[1] = key;
            return words;
        }
        grow();
        return group(key);
    }
    /// Where the group most likely is comes into the caches.
    void prefetch(std::uint64_t key) const { __builtin_prefetch(slot(home(hash(key))), 1); }
    /// Changes where groups come to lie elsewhere.
    std::uint64_t slots() const { return slots_; }
    /// Adds the groups of another table whose hashes are in a range; how many rows these have.
    std::uint64_t merge(const GroupSums& other, std::uint64_t low, std::uint64_t high) {
        std::uint64_t rows = 0;
        for (std::uint64_t at = other.home(low); at < other.slots_; ++at) {
            const std::uint64_t* from = other.slot(at);
            if (from[0] == 0 && at > other.home(high)) break;
            if (from[0] == 0 || hash(from[1]) < low || hash(from[1]) > high) continue;
            std::uint64_t* into = group(from[1]);
            rows += from[0];
            into[0] += from[0];
            for (std::uint32_t k = 2; k < width_; ++k) into[k] += from[k];
        }
        return rows;
    }
    /// Calls use(words).
    template <class Use>
    void for_each(Use use) const {
        for (std::uint64_t at = 0; at < slots_; ++at)
            if (slot(at)[0] != 0) use(slot(at));
    }

  private:
    static constexpr std::uint64_t slack = 64;  // for those that the last homes push on

    static std::uint64_t hash(std::uint64_t key) {
        // Odd; the upper half, which keys that follow each other hardly change, gets the lower's.
        key *= 0xD2E7470EE14C6C93u;
        key ^= key >> 32;
        return key * 0xCA5A826395121157u;
    }
    std::uint64_t home(std::uint64_t hash) const { return hash >> shift_; }
    std::uint64_t* slot(std::uint64_t at) const {
        return buffer_.as<std::uint64_t>() + at * width_;
    }
    void make(std::uint64_t slots) {
        slots_ = slots + slack;
        shift_ = 64 - (static_cast<unsigned>(std::bit_width(slots)) - 1);
        groups_ = 0;
        const std::size_t bytes = slots_ * width_ * sizeof(std::uint64_t);
        buffer_ = buffers_->take(bytes);
        std::memset(buffer_.memory.get(), 0, bytes);
    }
    void grow() {
        GroupSums larger(*buffers_, slots_ - slack, sums());
        larger.merge(*this, 0, UINT64_MAX);
        std::swap(buffer_, larger.buffer_);
        slots_ = larger.slots_, shift_ = larger.shift_, groups_ = larger.groups_;
    }

    Buffers* buffers_;
    Buffer buffer_;
    std::uint64_t slots_ = 0, groups_ = 0;
    unsigned shift_ = 61;
    std::uint32_t width_;
};

}  // namespace numatwin::native::tasks
