// How a prefix tree gives back what erased keys leave: without allocating, so that it cannot fail.
#include <new>

#include "storage/bucket.hpp"
#include "storage/prefix_tree.hpp"

namespace numatwin::native {

namespace {

/// Neighbouring buckets with so few pairs together become one.
constexpr unsigned FEW = 6;
/// An array of values with so few becomes a bucket.
constexpr std::uint64_t THIN = 8;

/// The bucket without one of its places. A search ends at a line with a free place: when a full
/// line gets one, what overflowed from it has to come home.
Word without(Word word, int place) {
    const std::uint64_t line = std::uint64_t{15} << (place & ~3);
    const bool was_full = (word.taken() & line) == line;
    word = word.with_taken(word.taken() & ~(std::uint64_t{1} << place));
    if (!was_full) return word;
    const bucket::Pairs pairs(word);
    return bucket::fill(word.kind(), word.block<void>(), {pairs.begin(), pairs.end()}, word.span());
}

}  // namespace

bool PrefixTree::erase_one(std::uint64_t key) noexcept {
    if (!fits(key)) return false;
    const Place place = path_of(key).last;
    const Word word = read(place);
    if (word.is_bucket()) {
        const int at = bucket::find(word, key);
        if (at == bucket::NONE) return false;
        --keys_;
        const Word less = without(word, at);
        if (less.count() > 0) {
            write(place, less);
            if (less.count() < FEW && merge_with_buddy(place, less)) tidy(key);
        } else {
            clear(place, word.span());
            release_block(word);
            tidy(key);
        }
        return true;
    }
    if (!word.is_leaf()) return false;
    Leaf* leaf = word.block<Leaf>();
    const std::uint64_t at = key & low_mask(leaf_bits_);
    if (leaf->base != above(key, leaf_bits_) || !leaf->has(at)) return false;
    --keys_;
    leaf->present[at / 64] &= ~(std::uint64_t{1} << at % 64);
    --leaf->count;
    if (leaf->count == 0) {
        clear(place, word.span());
        release_block(word);
        tidy(key);
    } else if (leaf->count <= THIN) {
        thin_leaf(place, word);
    }
    return true;
}

void PrefixTree::tidy(std::uint64_t key) noexcept {
    while (true) {
        const Path path = path_of(key);
        const Word word = read(path.last);
        if (word.is_bucket() && word.count() < FEW && merge_with_buddy(path.last, word)) continue;
        const Word node = path.last.node;
        if (node.is_null()) return;
        // A node with one word, or none, is not needed.
        Word only;
        const Word* slots = node.block<Node>()->slots;
        for (std::size_t i = 0; i < node.slots(); i += std::size_t{1} << slots[i].span()) {
            if (slots[i].is_null()) continue;
            if (!only.is_null()) return;
            only = slots[i];
        }
        if (only.is_null())
            clear(path.parent, node.span());
        else
            write(path.parent, only.with_span(node.span()));
        release_block(node);
        ++replaced_;
    }
}

bool PrefixTree::merge_with_buddy(Place place, Word word) noexcept {
    const unsigned span = word.span();
    if (place.node.is_null() || span + 1 >= place.node.bits()) return false;
    const Word buddy = read({place.node, place.index ^ std::size_t{1} << span});
    if (!buddy.is_bucket() || buddy.span() != span || word.count() + buddy.count() > FEW)
        return false;
    const bool into_buddy = buddy.kind() > word.kind();
    const Word to = into_buddy ? buddy : word, from = into_buddy ? word : buddy;
    if (word.count() + buddy.count() > bucket::capacity(to.kind())) return false;
    bucket::Pairs pairs(to);
    for (const KeyValue& pair : bucket::Pairs(from)) pairs.add(pair);
    write(place, bucket::fill(to.kind(), to.block<void>(), {pairs.begin(), pairs.end()}, span + 1));
    release_block(from);
    return true;
}

void PrefixTree::thin_leaf(Place place, Word word) noexcept {
    bucket::Pairs pairs;
    Leaf* leaf = word.block<Leaf>();
    for (std::uint64_t at = 0; at < std::uint64_t{1} << leaf_bits_; ++at)
        if (leaf->has(at)) pairs.add({leaf->base + at, leaf->values(leaf_bits_)[at]});
    const unsigned kind = bucket::roomy_kind(pairs.size());
    void* block;
    try {
        block = allocate(bucket::bytes(kind));
    } catch (const std::bad_alloc&) {
        return;  // It stays an array, which is as right.
    }
    write(place, bucket::fill(kind, block, {pairs.begin(), pairs.end()}, word.span()));
    release_block(word);
    tidy(pairs.begin()->key);
}

}  // namespace numatwin::native
