// Order-preserving prefix tree of one owner: 64-bit keys and values, node sizes fitted to the keys.
//
// A node consumes up to `prefix_bits` bits of the key. Where few keys are, a bucket of up to 16
// pairs stands for many neighbouring slots of its node, or for a whole subtree; where they are
// dense, an array of values with a presence bitmap. Bits that all keys below share are skipped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "memory/memory.hpp"
#include "storage/tree_word.hpp"

namespace numatwin::native {

/// How wide keys are (1 to 64 bits), and how many bits a node consumes at most (1 to 16).
struct TreeShape {
    unsigned key_bits = 64;
    unsigned prefix_bits = 8;

    /// Throws std::invalid_argument outside these bounds.
    void check() const;
};

/// Takes a run of pairs of a walk; returns whether more of them are wanted.
using Sink = bool (*)(void* context, std::span<const KeyValue> run);

/// The one that calls visit(key, value), and wants all.
template <class Visit>
bool visit_each(void* visit, std::span<const KeyValue> run) {
    for (const KeyValue& pair : run) (*static_cast<Visit*>(visit))(pair.key, pair.value);
    return true;
}

/// One thread uses it at a time. All ranges are inclusive, so that the largest key can be named.
/// Where an allocation fails, std::bad_alloc leaves a tree that is valid and answers right.
class PrefixTree {
  public:
    /// Throws std::invalid_argument for a shape outside its bounds. `memory` outlives the tree.
    explicit PrefixTree(Memory& memory, TreeShape shape = {});
    PrefixTree(PrefixTree&& other) noexcept;
    PrefixTree& operator=(PrefixTree&& other) noexcept;
    ~PrefixTree();

    /// Writes found[i], and where it is 1 values[i] (else 0); returns how many were found.
    std::size_t lookup(std::span<const std::uint64_t> keys, std::uint64_t* values,
                       std::uint8_t* found) const noexcept;
    /// In their order; returns how many keys are new. When an allocation fails, or at a key wider
    /// than key_bits (std::invalid_argument), the keys before that one are in the tree.
    std::size_t upsert(std::span<const std::uint64_t> keys, std::span<const std::uint64_t> values);

    /// Calls visit(key, value) in the order of keys for all of [first, last].
    template <class Visit>
    void scan(std::uint64_t first, std::uint64_t last, Visit&& visit) const {
        walk(first, last, visit_each<std::remove_reference_t<Visit>>,
             const_cast<void*>(static_cast<const void*>(&visit)));
    }
    /// Writes the first pairs of [first, last] in order, as many as `piece` takes; returns how
    /// many. The next piece starts after the last key written; fewer than asked for: it was all.
    std::size_t flatten(std::uint64_t first, std::uint64_t last, std::span<KeyValue> piece) const;
    /// Builds and links a run of ascending keys of which the tree holds none between the run's
    /// first and last; else std::invalid_argument.
    void append(std::span<const KeyValue> run);

    /// Unlinks [first, last] as a tree of its own on the same memory. Only the buckets and nodes
    /// that the two ends cut are split; all others change hands. Time: the links of what is taken.
    PrefixTree extract(std::uint64_t first, std::uint64_t last);
    /// Links all of `other`, which has the same shape and whose memory has the same manager. The
    /// tree holds no key between the other's first and last (else std::invalid_argument). When
    /// an allocation fails, each key is in one of the two trees, and absorbing can be tried again.
    void absorb(PrefixTree&& other);

    /// The same blocks from here on through another Memory of the same manager: the tree has
    /// changed hands to another thread.
    void use(Memory& memory) noexcept { memory_ = &memory; }

    std::uint64_t keys() const noexcept { return keys_; }
    /// What the tree has allocated and not released.
    std::uint64_t bytes() const noexcept { return bytes_; }
    TreeShape shape() const noexcept { return shape_; }
    /// Through how many nodes the way to a key goes.
    unsigned levels(std::uint64_t key) const noexcept;

  private:
    /// A slot of a node, or the root where `node` is null.
    struct Place {
        Word node;
        std::size_t index = 0;
    };
    /// Where a key belongs: a bucket, an array of values, nothing, or a node whose skipped bits
    /// differ from the key's.
    struct Path {
        Place last;
        /// Where last.node is linked.
        Place parent;
        /// The last place that covers all keys of an array of values.
        Place block;
    };
    struct Releasing {
        PrefixTree* tree = nullptr;
        std::size_t bytes = 0;
        void operator()(void* block) const noexcept { tree->release(block, bytes); }
    };
    /// A block that is not linked yet; what it releases to a caller is from then on the tree's.
    using Fresh = std::unique_ptr<void, Releasing>;
    Fresh fresh(std::size_t bytes) { return {allocate(bytes), {this, bytes}}; }

    // prefix_tree.cpp: descending, and what changes one bucket or array of values.
    Word read(Place place) const noexcept {
        return place.node.is_null() ? root_ : place.node.block<Node>()->slots[place.index];
    }
    /// The 2^span slots there, or the root.
    std::span<Word> slots_of(Place place, unsigned span) noexcept;
    void write(Place place, Word word) noexcept;
    void clear(Place place, unsigned span) noexcept;
    bool are_null(Place place, unsigned span) noexcept;
    /// How many low bits of the key are free in the slots that `word` stands in.
    unsigned coverage(Place place, Word word) const noexcept {
        return place.node.is_null() ? shape_.key_bits : place.node.shift() + word.span();
    }
    bool fits(std::uint64_t key) const noexcept { return key <= low_mask(shape_.key_bits); }
    /// Whether the way to `key` leads on through `word`, a node.
    bool leads_on(Place place, Word word, std::uint64_t key) const noexcept;
    void descend(std::span<const std::uint64_t> keys, Place* places) const noexcept;
    /// Whether the key is new; UNFIT where the tree has to change its shape first.
    int try_upsert(Place place, std::uint64_t key, std::uint64_t value) noexcept;
    void take_from(PrefixTree& other) noexcept;

    // prefix_tree_grow.cpp: one step at a time, each from one valid tree to another.
    void* allocate(std::size_t bytes);
    void release(void* block, std::size_t bytes) noexcept;
    void release_block(Word word) noexcept;
    void release_all(Word word) noexcept;
    unsigned most_bits(unsigned top) const noexcept;
    /// Of a node on the grid of dense keys that ends below `top`.
    unsigned grid_bits(unsigned top) const noexcept;
    Path path_of(std::uint64_t key) const noexcept;
    bool insert(std::uint64_t key, std::uint64_t value);
    void make_room(const Path& path, std::uint64_t key);
    void make_bucket(Place place, std::uint64_t key, std::uint64_t value);
    void enlarge(Place place, Word word);
    void halve(Place place, Word word);
    void double_node(const Path& path);
    void make_child(Place place, Word word, std::uint64_t key);
    void raise(Place place, std::uint64_t key);
    void raise_to(Place place, Word like);
    void widen(Place place, std::uint64_t key, unsigned top);
    Word new_node(std::uint64_t key, unsigned top, unsigned bits, unsigned span);
    bool make_leaf(const Path& path);
    Leaf* new_leaf(std::uint64_t key);
    void move_values(Leaf* leaf, Word word) const noexcept;
    std::size_t block_bytes(Word word) const noexcept;
    unsigned top_of(Word word) const noexcept;
    static std::uint64_t prefix_of(Word word) noexcept;

    // prefix_tree.cpp
    void walk(std::uint64_t first, std::uint64_t last, Sink sink, void* context) const;
    bool walk_word(Word word, std::uint64_t first, std::uint64_t last, Sink sink,
                   void* context) const;
    struct Size {
        std::uint64_t keys = 0;
        std::uint64_t bytes = 0;
    };
    Size size_of(Word word) const noexcept;
    /// The least or the greatest key below a word that is not null.
    std::uint64_t end_key(Word word, bool greatest) const noexcept;

    void build(Place place, unsigned span, std::span<const KeyValue> run);
    void build_slots(Place first, unsigned span, std::span<const KeyValue> run);

    // prefix_tree_extract.cpp
    class Cut;
    void tidy(std::uint64_t key) noexcept;
    bool merge_with_buddy(Place place, Word word) noexcept;
    bool link(Place at, unsigned span, PrefixTree& other, Place from);
    bool link_slots(Word node, PrefixTree& other, Place from);
    bool link_pairs(PrefixTree& other, Place from);
    void split_node(Place place);

    Memory* memory_;
    TreeShape shape_;
    /// An array of values stands for this many low bits of the key.
    unsigned leaf_bits_;
    /// From so many keys on it needs no more memory than buckets do.
    std::uint64_t leaf_least_;
    Word root_;
    std::uint64_t keys_ = 0;
    std::uint64_t bytes_ = 0;
    /// How often a node's block has been replaced: places found before are then stale.
    std::uint64_t replaced_ = 0;
};

}  // namespace numatwin::native
