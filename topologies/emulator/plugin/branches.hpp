// Branches, and a predictor of them that is played for each processor, as caches are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace numatwin {

// Instructions that are executed one after the other, up to a branch. Returns are no branches here:
// processors keep a stack of where they go.
struct Block {
    enum Ending : std::uint8_t { OTHER, CONDITIONAL, INDIRECT, SYSTEM_CALL };

    std::uint64_t begin = 0, end = 0;  // addresses: of the first instruction, behind the last
    unsigned instructions = 0;
    Ending ending = OTHER;
    bool fused = false;  // a comparison and the branch behind it, which processors execute as one

    // What the kernel executes lies in the upper half of the addresses.
    bool of_kernel() const { return begin >> 63; }
    unsigned operations() const { return instructions - fused; }
};

// Two predictors of whether a branch is taken, counters by its address and by that and the branches
// before it, and a third that chooses the better one (McFarling, Combining Branch Predictors,
// 1993). Where an indirect jump goes: where it went last after the same branches. Newer ones know
// longer histories; what depends on data alone, none predicts.
class BranchPredictor {
  public:
    // Nothing is taken at first, and addresses alone count.
    BranchPredictor() : by_address_(SIZE), by_history_(SIZE), chosen_(SIZE), to_(SIZE) {}

    // `next` follows the block of the last call; returns whether the branch between them, if there
    // is one, was predicted wrongly.
    bool mispredicts(const Block& next) {
        const Block last = last_;
        last_ = next;
        if (last.ending == Block::CONDITIONAL) return decides(last.end, next.begin != last.end);
        if (last.ending == Block::INDIRECT) return jumps(last.end, next.begin);
        return false;
    }

  private:
    // Some KiB, as in hardware, of counters of three bits, as in TAGE (Seznec and Michaud 2006):
    // one of two bits follows chance where a branch goes one way three times in four.
    static constexpr std::size_t SIZE = 1U << 14;
    static constexpr std::uint8_t TAKEN = 4, COUNTED_TO = 7;

    bool decides(std::uint64_t address, bool taken) {
        std::uint8_t& plain = by_address_[address % SIZE];
        std::uint8_t& after = by_history_[(address ^ history_) % SIZE];
        std::uint8_t& choice = chosen_[address % SIZE];
        const bool plain_right = (plain >= TAKEN) == taken, after_right = (after >= TAKEN) == taken;
        const bool right = choice >= TAKEN ? after_right : plain_right;
        if (plain_right != after_right) count(choice, after_right);
        count(plain, taken);
        count(after, taken);
        history_ = history_ << 1 | taken;
        return !right;
    }

    bool jumps(std::uint64_t address, std::uint64_t to) {
        std::uint64_t& expected = to_[(address ^ history_) % SIZE];
        const bool right = expected == to;
        expected = to;
        history_ = history_ << 2 ^ to;
        return !right;
    }

    static void count(std::uint8_t& counter, bool up) {
        if (up && counter < COUNTED_TO) ++counter;
        if (!up && counter > 0) --counter;
    }

    std::vector<std::uint8_t> by_address_, by_history_, chosen_;
    std::vector<std::uint64_t> to_;
    std::uint64_t history_ = 0;
    Block last_;
};

}  // namespace numatwin
