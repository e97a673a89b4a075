// The prefix tree (8 bits of the key a level): batched lookups and upserts, loading, flattening.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <span>

#include "commands.hpp"
#include "lines.hpp"

struct Entry {
    Key key;
    std::uint64_t value;
};

// 256 pointers: to nodes, or on the last level to entries; null where there is no key.
struct alignas(line_bytes) Node {
    void* slot[256];
};

// Memory of one AEU: from the front of a chunk, and nodes that came back.
class Arena {
  public:
    explicit Arena(std::size_t bytes)
        : memory_(new (std::align_val_t{line_bytes}) std::byte[bytes]),
          at_(memory_),
          end_(memory_ + bytes) {}
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;
    ~Arena() { operator delete[](memory_, std::align_val_t{line_bytes}); }

    Entry* entry() { return static_cast<Entry*>(take(sizeof(Entry))); }
    Node* empty_node() {
        Node* node = free_;
        if (node != nullptr) {
            free_ = static_cast<Node*>(node->slot[0]);
        } else {
            node = static_cast<Node*>(take(sizeof(Node)));
        }
        auto* lines = reinterpret_cast<Line*>(node);
        for (std::size_t k = 0; k < sizeof(Node) / line_bytes; ++k) lines[k] = {};
        return node;
    }
    void give_back(Node* node) {
        node->slot[0] = free_;
        free_ = node;
    }

  private:
    void* take(std::size_t bytes) {
        if (bytes > static_cast<std::size_t>(end_ - at_)) grow();
        std::byte* taken = at_;
        at_ += bytes;
        return taken;
    }
    [[gnu::noinline, noreturn]] static void grow() {
        std::fputs("instruction_counts: a chunk is too small\n", stderr);
        std::exit(1);
    }

    std::byte *memory_, *at_, *end_;
    Node* free_ = nullptr;
};

struct Tree {
    Node* root;
    unsigned levels;
};

inline unsigned digit(Key key, unsigned shift) {
    return (key >> shift) & 255;
}

// Where the key's last-level node hangs; makes the nodes that are missing.
[[gnu::noinline]] inline Node* leaf_of(Tree& tree, Arena& nodes, Key key) {
    Node* at = tree.root;
    for (unsigned shift = 8 * (tree.levels - 1); shift > 0; shift -= 8) {
        void*& slot = at->slot[digit(key, shift)];
        if (slot == nullptr) slot = nodes.empty_node();
        at = static_cast<Node*>(slot);
    }
    return at;
}

// Inserts pairs in the order of their keys: the last-level node is looked for once per node.
// Entries and nodes come from two chunks, so that entries lie densely.
[[gnu::noinline]] inline void bulk_load(Tree& tree, Arena& nodes, Arena& entries,
                                        std::span<const Entry> pairs) {
    Key prefix = ~Key{0};
    Node* leaf = nullptr;
    for (const Entry& pair : pairs) {
        if (pair.key >> 8 != prefix) {
            prefix = pair.key >> 8;
            leaf = leaf_of(tree, nodes, pair.key);
        }
        Entry* entry = entries.entry();
        *entry = pair;
        leaf->slot[pair.key & 255] = entry;
    }
}

// Writes the pairs below `node` in the order of their keys; returns the end of what it wrote.
inline Entry* flatten(const Node* node, unsigned levels, Entry* to) {
    for (const void* child : node->slot) {
        if (child == nullptr) continue;
        if (levels == 1) {
            *to++ = *static_cast<const Entry*>(child);
        } else {
            to = flatten(static_cast<const Node*>(child), levels - 1, to);
        }
    }
    return to;
}

[[gnu::noinline]] inline Entry* flatten(const Tree& tree, Entry* to) {
    return flatten(tree.root, tree.levels, to);
}

// Calls `found(entry, command)` for each command whose key is in the tree. A group of commands goes
// down level by level: the misses of a level overlap, each slot is fetched a level ahead.
template <typename Found>
[[gnu::always_inline]] inline void walk(const Tree& tree, std::span<const Command> batch,
                                        Found found) {
    static constexpr Node nowhere{};  // where a key leads that is not in the tree
    const Node* at[group_size];
    for (std::size_t done = 0; done < batch.size(); done += group_size) {
        const Command* commands = &batch[done];
        const std::size_t count = std::min(group_size, batch.size() - done);
        unsigned shift = 8 * (tree.levels - 1);
        for (std::size_t i = 0; i < count; ++i) {
            at[i] = tree.root;
            prefetch(&tree.root->slot[digit(commands[i].key, shift)]);
        }
        for (; shift > 0; shift -= 8) {
            for (std::size_t i = 0; i < count; ++i) {
                auto* child = static_cast<const Node*>(at[i]->slot[digit(commands[i].key, shift)]);
                at[i] = child != nullptr ? child : &nowhere;
                prefetch(&at[i]->slot[digit(commands[i].key, shift - 8)]);
            }
        }
        Entry* entries[group_size];
        for (std::size_t i = 0; i < count; ++i) {
            entries[i] = static_cast<Entry*>(at[i]->slot[digit(commands[i].key, 0)]);
            prefetch(entries[i]);
        }
        for (std::size_t i = 0; i < count; ++i) {
            Entry* entry = entries[i];
            if (entry != nullptr && entry->key == commands[i].key) found(*entry, commands[i]);
        }
    }
}

[[gnu::noinline]] inline std::uint64_t lookup(const Tree& tree, std::span<const Command> batch) {
    std::uint64_t sum = 0;
    walk(tree, batch, [&](const Entry& entry, const Command&) { sum += entry.value; });
    return sum;
}

[[gnu::noinline]] inline void upsert(const Tree& tree, std::span<const Command> batch) {
    walk(tree, batch, [](Entry& entry, const Command& command) { entry.value = command.value; });
}

[[gnu::noinline]] inline void upsert_shared(const Tree& tree, std::span<const Command> batch) {
    walk(tree, batch, [](Entry& entry, const Command& command) {
        std::atomic_ref(entry.value).exchange(command.value, std::memory_order_acq_rel);
    });
}
