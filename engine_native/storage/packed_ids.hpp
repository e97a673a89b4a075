// A column's index vector: ids side by side, each in as few bits as distinguish its values.
//
// Id i begins at bit i * bits, the lowest bit of a byte first; eight ids end with a byte. So
// 256-bit registers unpack eight at a time by one shuffle, one shift and one mask (Willhalm et al.,
// SIMD-Scan, PVLDB 2 (2009)).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "storage/scan_kernels.hpp"

namespace numatwin::native {

/// Ids in memory that is someone else's.
class PackedIds {
  public:
    static constexpr unsigned bits_max = 32;  ///< an id and where it begins in a byte are a word
    static constexpr std::size_t slack_bytes = 32;  ///< that loads may read past the last id

    PackedIds() = default;
    PackedIds(std::byte* bytes, unsigned bits)
        : bytes_(bytes), bits_(bits), mask_((std::uint64_t{1} << bits) - 1) {}

    /// Of so many ids, with what loads may read past them.
    static std::size_t bytes(std::uint64_t ids, unsigned bits) {
        return (ids * bits + 7) / 8 + slack_bytes;
    }
    unsigned bits() const { return bits_; }
    std::uint64_t at(std::uint64_t position) const {
        const std::uint64_t bit = position * bits_;
        std::uint64_t word;
        std::memcpy(&word, bytes_ + bit / 8, sizeof word);
        return word >> bit % 8 & mask_;
    }
    /// Memory must be zero where the id comes to lie.
    void put(std::uint64_t position, std::uint64_t id) {
        const std::uint64_t bit = position * bits_;
        std::uint64_t word;
        std::memcpy(&word, bytes_ + bit / 8, sizeof word);
        word |= id << bit % 8;
        std::memcpy(bytes_ + bit / 8, &word, sizeof word);
    }
    /// A bit for each of the ids [first, first + ids) that is in `range`, into ⌈ids / 64⌉ words;
    /// bits beyond the last one are 0. `first` is a multiple of 8.
    void match(std::uint64_t first, std::uint64_t ids, ValueRange range,
               std::uint64_t* words) const;
    /// The same without vectors.
    void match_one_by_one(std::uint64_t first, std::uint64_t ids, ValueRange range,
                          std::uint64_t* words) const;

  private:
    std::byte* bytes_ = nullptr;
    unsigned bits_ = 1;
    std::uint64_t mask_ = 1;
};

}  // namespace numatwin::native
