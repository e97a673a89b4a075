// The loops of a scan, one set for each instruction set; the best that the CPU has is chosen once.
//
// low <= x <= high, unsigned, is one subtraction and one comparison: x - low <= high - low.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace numatwin::native {

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

}  // namespace numatwin::native
