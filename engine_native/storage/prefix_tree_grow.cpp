// How a prefix tree makes room: each step takes it from one valid tree to another.
//
// A full bucket first grows. At 16 pairs it is halved where it stands for several slots of its
// node; where it has one, the node's slots are doubled if at least every second is used (as in
// extendible hashing: Fagin et al., TODS 1979), else the bucket becomes a node of its own that
// starts at the first bit in which its keys differ. Keys as dense as buckets waste become an array
// of values. A key that differs in bits which a node skips makes that node's range grow, or puts a
// node above it. Every step allocates first and only then changes a link.
//
// Nodes of dense keys lie on a grid: what is below their bits are arrays of values and whole
// prefixes. So nodes of pieces that were built apart have the same bits, whatever keys the pieces
// begin and end at, and their words can stand side by side in one node; else each piece would add
// levels.
#include <stdexcept>

#include "storage/bucket.hpp"
#include "storage/prefix_tree.hpp"

namespace numatwin::native {

namespace {

/// How many words a node's slots hold.
std::size_t entries(Word node) {
    std::size_t count = 0;
    each_word(node, [&](Word) { ++count; });
    return count;
}

/// How many slots a node above `word`, or in its place, may have without taking more memory than
/// what stands in and right below it. An array of values counts by its size, in buckets.
std::size_t weight(Word word, unsigned leaf_bits) {
    if (word.is_leaf()) return std::size_t{1} << leaf_bits >> 3;
    if (!word.is_node()) return 1;
    std::size_t sum = 0;
    each_word(word, [&](Word child) {
        sum += child.is_node() ? child.slots() : weight(child, leaf_bits);
    });
    return sum;
}

}  // namespace

void* PrefixTree::allocate(std::size_t bytes) {
    void* block = memory_->allocate(bytes);
    if ((reinterpret_cast<std::uint64_t>(block) & ~Word::ADDRESS) != 0) {
        memory_->release(block, bytes);
        throw std::logic_error("prefix tree: a block is not aligned to 64 bytes below 2^48");
    }
    bytes_ += bytes;
    return block;
}

void PrefixTree::release(void* block, std::size_t bytes) noexcept {
    bytes_ -= bytes;
    memory_->release(block, bytes);
}

std::size_t PrefixTree::block_bytes(Word word) const noexcept {
    if (word.is_bucket()) return bucket::bytes(word.kind());
    return word.is_leaf() ? Leaf::bytes(leaf_bits_) : Node::bytes(word.bits());
}

void PrefixTree::release_block(Word word) noexcept {
    release(word.block<void>(), block_bytes(word));
}

void PrefixTree::release_all(Word word) noexcept {
    if (word.is_null()) return;
    if (word.is_node()) each_word(word, [this](Word child) { release_all(child); });
    release_block(word);
}

unsigned PrefixTree::top_of(Word word) const noexcept {
    return word.is_leaf() ? leaf_bits_ : word.top();
}

std::uint64_t PrefixTree::prefix_of(Word word) noexcept {
    return word.is_leaf() ? word.block<Leaf>()->base : word.block<Node>()->prefix;
}

unsigned PrefixTree::most_bits(unsigned top) const noexcept {
    // A slot above the arrays of values covers at least one array.
    return std::min(shape_.prefix_bits, top > leaf_bits_ ? top - leaf_bits_ : top);
}

unsigned PrefixTree::grid_bits(unsigned top) const noexcept {
    return top > leaf_bits_ ? (top - leaf_bits_ - 1) % shape_.prefix_bits + 1 : top;
}

unsigned PrefixTree::levels(std::uint64_t key) const noexcept {
    unsigned found = 0;
    for (Word word = root_; word.is_node(); word = word.block<Node>()->slots[word.index(key)])
        ++found;
    return found;
}

PrefixTree::Path PrefixTree::path_of(std::uint64_t key) const noexcept {
    Path path;
    while (true) {
        const Word word = read(path.last);
        if (path.last.node.is_null() || path.last.node.shift() >= leaf_bits_)
            path.block = path.last;
        if (!word.is_node() || !leads_on(path.last, word, key)) return path;
        path.parent = path.last;
        path.last = {word, word.index(key)};
    }
}

bool PrefixTree::insert(std::uint64_t key, std::uint64_t value) {
    while (true) {
        const Path path = path_of(key);
        if (const int is_new = try_upsert(path.last, key, value); is_new >= 0) return is_new != 0;
        const Word word = read(path.last);
        if (word.is_null()) {
            make_bucket(path.last, key, value);
            return true;
        }
        if (word.is_bucket())
            make_room(path, key);
        else
            raise(path.last, key);
    }
}

void PrefixTree::make_room(const Path& path, std::uint64_t key) {
    const Word node = path.last.node;
    const Word word = read(path.last);
    if (bucket::capacity(word.kind()) < bucket::MOST) return enlarge(path.last, word);
    if (!node.is_null() && node.top() <= leaf_bits_ && make_leaf(path)) return;
    if (word.span() > 0) return halve(path.last, word);
    if (!node.is_null() && node.bits() < most_bits(node.top()) && 2 * entries(node) >= node.slots())
        return double_node(path);
    make_child(path.last, word, key);
}

void PrefixTree::make_bucket(Place place, std::uint64_t key, std::uint64_t value) {
    // It stands for as many empty slots around the key's as it can.
    unsigned span = 0;
    if (!place.node.is_null()) {
        while (span + 1 < place.node.bits() &&
               are_null({place.node, place.index ^ std::size_t{1} << span}, span))
            ++span;
    }
    const KeyValue pair{key, value};
    write(place, bucket::fill(1, allocate(bucket::bytes(1)), {&pair, 1}, span));
    ++keys_;
}

void PrefixTree::enlarge(Place place, Word word) {
    const unsigned kind = word.kind() + 1;
    void* block = allocate(bucket::bytes(kind));
    const bucket::Pairs pairs(word);
    write(place, bucket::fill(kind, block, pairs, word.span()));
    release_block(word);
}

void PrefixTree::halve(Place place, Word word) {
    const unsigned span = word.span() - 1;
    const unsigned bit = place.node.shift() + span;
    const std::size_t half = std::size_t{1} << span;
    const Place sides[2] = {{place.node, place.index & ~half}, {place.node, place.index | half}};
    const auto move_to = [&](unsigned side) {
        write(sides[side], word.with_span(span));
        clear(sides[1 - side], span);
    };
    if (!word.is_bucket()) return move_to(prefix_of(word) >> bit & 1);
    bucket::Pairs pairs[2];
    for (const KeyValue& pair : bucket::Pairs(word)) pairs[pair.key >> bit & 1].add(pair);
    for (const unsigned side : {0U, 1U})
        if (pairs[1 - side].size() == 0) return move_to(side);
    // The fuller half keeps the block if a fresh one would be as large.
    const unsigned fuller = pairs[1].size() > pairs[0].size() ? 1 : 0;
    const bool keeps = bucket::roomy_kind(pairs[fuller].size()) == word.kind();
    const unsigned kinds[2] = {bucket::roomy_kind(pairs[0].size()),
                               bucket::roomy_kind(pairs[1].size())};
    Fresh smaller = fresh(bucket::bytes(kinds[1 - fuller]));
    void* block = keeps ? word.block<void>() : allocate(bucket::bytes(kinds[fuller]));
    void* blocks[2];
    blocks[fuller] = block;
    blocks[1 - fuller] = smaller.release();
    for (const unsigned side : {0U, 1U})
        write(sides[side], bucket::fill(kinds[side], blocks[side], pairs[side], span));
    if (!keeps) release_block(word);
}

void PrefixTree::double_node(const Path& path) {
    const Word old = read(path.parent);
    const unsigned bits = old.bits() + 1;
    const Node& from = *old.block<Node>();
    auto* to = static_cast<Node*>(allocate(Node::bytes(bits)));
    to->prefix = from.prefix;
    for (std::size_t i = 0; i < old.slots(); ++i) {
        const Word word = from.slots[i];
        to->slots[2 * i] = to->slots[2 * i + 1] =
            word.is_null() ? word : word.with_span(word.span() + 1);
    }
    write(path.parent, Word::node(to, old.shift() - 1, bits, old.span()));
    release_block(old);
    ++replaced_;
}

void PrefixTree::make_child(Place place, Word word, std::uint64_t key) {
    const bucket::Pairs all(word);
    std::uint64_t differ = 0;
    for (const KeyValue& pair : all) differ |= pair.key ^ key;
    const unsigned bit = highest_bit(differ);
    const unsigned top = bit + 1;
    const unsigned bits = std::min(2U, most_bits(top));
    bucket::Pairs pairs[2];
    for (const KeyValue& pair : all) pairs[pair.key >> bit & 1].add(pair);
    Fresh node = fresh(Node::bytes(bits));
    Fresh buckets[2];
    for (const unsigned side : {0U, 1U})
        if (pairs[side].size() > 0)
            buckets[side] = fresh(bucket::bytes(bucket::roomy_kind(pairs[side].size())));
    auto* block = static_cast<Node*>(node.release());
    block->prefix = above(key, top);
    const std::size_t half = std::size_t{1} << (bits - 1);
    for (const unsigned side : {0U, 1U}) {
        Word filled;
        if (pairs[side].size() > 0)
            filled = bucket::fill(bucket::roomy_kind(pairs[side].size()), buckets[side].release(),
                                  pairs[side], bits - 1);
        std::fill_n(block->slots + side * half, half, filled);
    }
    write(place, Word::node(block, top - bits, bits, word.span()));
    release_block(word);
}

void PrefixTree::raise(Place place, std::uint64_t key) {
    const Word word = read(place);
    const unsigned low = top_of(word);
    const unsigned bit = highest_bit(above(key ^ prefix_of(word), low));
    const unsigned top = bit + 1;
    if (word.span() > 0 && top == coverage(place, word)) return halve(place, word);
    if (word.is_node() && top - word.shift() <= most_bits(top) &&
        std::size_t{1} << (top - word.shift()) <=
            std::max<std::size_t>(4, 4 * weight(word, leaf_bits_)))
        return widen(place, key, top);
    const unsigned lowest = top > leaf_bits_ ? std::max(low, leaf_bits_) : low;
    unsigned bits = std::min({2U, top - lowest, shape_.prefix_bits});
    const unsigned aligned = grid_bits(top);
    if (top - aligned >= lowest && std::size_t{1} << aligned <= weight(word, leaf_bits_))
        bits = aligned;
    const Word parent = new_node(key, top, bits, word.span());
    write({parent, parent.index(prefix_of(word))}, word.with_span(bits - 1));
    write(place, parent);
}

/// Before a node of another tree, whose range begins below `top` bits and holds ours, is linked
/// into ours: ours gets as many slots as that one has, which goes then.
void PrefixTree::raise_to(Place place, Word like) {
    const Word word = read(place);
    const std::uint64_t prefix = prefix_of(word);
    if (word.span() > 0 && like.top() == coverage(place, word)) return halve(place, word);
    if (word.is_node() && word.shift() == like.shift()) return widen(place, prefix, like.top());
    if (like.shift() < top_of(word))
        return raise(place, prefix ^ std::uint64_t{1} << (like.top() - 1));
    const Word parent = new_node(prefix, like.top(), like.bits(), word.span());
    write({parent, parent.index(prefix)}, word.with_span(0));
    write(place, parent);
}

/// The node's range grows to `top` bits: its slots become a part of more.
void PrefixTree::widen(Place place, std::uint64_t key, unsigned top) {
    const Word word = read(place);
    const Word grown = new_node(key, top, top - word.shift(), word.span());
    const Node& old = *word.block<Node>();
    std::copy_n(old.slots, word.slots(), grown.block<Node>()->slots + grown.index(old.prefix));
    write(place, grown);
    release_block(word);
    ++replaced_;
}

Word PrefixTree::new_node(std::uint64_t key, unsigned top, unsigned bits, unsigned span) {
    return make_node(allocate(Node::bytes(bits)), key, top, bits, span);
}

bool PrefixTree::make_leaf(const Path& path) {
    const Word old = read(path.block);
    if (!old.is_node() || old.top() > leaf_bits_ || size_of(old).keys < leaf_least_) return false;
    Leaf* leaf = new_leaf(old.block<Node>()->prefix);
    move_values(leaf, old);
    write(path.block, Word::leaf(leaf, old.span()));
    release_all(old);
    ++replaced_;
    return true;
}

Leaf* PrefixTree::new_leaf(std::uint64_t key) {
    return native::make_leaf(allocate(Leaf::bytes(leaf_bits_)), key, leaf_bits_);
}

void PrefixTree::move_values(Leaf* leaf, Word word) const noexcept {
    if (word.is_node()) {
        each_word(word, [&](Word child) { move_values(leaf, child); });
    } else if (word.is_leaf()) {
        Leaf* from = word.block<Leaf>();
        for (std::uint64_t at = 0; at <= low_mask(leaf_bits_); ++at)
            if (from->has(at)) leaf->put(at, from->values(leaf_bits_)[at], leaf_bits_);
    } else {
        for (const KeyValue& pair : bucket::Pairs(word))
            leaf->put(pair.key & low_mask(leaf_bits_), pair.value, leaf_bits_);
    }
}

}  // namespace numatwin::native
