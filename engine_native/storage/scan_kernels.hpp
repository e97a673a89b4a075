// The sets of scan loops, and what they share: loops over one entry at a time, for what is left
// where vectors end.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace numatwin::native {

// The loops of a scan, one set for each instruction set; the best that the CPU has is chosen once.
//
// low <= x <= high, unsigned, is one subtraction and one comparison: x - low <= high - low.

/// low and high belong to it; none is in it if low > high. Equality: {x, x}.
struct ValueRange {
    std::uint64_t low = 0;
    std::uint64_t high = UINT64_MAX;
    bool empty() const { return low > high; }
};

struct SumOfMatches {
    std::uint64_t matches;
    std::uint64_t sum;  ///< modulo 2^64
};

/// `range` is not empty; `data` is aligned to its entries alone.
struct ScanKernels {
    /// Past the last position, positions() may write this many more words.
    static constexpr std::size_t positions_slack = 8;

    const char* name;
    std::uint64_t (*count)(const std::uint64_t* data, std::size_t entries, ValueRange range);
    SumOfMatches (*sum)(const std::uint64_t* data, std::size_t entries, ValueRange range);
    /// Writes ⌈entries / 64⌉ words, the bits beyond the last entry 0; returns the matches.
    std::uint64_t (*bitmap)(const std::uint64_t* data, std::size_t entries, ValueRange range,
                            std::uint64_t* words);
    /// Writes first + i for each match i; returns the matches.
    std::uint64_t (*positions)(const std::uint64_t* data, std::size_t entries, ValueRange range,
                               std::uint64_t first, std::uint64_t* positions);
};

/// The best set that this CPU has.
const ScanKernels& scan_kernels();
/// All sets that this CPU has: plain C++ ("scalar") first, the best last.
std::span<const ScanKernels* const> available_scan_kernels();

extern const ScanKernels scalar_scan_kernels;
#if defined(__x86_64__)
extern const ScanKernels avx2_scan_kernels;
extern const ScanKernels avx512_scan_kernels;
#endif

namespace one_by_one {

inline bool matches(std::uint64_t entry, ValueRange range) {
    return entry - range.low <= range.high - range.low;
}

inline std::uint64_t count(const std::uint64_t* data, std::size_t entries, ValueRange range) {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < entries; ++i) count += matches(data[i], range);
    return count;
}

inline SumOfMatches sum(const std::uint64_t* data, std::size_t entries, ValueRange range) {
    SumOfMatches sum{0, 0};
    for (std::size_t i = 0; i < entries; ++i) {
        const std::uint64_t match = matches(data[i], range);
        sum.matches += match;
        sum.sum += data[i] & -match;
    }
    return sum;
}

/// Of up to 64 entries.
inline std::uint64_t word(const std::uint64_t* data, std::size_t entries, ValueRange range) {
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < entries; ++i) {
        word |= std::uint64_t{matches(data[i], range)} << i;
    }
    return word;
}

inline std::uint64_t positions(const std::uint64_t* data, std::size_t entries, ValueRange range,
                               std::uint64_t first, std::uint64_t* positions) {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < entries; ++i) {
        positions[count] = first + i;
        count += matches(data[i], range);
    }
    return count;
}

/// Of the bits that are set; returns how many.
inline std::uint64_t positions_of(std::uint64_t word, std::uint64_t first,
                                  std::uint64_t* positions) {
    const int count = std::popcount(word);
    for (int i = 0; i < count; ++i, word &= word - 1) {
        positions[i] = first + static_cast<unsigned>(std::countr_zero(word));
    }
    return static_cast<std::uint64_t>(count);
}

}  // namespace one_by_one

}  // namespace numatwin::native
