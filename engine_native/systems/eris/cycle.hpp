// A balancing cycle: what changes hands, between whom, and how far it is.
//
// An index. The new table and the cycle are published together (Control); each AEU takes both over
// at the start of its next round, after it has swapped its incoming buffers. Who sends by the new
// table has taken it over before, so who receives finds it published, and takes it over before it
// looks at what it received: no key is ever without an owner, or with two.
//
// A transfer moves a key range [first, last] from its source to its target. Until a part of it has
// been sent, the source goes on executing commands for it: the target, to whom the new table sends
// them, hands them on. Once it has been sent, the source hands on what still comes. A part is put
// into the target's mailbox before any command is handed on, and mailboxes are emptied after
// incoming buffers: so who gets a command for a part that it does not hold knows where it is, and a
// command never waits.
//
//   link (one node)   the source unlinks the range, the target links it: no data moves
//   copy (two nodes)  chunk by chunk: the source flattens a chunk, removes it from its tree and
//                     sends it; the target builds it in its own memory and links it
//
// A column. Entries have no keys, so that a scan must find each exactly once, with its source or
// with its target. Scans carry the version of the layout that they were made under: a part that
// leaves is scanned by its source for scans of the old version, and by its target for the new one.
//
//   1. each AEU, when it takes the cycle over, sets aside what leaves it; goes on scanning it
//   2. the target takes it as it is (link), or copies it, chunk by chunk, while both go on
//   3. when all targets have theirs, the new version is published; new scans use it
//   4. when no scan of the old version is left, sources forget what left them, targets attach it
//
// The cycle is over when all AEUs have taken it over and all transfers are done.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "memory/clock.hpp"

namespace numatwin::native {

struct Transfer {
    std::uint32_t source = 0, target = 0;
    bool link = false;
    std::uint64_t first = 0, last = 0;  // keys of an index, both included
    std::uint64_t entries = 0;          // of a column
    /// Chunks that were sent and not yet built.
    std::atomic<std::uint32_t> under_way{0};

    Transfer(std::uint32_t source, std::uint32_t target, bool link)
        : source(source), target(target), link(link) {}
    Transfer(const Transfer& other)
        : source(other.source),
          target(other.target),
          link(other.link),
          first(other.first),
          last(other.last),
          entries(other.entries) {}
};

struct Cycle {
    std::size_t object = 0;
    std::vector<std::uint64_t> bounds;  // [A + 1] of an index, from now on
    std::vector<Transfer> transfers;
    Ticks began = 0;
    std::atomic<Ticks> ended{0};
    std::atomic<std::uint64_t> copied_bytes{0};
    /// AEUs that have not taken it over, and transfers not done.
    std::atomic<std::size_t> left{0};
    /// Of a column: transfers, and AEUs, that are not ready for the new version; its number, once
    /// it is published; and who will hold entries then.
    std::atomic<std::size_t> unready{0};
    std::atomic<std::uint64_t> version{0};
    std::vector<std::atomic<bool>> holds;

    explicit Cycle(std::size_t workers) : holds(workers) {}

    /// One of `left` is done.
    void done() {
        if (left.fetch_sub(1, std::memory_order_acq_rel) == 1)
            ended.store(ticks(), std::memory_order_release);
    }
    bool over() const { return ended.load(std::memory_order_acquire) != 0; }
};

/// What leaves its owner when bounds change: bounds are [A + 1], do not fall, and the last
/// partition reaches to the largest key of all. A link where nodes are the same.
std::vector<Transfer> index_transfers(const std::vector<std::uint64_t>& before,
                                      const std::vector<std::uint64_t>& after,
                                      const std::vector<std::uint32_t>& node);
/// Who has too much gives to who has too little, first within its node, then in the order of AEUs
/// (as in sim/systems/eris/partitions.py). `before` and `after` have equal sums.
std::vector<Transfer> column_transfers(const std::vector<std::uint64_t>& before,
                                       const std::vector<std::uint64_t>& after,
                                       const std::vector<std::uint32_t>& node);

}  // namespace numatwin::native
