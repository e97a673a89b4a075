// The 64-bit words that link a prefix tree: what a slot of a node holds, and the blocks behind it.
//
//   bits 0-1    0: a link (or nothing); 1, 2, 3: a bucket of 4, 8, 16 pairs
//   bits 2-5    span: the same word stands in 2^span neighbouring slots
//   bits 6-47   address of the block, which is aligned to 64 bytes
//   bits 48-63  bucket: which of its 16 places are taken
//               link: bits 48-53 shift, 54-57 bits - 1, 58 array of values, 59 node
//
// So a descent needs of a node only the one slot it goes through, and a look-up of a bucket only
// the line its key is at home in: what else one must know of them stands in the word itself.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

namespace numatwin::native {

// A key with its value, as runs of them are flattened, streamed and built.

struct KeyValue {
    std::uint64_t key;
    std::uint64_t value;

    friend bool operator==(const KeyValue&, const KeyValue&) = default;
};

/// The keys that agree in all bits from `top` on; `top` is 0 to 64.
constexpr std::uint64_t above(std::uint64_t key, unsigned top) {
    return top >= 64 ? 0 : key >> top << top;
}
/// The `bits` low bits set; `bits` is 0 to 64.
constexpr std::uint64_t low_mask(unsigned bits) {
    return bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
}
/// The highest bit that is set in a word that is not 0.
constexpr unsigned highest_bit(std::uint64_t word) {
    return 63U - static_cast<unsigned>(std::countl_zero(word));
}

struct Node;
struct Leaf;
struct Line;

/// See the layout above.
struct Word {
    std::uint64_t raw = 0;

    static constexpr std::uint64_t ADDRESS = 0x0000'FFFF'FFFF'FFC0;
    static constexpr std::uint64_t LEAF = std::uint64_t{1} << 58, NODE = std::uint64_t{1} << 59;

    static Word bucket(unsigned kind, const void* block, std::uint64_t taken, unsigned span) {
        return {address_of(block) | taken << 48 | span << 2 | kind};
    }
    static Word node(const void* block, unsigned shift, unsigned bits, unsigned span) {
        return {address_of(block) | NODE | std::uint64_t{shift} << 48 |
                std::uint64_t{bits - 1} << 54 | span << 2};
    }
    static Word leaf(const void* block, unsigned span) {
        return {address_of(block) | LEAF | span << 2};
    }

    bool is_null() const { return raw == 0; }
    bool is_bucket() const { return (raw & 3) != 0; }
    bool is_node() const { return (raw & 3) == 0 && (raw & NODE) != 0; }
    bool is_leaf() const { return (raw & 3) == 0 && (raw & LEAF) != 0; }
    unsigned kind() const { return raw & 3; }
    unsigned span() const { return raw >> 2 & 15; }
    Word with_span(unsigned span) const {
        return {(raw & ~std::uint64_t{15 << 2}) | std::uint64_t{span} << 2};
    }

    std::uint64_t taken() const { return raw >> 48; }
    unsigned count() const { return static_cast<unsigned>(std::popcount(taken())); }
    Word with_taken(std::uint64_t taken) const {
        return {(raw & ~(0xFFFFULL << 48)) | taken << 48};
    }

    /// A node's slots are chosen by `bits` bits of the key, of which the lowest is bit `shift`.
    unsigned shift() const { return raw >> 48 & 63; }
    unsigned bits() const { return (raw >> 54 & 15) + 1; }
    unsigned top() const { return shift() + bits(); }
    std::size_t slots() const { return std::size_t{1} << bits(); }
    std::size_t index(std::uint64_t key) const { return key >> shift() & (slots() - 1); }

    template <class Block>
    Block* block() const {
        return reinterpret_cast<Block*>(raw & ADDRESS);
    }

    friend bool operator==(const Word&, const Word&) = default;

  private:
    static std::uint64_t address_of(const void* block) {
        return reinterpret_cast<std::uint64_t>(block);
    }
};

/// Up to 2^16 slots follow the header.
struct Node {
    /// The bits above the node's top that all its keys share; below them zeros.
    std::uint64_t prefix;
    std::uint64_t unused;
    Word slots[];

    static std::size_t bytes(unsigned bits) {
        return std::max<std::size_t>(64, sizeof(Node) + (sizeof(Word) << bits));
    }
};
static_assert(sizeof(Node) == 16 && sizeof(Word) == 8);

/// An empty node in a fresh block, above what agrees with `key` from `top` on.
inline Word make_node(void* fresh, std::uint64_t key, unsigned top, unsigned bits, unsigned span) {
    auto* block = static_cast<Node*>(fresh);
    block->prefix = above(key, top);
    const Word node = Word::node(block, top - bits, bits, span);
    std::fill_n(block->slots, node.slots(), Word{});
    return node;
}

/// Calls use(word) for each word of a node's slots, once, but for those that are null.
template <class Use>
void each_word(Word node, Use use) {
    const Word* slots = node.block<Node>()->slots;
    for (std::size_t i = 0; i < node.slots(); i += std::size_t{1} << slots[i].span())
        if (!slots[i].is_null()) use(slots[i]);
}

/// The values of 2^leaf_bits neighbouring keys; the bitmap says which are there. The values start
/// at a cache line of their own.
struct Leaf {
    std::uint64_t base;
    std::uint64_t count;
    std::uint64_t present[];

    static std::size_t head_bytes(unsigned leaf_bits) {
        const std::size_t words = leaf_bits <= 6 ? 1 : std::size_t{1} << (leaf_bits - 6);
        return (sizeof(Leaf) + 8 * words + 63) / 64 * 64;
    }
    static std::size_t bytes(unsigned leaf_bits) {
        return std::max<std::size_t>(64, head_bytes(leaf_bits) + (std::size_t{8} << leaf_bits));
    }
    std::uint64_t* values(unsigned leaf_bits) {
        return reinterpret_cast<std::uint64_t*>(reinterpret_cast<std::byte*>(this) +
                                                head_bytes(leaf_bits));
    }
    bool has(std::uint64_t at) const { return present[at / 64] >> at % 64 & 1; }
    /// Whether there was none before.
    bool put(std::uint64_t at, std::uint64_t value, unsigned leaf_bits) {
        values(leaf_bits)[at] = value;
        const bool is_new = !has(at);
        present[at / 64] |= std::uint64_t{1} << at % 64;
        count += is_new;
        return is_new;
    }
};

/// An empty one in a fresh block, for the neighbours of `key`.
inline Leaf* make_leaf(void* fresh, std::uint64_t key, unsigned leaf_bits) {
    std::memset(fresh, 0, Leaf::head_bytes(leaf_bits));
    auto* leaf = static_cast<Leaf*>(fresh);
    leaf->base = above(key, leaf_bits);
    return leaf;
}

/// Keys that go down a tree together, level by level: what each will read next is prefetched before
/// the first of them reads it (group prefetching: Chen et al., Improving hash join performance
/// through prefetching, ICDE 2004).
inline constexpr std::size_t GROUP = 64;

/// Goes down from `root` for each key; `load(slot)` reads a word, `prefetch(word, key)` asks for
/// what `end(word, key, position)` reads. Bits that a node skips are not compared: the end tells.
template <class Load, class Prefetch, class End>
[[gnu::always_inline]] inline void look_up(std::span<const std::uint64_t> keys, const Word* root,
                                           Load load, Prefetch prefetch, End end) {
    for (std::size_t start = 0; start < keys.size(); start += GROUP) {
        const std::size_t count = std::min(GROUP, keys.size() - start);
        const std::uint64_t* key = keys.data() + start;
        Word words[GROUP];
        const Word* slots[GROUP];
        std::uint8_t going[GROUP];
        std::size_t left = 0;
        const auto step = [&](std::size_t i, Word word) {
            words[i] = word;
            if (word.is_node()) {
                slots[i] = word.block<Node>()->slots + word.index(key[i]);
                __builtin_prefetch(slots[i]);
                going[left++] = static_cast<std::uint8_t>(i);
            } else {
                prefetch(word, key[i]);
            }
        };
        for (std::size_t i = 0; i < count; ++i) step(i, load(root));
        while (left > 0) {
            const std::size_t active = std::exchange(left, 0);
            for (std::size_t j = 0; j < active; ++j) step(going[j], load(slots[going[j]]));
        }
        for (std::size_t i = 0; i < count; ++i) end(words[i], key[i], start + i);
    }
}

}  // namespace numatwin::native
