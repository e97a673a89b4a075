// From an address that QEMU reports to a node and a line, memory of all nodes taken as one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "cache_sets.hpp"
#include "settings.hpp"

namespace numatwin {

class MemoryMap {
  public:
    static constexpr unsigned BLOCK_SHIFT = 20;  // ranges begin and end at whole mebibytes

    explicit MemoryMap(const Settings& settings) : line_shift_(settings.line_shift) {
        for (const MemoryRange& range : settings.memory) {
            if ((range.first | range.bytes) & ((std::uint64_t{1} << BLOCK_SHIFT) - 1))
                throw std::runtime_error("memory: expected whole mebibytes");
            const std::size_t first = range.first >> BLOCK_SHIFT;
            const std::size_t blocks = range.bytes >> BLOCK_SHIFT;
            if (place_.size() < first + blocks) place_.resize(first + blocks, NONE);
            for (std::size_t at = first; at < first + blocks; ++at) {
                if (place_[at] != NONE) throw std::runtime_error("memory: ranges overlap");
                place_[at] = static_cast<std::uint32_t>(homes_.size());
                homes_.push_back(static_cast<std::uint16_t>(range.node));
            }
        }
    }

    const std::vector<std::uint16_t>& homes() const { return homes_; }
    unsigned lines_shift() const { return BLOCK_SHIFT - line_shift_; }  // lines per block

    bool known(std::uint64_t address) const {
        const std::size_t block = address >> BLOCK_SHIFT;
        return block < place_.size() && place_[block] != NONE;
    }
    unsigned node(std::uint64_t address) const { return homes_[place_[address >> BLOCK_SHIFT]]; }
    Line line(std::uint64_t address) const {
        const std::uint64_t within = address & ((std::uint64_t{1} << BLOCK_SHIFT) - 1);
        return (Line{place_[address >> BLOCK_SHIFT]} << lines_shift()) + (within >> line_shift_);
    }

  private:
    static constexpr std::uint32_t NONE = ~std::uint32_t{0};
    unsigned line_shift_;
    std::vector<std::uint32_t> place_;  // of each block of addresses, NONE where there is no memory
    std::vector<std::uint16_t> homes_;  // the node of each block of memory
};

}  // namespace numatwin
