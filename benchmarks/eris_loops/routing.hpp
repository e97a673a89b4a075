// Command routing: the partition table, outgoing buffers, latch-free incoming double buffers.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "commands.hpp"
#include "lines.hpp"

// A node of the partition table's CSB+-tree; its children (or, on the last level, the identifiers
// of its AEUs) lie side by side.
struct alignas(line_bytes) TableNode {
    Key bound[7];  // child k + 1 begins at bound[k]
    const void* first;
};
static_assert(sizeof(TableNode) == line_bytes);

using AeuId = std::uint32_t;

// Equal ranges of `domain` for 8^levels AEUs, all nodes full.
struct PartitionTable {
    PartitionTable(unsigned depth, Key domain) : levels(depth), nodes(depth) {
        const std::size_t aeus = std::size_t{1} << (3 * depth);
        for (std::size_t aeu = 0; aeu < aeus; ++aeu) ids.push_back(static_cast<AeuId>(aeu));
        for (unsigned level = depth; level-- > 0;) {
            const std::size_t count = std::size_t{1} << (3 * level);
            const Key width = domain / count;
            nodes[level].resize(count);
            for (std::size_t n = 0; n < count; ++n) {
                TableNode& node = nodes[level][n];
                for (Key k = 0; k < 7; ++k) node.bound[k] = n * width + (k + 1) * (width / 8);
                node.first = level + 1 == depth ? static_cast<const void*>(&ids[8 * n])
                                                : &nodes[level + 1][8 * n];
            }
        }
    }
    const TableNode* root() const { return nodes[0].data(); }

    unsigned levels;
    std::vector<std::vector<TableNode>> nodes;
    std::vector<AeuId> ids;
};

inline std::size_t child_of(const TableNode& node, Key key) {
    std::size_t child = 0;
    for (const Key bound : node.bound) child += key >= bound;
    return child;
}

struct Outgoing {
    Command* commands;  // at a cache line's start
    std::uint32_t count, capacity;
    AeuId target;
};

// An owner's pair of incoming buffers. A descriptor: 1 bit active, 32 bits offset, 31 bits writers.
struct alignas(line_bytes) Incoming {
    std::atomic<std::uint64_t> descriptor;
    Line* lines;
    std::uint64_t capacity_bytes;
};
struct Owner {
    std::atomic<std::uint32_t> writable;
    Incoming buffer[2];
};
constexpr unsigned offset_shift = 31;
constexpr std::uint64_t active_bit = std::uint64_t{1} << 63;

// Copies an outgoing buffer into its target's incoming buffer; false if that is full.
//
// The writer reads the writable buffer's descriptor; one CAS advances the offset by its size and
// counts it among the writers; after the copy it takes itself off. The owner, once it has cleared
// the active bit, waits until no writer is left.
[[gnu::noinline]] inline bool flush(Outgoing& out, std::span<Owner> owners) {
    Owner& owner = owners[out.target];
    const std::uint64_t lines = (out.count * sizeof(Command) + line_bytes - 1) / line_bytes;
    const std::uint64_t bytes = lines * line_bytes;
    for (;;) {
        Incoming& in = owner.buffer[owner.writable.load(std::memory_order_acquire)];
        std::uint64_t seen = in.descriptor.load(std::memory_order_acquire);
        if ((seen & active_bit) == 0) continue;  // swapped just now
        const std::uint64_t offset = (seen & ~active_bit) >> offset_shift;
        if (offset + bytes > in.capacity_bytes) return false;
        if (!in.descriptor.compare_exchange_weak(seen, seen + (bytes << offset_shift) + 1,
                                                 std::memory_order_acq_rel)) {
            continue;
        }
        const auto* from = reinterpret_cast<const Line*>(out.commands);
        Line* to = in.lines + offset / line_bytes;
        for (std::uint64_t line = 0; line < lines; ++line) to[line] = from[line];
        in.descriptor.fetch_sub(1, std::memory_order_release);
        out.count = 0;
        return true;
    }
}

// Looks up the target of each command, a group level by level, and appends it to that target's
// outgoing buffer.
[[gnu::noinline]] inline void route(const PartitionTable& table, std::span<const Command> batch,
                                    std::span<Outgoing> outgoing, std::span<Owner> owners) {
    const TableNode* at[group_size];
    for (std::size_t done = 0; done < batch.size(); done += group_size) {
        const Command* commands = &batch[done];
        const std::size_t count = std::min(group_size, batch.size() - done);
        for (std::size_t i = 0; i < count; ++i) at[i] = table.root();
        for (unsigned level = 1; level < table.levels; ++level) {
            for (std::size_t i = 0; i < count; ++i) {
                at[i] =
                    static_cast<const TableNode*>(at[i]->first) + child_of(*at[i], commands[i].key);
                prefetch(at[i]);
            }
        }
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t child = child_of(*at[i], commands[i].key);
            Outgoing& out = outgoing[static_cast<const AeuId*>(at[i]->first)[child]];
            out.commands[out.count++] = commands[i];
            if (out.count == out.capacity) flush(out, owners);
        }
    }
}
