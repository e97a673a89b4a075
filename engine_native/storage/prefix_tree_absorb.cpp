// One prefix tree linked into another: no data moves but along the two paths where they meet.
//
// The other's words are linked from its root down, into the first place of this tree that covers
// them. Where nothing stands there, the word is linked as it is. Where a node does, the way goes on
// to its slots, which may be wider (the other's node as a whole fits into one), as wide or narrower
// (each of the other's words goes into some of them). Each step leaves both trees valid, so that a
// failed allocation leaves every key in one of the two.
#include <stdexcept>

#include "storage/bucket.hpp"
#include "storage/prefix_tree.hpp"
#include "storage/prefix_tree_fresh.hpp"

namespace numatwin::native {

void PrefixTree::absorb(PrefixTree&& other) {
    if (other.shape_.key_bits != shape_.key_bits || other.shape_.prefix_bits != shape_.prefix_bits)
        throw std::invalid_argument("absorb: expected a tree of the same shape");
    if (other.root_.is_null()) return;
    const std::uint64_t first = other.end_key(other.root_, false);
    const std::uint64_t last = other.end_key(other.root_, true);
    KeyValue between;
    if (flatten(first, last, {&between, 1}) > 0)
        throw std::invalid_argument("absorb: expected no key between the other's first and last");
    const std::uint64_t keys = keys_ + other.keys_;
    try {
        // Where a node has been replaced on the way, what is left starts from the root again.
        while (!link({}, 0, other, {})) {
        }
    } catch (...) {
        for (PrefixTree* tree : {this, &other}) {
            const Size size = tree->size_of(tree->root_);
            tree->keys_ = size.keys;
            tree->bytes_ = size.bytes;
        }
        throw;
    }
    keys_ = keys;
    other.keys_ = 0;
    bytes_ += std::exchange(other.bytes_, 0);
}

bool PrefixTree::are_null(Place at, unsigned span) const noexcept {
    if (at.node.is_null()) return root_.is_null();
    const std::size_t many = std::size_t{1} << span;
    const Word* first = at.node.block<Node>()->slots + (at.index & ~(many - 1));
    return std::all_of(first, first + many, [](Word word) { return word.is_null(); });
}

/// Links the word at `from` of the other tree into the 2^span slots at `at`, which cover all its
/// keys. False where places found before may be stale; some of the word may then be left.
bool PrefixTree::link(Place at, unsigned span, PrefixTree& other, Place from) {
    const std::uint64_t replaced = replaced_;
    while (true) {
        if (replaced != replaced_) return false;
        const Word theirs = other.read(from);
        if (theirs.is_null()) return true;
        if (are_null(at, span)) {
            // A node whose slots ours has too adds a level for nothing: its words go into them.
            if (theirs.is_node() && span > 0 && theirs.shift() >= at.node.shift())
                return link_slots(at.node, other, from);
            write(at, theirs.with_span(span));
            other.clear(from, theirs.span());
            return true;
        }
        if (theirs.is_bucket()) return link_pairs(other, from);
        const Word ours = read(at);
        const std::uint64_t prefix = prefix_of(theirs);
        const unsigned top = other.top_of(theirs);
        if (ours.is_null() || ours.span() < span) {
            // Several words stand in these slots.
            const unsigned shift = at.node.shift();
            const unsigned needed = top > shift ? top - shift : 0;
            if (needed < span) {
                at.index = at.node.index(prefix);
                span = needed;
            } else if (theirs.shift() < shift)
                other.split_node(from);
            else
                return link_slots(at.node, other, from);
            continue;
        }
        if (ours.is_bucket()) {
            if (ours.span() > span)
                halve(at, ours);
            else
                make_child(at, ours, other.end_key(theirs, false));
            continue;
        }
        const unsigned our_top = top_of(ours);
        const std::uint64_t our_prefix = prefix_of(ours);
        if (above(prefix ^ our_prefix, std::max(top, our_top)) != 0) {
            raise(at, prefix);
        } else if (ours.is_leaf() && top <= leaf_bits_) {
            other.move_values(ours.block<Leaf>(), theirs);
            other.clear(from, theirs.span());
            other.release_all(theirs);
            return true;
        } else if (theirs.is_leaf() && our_top <= leaf_bits_) {
            move_values(theirs.block<Leaf>(), ours);
            write(at, theirs.with_span(ours.span()));
            other.clear(from, theirs.span());
            release_all(ours);
            ++replaced_;
            return true;
        } else if (top > our_top) {
            raise_to(at, theirs);
        } else {
            at = {ours, ours.index(prefix)};
            span = top > ours.shift() ? top - ours.shift() : 0;
            if (span == ours.bits()) {
                // As wide as the whole node.
                if (theirs.shift() < ours.shift())
                    other.split_node(from);
                else
                    return link_slots(ours, other, from);
                return false;
            }
        }
    }
}

/// Links each word of the other's node into the slots of ours that cover the same keys.
bool PrefixTree::link_slots(Word node, PrefixTree& other, Place from) {
    const Word theirs = other.read(from);
    const Node* block = theirs.block<Node>();
    bool fresh = true;
    for (std::size_t i = 0; fresh && i < theirs.slots();) {
        const unsigned their_span = block->slots[i].span();
        const std::uint64_t key = block->prefix | static_cast<std::uint64_t>(i) << theirs.shift();
        const unsigned span = theirs.shift() - node.shift() + their_span;
        fresh =
            block->slots[i].is_null() || link({node, node.index(key)}, span, other, {theirs, i});
        i += std::size_t{1} << their_span;
    }
    if (!other.are_null({theirs, 0}, theirs.bits())) return false;
    other.clear(from, theirs.span());
    other.release_block(theirs);
    return fresh;
}

/// Moves the pairs of the other's bucket, one by one.
bool PrefixTree::link_pairs(PrefixTree& other, Place from) {
    const std::uint64_t replaced = replaced_;
    const Word theirs = other.read(from);
    // In order: what a failure leaves is all above what has been moved, and can be absorbed again.
    bucket::Pairs pairs(theirs);
    pairs.sort();
    for (KeyValue* pair = pairs.begin(); pair != pairs.end(); ++pair) {
        try {
            insert(pair->key, pair->value);
        } catch (...) {
            other.write(from, bucket::fill(theirs.kind(), theirs.block<void>(), {pair, pairs.end()},
                                           theirs.span()));
            throw;
        }
    }
    other.clear(from, theirs.span());
    other.release_block(theirs);
    return replaced == replaced_;
}

/// Makes of one node two of half the range, below a node of two slots.
void PrefixTree::split_node(Place place) {
    const Word word = read(place);
    const Node& old = *word.block<Node>();
    const unsigned bits = word.bits() - 1;
    const std::size_t half = std::size_t{1} << bits;
    Fresh parent(*this, Node::bytes(1));
    Fresh halves[2];
    // A half that is one word, or nothing, needs no node.
    const auto is_one = [&](unsigned side) {
        return old.slots[side * half].span() == bits || are_null({word, side * half}, bits);
    };
    for (const unsigned side : {0U, 1U})
        if (!is_one(side)) halves[side] = Fresh(*this, Node::bytes(bits));
    auto* block = static_cast<Node*>(parent.keep());
    block->prefix = old.prefix;
    for (const unsigned side : {0U, 1U}) {
        const Word* slots = old.slots + side * half;
        if (is_one(side)) {
            block->slots[side] = slots->with_span(0);
            continue;
        }
        auto* part = static_cast<Node*>(halves[side].keep());
        part->prefix = old.prefix | static_cast<std::uint64_t>(side) << (word.top() - 1);
        std::copy_n(slots, half, part->slots);
        block->slots[side] = Word::node(part, word.shift(), bits, 0);
    }
    write(place, Word::node(block, word.top() - 1, 1, word.span()));
    release_block(word);
    ++replaced_;
}

}  // namespace numatwin::native
