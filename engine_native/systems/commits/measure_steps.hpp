// What the smallest steps of a commit cost on this host, each measured alone: copies to and from
// shared memory, what either end of a message does, turns of processes on a processor.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "systems/commits/run_setup.hpp"

namespace numatwin::native {

// One figure: a mean per step for each of some windows, in ns. 0 where a parameter does not matter.
struct StepCost {
    std::string name;
    std::uint64_t bytes = 0;   // of a block or message
    std::uint64_t region = 0;  // bytes of the memory that blocks lie in, at random
    std::uint64_t count = 0;   // steps posted at a time
    std::vector<double> samples_ns = {};
};

// How long to measure: windows of a figure, and the least time of each.
struct StepPlan {
    std::uint32_t windows = 9;
    std::int64_t window_ns = 500'000;
};

// Steps on shared memory by this processor's own loads and stores, by one thread that goes through
// 32 KiB of its own before each get, update and insert, which does not count; those on blocks
// again (…-together) while a second process works on the same blocks, where there are two `cpus`:
//
//     block-get     READ a block at a random place, then its first word again
//     block-update  the same, and lock it by CAS, copy it twice, WRITE it back
//     block-insert  make a block and WRITE it, at one place after the other; each time after a bit
//                   was set and 8 KiB of words were read, which does not count
//     words-get     READ words that are in the cache; per block of `bytes`
//     word-add      an atomic add to a word of one's own
//     key-draw      a record of a transaction: its number, and where it lies; uniform
//     timestamp     the end of the leading run in words at hand, and the bit of the next timestamp
//     note          what a transaction did is counted
//     clock         a look at the clock
std::vector<StepCost> measure_blocks(const std::vector<std::uint64_t>& sizes,
                                     const std::vector<std::uint64_t>& regions,
                                     const std::vector<int>& cpus, const StepPlan& plan);

// What each end does for `count` requests or messages posted at once. Both ends are in one thread,
// which works for one and then for the other, so that nobody waits:
//
//     post-OPERATION      until they are handed over
//     serve-OPERATION     by the other end, of all; for requests with its answers
//     complete-OPERATION  until the first end knows, of all
//     idle-look           a look at the network with nothing there
//     arm                 going to sleep, but for the sleep
//
// OPERATION: get, put (published blocks, with the flush that they are waited for by), word (a
// block's first), compare-and-swap, add, message. Per request.
std::vector<StepCost> measure_ends(const RunSetup& run, const std::vector<std::uint64_t>& sizes,
                                   const std::vector<std::uint64_t>& counts, const StepPlan& plan);

// Turns of processes; forks, so the caller should have one thread:
//
//     yield          giving way where nobody waits
//     turn           giving way to another process that does the same: until it is its turn
//     slice          how long a process runs while another one waits for that processor
//     sleep-same     a message of `bytes` to a sleeper on the same processor, and back; half of it
//     sleep-other    the same to a sleeper on another processor (where there is one)
//     post-across    handing over a message to one on another processor that looks all the time
//     serve-across   receiving its answer
//     interrupted    what a message to a sleeper on another processor, and its answer, take of the
//                    time of a process there that never stops, by what it does just before and
//                    after; from times alike before and after, where there are enough
//     post-sleeper   handing over a message to a sleeper on another processor
std::vector<StepCost> measure_turns(const RunSetup& run, std::uint64_t bytes,
                                    const std::vector<int>& cpus, const StepPlan& plan);

}  // namespace numatwin::native
