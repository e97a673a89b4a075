// A key range taken out of a prefix tree: whole subtrees change hands, cut ones get a twin.
//
// First all twins are allocated that the two cut paths need, in the order in which the second pass
// uses them; that pass moves links, and the pairs of at most two buckets or arrays, and cannot
// fail.
#include <stdexcept>
#include <vector>

#include "storage/bucket.hpp"
#include "storage/prefix_tree.hpp"

namespace numatwin::native {

class PrefixTree::Cut {
  public:
    Cut(PrefixTree& tree, std::uint64_t first, std::uint64_t last)
        : tree_(tree), first_(first), last_(last) {}

    /// Allocates the twins of what is cut below `word`, all of whose keys are in [least, most].
    void plan(Word word, std::uint64_t least, std::uint64_t most) {
        if (part_of(word, least, most) != Part::SOME) return;
        if (word.is_bucket()) {
            const unsigned kind = bucket::roomy_kind(inside(bucket::Pairs(word)).size());
            twins_.push_back(tree_.fresh(bucket::bytes(kind)));
            return;
        }
        twins_.push_back(tree_.fresh(tree_.block_bytes(word)));
        if (word.is_leaf()) return;
        each_slot(word, [&](Place place, std::uint64_t from, std::uint64_t to) {
            plan(tree_.read(place), from, to);
        });
    }

    /// Takes what is inside from `place`.
    Word take(Place place, std::uint64_t least, std::uint64_t most) noexcept {
        const Word word = tree_.read(place);
        switch (part_of(word, least, most)) {
            case Part::NONE:
                return {};
            case Part::ALL:
                tree_.clear(place, word.span());
                return word;
            case Part::SOME:
                break;
        }
        void* twin = twins_[next_++].release();
        if (word.is_bucket()) return take_pairs(place, word, twin);
        const Word other = word.is_leaf() ? take_values(word, twin) : take_slots(word, twin);
        if (is_empty(word)) {
            tree_.clear(place, word.span());
            tree_.release_block(word);
        }
        if (!is_empty(other)) return other;
        tree_.release_block(other);
        return {};
    }

  private:
    enum class Part { NONE, SOME, ALL };

    Part part_of(Word word, std::uint64_t least, std::uint64_t most) const {
        if (word.is_null()) return Part::NONE;
        if (!word.is_bucket()) {
            least = prefix_of(word);
            most = least | low_mask(tree_.top_of(word));
        }
        if (most < first_ || least > last_) return Part::NONE;
        if (first_ <= least && most <= last_) return Part::ALL;
        if (!word.is_bucket()) return Part::SOME;
        const unsigned count = inside(bucket::Pairs(word)).size();
        return count == 0 ? Part::NONE : count == word.count() ? Part::ALL : Part::SOME;
    }

    bool is_inside(std::uint64_t key) const { return first_ <= key && key <= last_; }

    bucket::Pairs inside(const bucket::Pairs& pairs) const {
        bucket::Pairs taken;
        for (const KeyValue& pair : pairs)
            if (is_inside(pair.key)) taken.add(pair);
        return taken;
    }

    /// Calls with the first slot of each word and the first and last key it may hold.
    template <class Call>
    void each_slot(Word node, Call call) const {
        const Node* block = node.block<Node>();
        for (std::size_t i = 0; i < node.slots();) {
            const unsigned span = block->slots[i].span();
            const std::uint64_t from = block->prefix | static_cast<std::uint64_t>(i)
                                                           << node.shift();
            // The word may be gone after the call.
            call(Place{node, i}, from, from | low_mask(node.shift() + span));
            i += std::size_t{1} << span;
        }
    }

    bool is_empty(Word word) const {
        if (word.is_leaf()) return word.block<Leaf>()->count == 0;
        return tree_.are_null({word, 0}, word.bits());
    }

    Word take_pairs(Place place, Word word, void* twin) noexcept {
        const bucket::Pairs all(word), taken = inside(all);
        bucket::Pairs rest;
        for (const KeyValue& pair : all)
            if (!is_inside(pair.key)) rest.add(pair);
        tree_.write(place, bucket::fill(word.kind(), word.block<void>(), rest, word.span()));
        return bucket::fill(bucket::roomy_kind(taken.size()), twin, taken, word.span());
    }

    Word take_values(Word word, void* fresh) noexcept {
        const unsigned bits = tree_.leaf_bits_;
        Leaf* leaf = word.block<Leaf>();
        Leaf* twin = native::make_leaf(fresh, leaf->base, bits);
        for (std::uint64_t at = 0; at <= low_mask(bits); ++at) {
            if (!leaf->has(at) || !is_inside(leaf->base + at)) continue;
            twin->put(at, leaf->values(bits)[at], bits);
            leaf->present[at / 64] &= ~(std::uint64_t{1} << at % 64);
            --leaf->count;
        }
        return Word::leaf(twin, word.span());
    }

    Word take_slots(Word word, void* fresh) noexcept {
        const Word other = make_node(fresh, prefix_of(word), word.top(), word.bits(), word.span());
        each_slot(word, [&](Place place, std::uint64_t from, std::uint64_t to) {
            const unsigned span = tree_.read(place).span();
            const Word taken = take(place, from, to);
            if (!taken.is_null()) tree_.write({other, place.index}, taken.with_span(span));
        });
        return other;
    }

    PrefixTree& tree_;
    std::uint64_t first_, last_;
    std::vector<Fresh> twins_;
    std::size_t next_ = 0;
};

namespace {

/// Neighbouring buckets with so few pairs together become one.
constexpr unsigned FEW = 6;

}  // namespace

/// Gives back what is left along the way to a key where a range was taken out; without allocating,
/// so that it cannot fail.
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
    write(place, bucket::fill(to.kind(), to.block<void>(), pairs, span + 1));
    release_block(from);
    return true;
}

PrefixTree PrefixTree::extract(std::uint64_t first, std::uint64_t last) {
    PrefixTree taken(*memory_, shape_);
    last = std::min(last, low_mask(shape_.key_bits));
    if (first > last || root_.is_null()) return taken;
    Cut cut(*this, first, last);
    cut.plan(root_, 0, low_mask(shape_.key_bits));
    taken.root_ = cut.take({}, 0, low_mask(shape_.key_bits)).with_span(0);
    ++replaced_;
    const Size size = taken.size_of(taken.root_);
    taken.keys_ = size.keys;
    taken.bytes_ = size.bytes;
    keys_ -= size.keys;
    bytes_ -= size.bytes;
    for (PrefixTree* tree : {this, &taken})
        for (const std::uint64_t key : {first, last}) tree->tidy(key);
    return taken;
}

// One prefix tree linked into another: no data moves but along the two paths where they meet.
//
// The other's words are linked from its root down, into the first place of this tree that covers
// them. Where nothing stands there, the word is linked as it is. Where a node does, the way goes on
// to its slots, which may be wider (the other's node as a whole fits into one), as wide or narrower
// (each of the other's words goes into some of them). Each step leaves both trees valid, so that a
// failed allocation leaves every key in one of the two.

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
    Fresh parent = fresh(Node::bytes(1));
    Fresh halves[2];
    // A half that is one word, or nothing, needs no node.
    const auto is_one = [&](unsigned side) {
        return old.slots[side * half].span() == bits || are_null({word, side * half}, bits);
    };
    for (const unsigned side : {0U, 1U})
        if (!is_one(side)) halves[side] = fresh(Node::bytes(bits));
    auto* block = static_cast<Node*>(parent.release());
    block->prefix = old.prefix;
    for (const unsigned side : {0U, 1U}) {
        const Word* slots = old.slots + side * half;
        if (is_one(side)) {
            block->slots[side] = slots->with_span(0);
            continue;
        }
        auto* part = static_cast<Node*>(halves[side].release());
        part->prefix = old.prefix | static_cast<std::uint64_t>(side) << (word.top() - 1);
        std::copy_n(slots, half, part->slots);
        block->slots[side] = Word::node(part, word.shift(), bits, 0);
    }
    write(place, Word::node(block, word.top() - 1, 1, word.span()));
    release_block(word);
    ++replaced_;
}

}  // namespace numatwin::native
