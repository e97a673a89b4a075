// What a prefix tree does for a batch of keys: descents whose cache misses overlap.
//
// A group of keys goes down level by level: what each will read next is prefetched before the
// first of them reads it (group prefetching: Chen et al., Improving hash join performance through
// prefetching, ICDE 2004). Upserts descend so as well, then do their work one by one in the order
// of the batch, at the places found; when a node's block has been replaced meanwhile, from the
// root again, which by then is in the caches.
#include "storage/prefix_tree.hpp"

#include <stdexcept>

#include "storage/bucket.hpp"

namespace numatwin::native {

namespace {

constexpr std::size_t GROUP = 64;
constexpr int UNFIT = -1;

/// What the end of a descent will read (inlined: see bucket::prefetch).
[[gnu::always_inline]] inline void prefetch_end(Word word, std::uint64_t key, unsigned leaf_bits) {
    if (word.is_bucket()) {
        bucket::prefetch(word, key);
    } else if (word.is_leaf()) {
        Leaf* leaf = word.block<Leaf>();
        const std::uint64_t at = key & low_mask(leaf_bits);
        __builtin_prefetch(leaf);
        if (leaf_bits > 8) __builtin_prefetch(&leaf->present[at / 64]);
        __builtin_prefetch(leaf->values(leaf_bits) + at);
    }
}

}  // namespace

PrefixTree::PrefixTree(Memory& memory, TreeShape shape) : memory_(&memory), shape_(shape) {
    if (shape.key_bits < 1 || shape.key_bits > 64)
        throw std::invalid_argument("key_bits: expected 1 to 64");
    if (shape.prefix_bits < 1 || shape.prefix_bits > 16)
        throw std::invalid_argument("prefix_bits: expected 1 to 16");
    // A shorter array would be mostly head; a longer one would be copied too long when it is made.
    leaf_bits_ = std::min(std::clamp(shape.prefix_bits, 6U, 10U), shape.key_bits);
    constexpr std::size_t BUCKET_BYTES_PER_KEY = 24;
    leaf_least_ =
        std::max<std::uint64_t>(bucket::MOST, Leaf::bytes(leaf_bits_) / BUCKET_BYTES_PER_KEY);
}

PrefixTree::PrefixTree(PrefixTree&& other) noexcept {
    take_from(other);
}

PrefixTree& PrefixTree::operator=(PrefixTree&& other) noexcept {
    if (this != &other) {
        release_all(root_);
        take_from(other);
    }
    return *this;
}

PrefixTree::~PrefixTree() {
    release_all(root_);
}

void PrefixTree::take_from(PrefixTree& other) noexcept {
    memory_ = other.memory_;
    shape_ = other.shape_;
    leaf_bits_ = other.leaf_bits_;
    leaf_least_ = other.leaf_least_;
    root_ = std::exchange(other.root_, Word{});
    keys_ = std::exchange(other.keys_, 0);
    bytes_ = std::exchange(other.bytes_, 0);
}

void PrefixTree::write(Place place, Word word) noexcept {
    if (place.node.is_null()) {
        root_ = word;
        return;
    }
    const std::size_t many = std::size_t{1} << word.span();
    Word* first = place.node.block<Node>()->slots + (place.index & ~(many - 1));
    for (std::size_t i = 0; i < many; ++i) first[i] = word;
}

void PrefixTree::clear(Place place, unsigned span) noexcept {
    if (place.node.is_null()) {
        root_ = {};
        return;
    }
    const std::size_t many = std::size_t{1} << span;
    std::fill_n(place.node.block<Node>()->slots + (place.index & ~(many - 1)), many, Word{});
}

bool PrefixTree::leads_on(Place place, Word word, std::uint64_t key) const noexcept {
    // A node that skips no bits needs no look at its head.
    return word.top() >= coverage(place, word) ||
           above(key, word.top()) == word.block<Node>()->prefix;
}

std::size_t PrefixTree::lookup(std::span<const std::uint64_t> keys, std::uint64_t* values,
                               std::uint8_t* found) const noexcept {
    std::size_t hits = 0;
    const auto end = [&](Word word, std::uint64_t key, std::size_t i) {
        std::uint64_t value = 0;
        bool there = false;
        if (word.is_bucket()) {
            const int place = bucket::find(word, key);
            there = place != bucket::NONE;
            if (there) value = bucket::value_at(word, place);
        } else if (word.is_leaf()) {
            Leaf* leaf = word.block<Leaf>();
            const std::uint64_t at = key & low_mask(leaf_bits_);
            there = leaf->base == above(key, leaf_bits_) && leaf->has(at);
            if (there) value = leaf->values(leaf_bits_)[at];
        }
        values[i] = value;
        found[i] = there;
        hits += there;
    };
    for (std::size_t start = 0; start < keys.size(); start += GROUP) {
        const std::size_t count = std::min(GROUP, keys.size() - start);
        const std::uint64_t* key = keys.data() + start;
        Word words[GROUP];
        const Word* slots[GROUP];
        std::uint8_t going[GROUP];
        std::size_t left = 0;
        // The bits that a node skips are not compared: bucket and array tell in the end.
        const auto step = [&](std::size_t i, Word word) {
            words[i] = word;
            if (word.is_node()) {
                slots[i] = word.block<Node>()->slots + word.index(key[i]);
                __builtin_prefetch(slots[i]);
                going[left++] = static_cast<std::uint8_t>(i);
            } else {
                prefetch_end(word, key[i], leaf_bits_);
            }
        };
        for (std::size_t i = 0; i < count; ++i) step(i, root_);
        while (left > 0) {
            const std::size_t active = std::exchange(left, 0);
            for (std::size_t j = 0; j < active; ++j) step(going[j], *slots[going[j]]);
        }
        for (std::size_t i = 0; i < count; ++i) end(words[i], key[i], start + i);
    }
    return hits;
}

void PrefixTree::descend(std::span<const std::uint64_t> keys, Place* places) const noexcept {
    Word words[GROUP];
    std::uint8_t going[GROUP];
    std::size_t left = 0;
    const auto step = [&](std::size_t i, Place place, Word word) {
        places[i] = place;
        words[i] = word;
        if (word.is_node()) {
            Node* node = word.block<Node>();
            __builtin_prefetch(node->slots + word.index(keys[i]), 1);
            if (word.top() < coverage(place, word)) __builtin_prefetch(node);
            going[left++] = static_cast<std::uint8_t>(i);
        } else {
            prefetch_end(word, keys[i], leaf_bits_);
        }
    };
    for (std::size_t i = 0; i < keys.size(); ++i) step(i, Place{}, root_);
    while (left > 0) {
        const std::size_t active = std::exchange(left, 0);
        for (std::size_t j = 0; j < active; ++j) {
            const std::size_t i = going[j];
            const Word word = words[i];
            if (!leads_on(places[i], word, keys[i])) continue;
            const Place next{word, word.index(keys[i])};
            step(i, next, read(next));
        }
    }
}

int PrefixTree::try_upsert(Place place, std::uint64_t key, std::uint64_t value) noexcept {
    const Word word = read(place);
    if (word.is_bucket()) {
        if (const int at = bucket::find(word, key); at != bucket::NONE) {
            bucket::value_at(word, at) = value;
            return 0;
        }
        const int at = bucket::free_place(word, key);
        if (at == bucket::NONE) return UNFIT;
        write(place, bucket::put(word, at, key, value));
    } else if (word.is_leaf()) {
        Leaf* leaf = word.block<Leaf>();
        if (leaf->base != above(key, leaf_bits_)) return UNFIT;
        const std::uint64_t at = key & low_mask(leaf_bits_);
        leaf->values(leaf_bits_)[at] = value;
        if (leaf->has(at)) return 0;
        leaf->present[at / 64] |= std::uint64_t{1} << at % 64;
        ++leaf->count;
    } else {
        return UNFIT;
    }
    ++keys_;
    return 1;
}

std::size_t PrefixTree::upsert(std::span<const std::uint64_t> keys,
                               std::span<const std::uint64_t> values) {
    if (values.size() != keys.size())
        throw std::invalid_argument("upsert: expected as many values as keys");
    std::size_t inserted = 0;
    for (std::size_t start = 0; start < keys.size(); start += GROUP) {
        const auto group = keys.subspan(start, std::min(GROUP, keys.size() - start));
        Place places[GROUP];
        descend(group, places);
        const std::uint64_t replaced = replaced_;
        for (std::size_t i = 0; i < group.size(); ++i) {
            if (!fits(group[i])) throw std::invalid_argument("upsert: key wider than key_bits");
            int is_new = UNFIT;
            if (replaced == replaced_) is_new = try_upsert(places[i], group[i], values[start + i]);
            if (is_new == UNFIT) is_new = insert(group[i], values[start + i]);
            inserted += static_cast<std::size_t>(is_new);
        }
    }
    return inserted;
}

std::size_t PrefixTree::erase(std::span<const std::uint64_t> keys) noexcept {
    std::size_t erased = 0;
    for (std::size_t start = 0; start < keys.size(); start += GROUP) {
        const auto group = keys.subspan(start, std::min(GROUP, keys.size() - start));
        Place places[GROUP];
        descend(group, places);
        for (const std::uint64_t key : group) erased += erase_one(key);
    }
    return erased;
}

}  // namespace numatwin::native
