// A key range taken out of a prefix tree: whole subtrees change hands, cut ones get a twin.
//
// First all twins are allocated that the two cut paths need, in the order in which the second pass
// uses them; that pass moves links, and the pairs of at most two buckets or arrays, and cannot
// fail.
#include <cstring>
#include <vector>

#include "storage/bucket.hpp"
#include "storage/prefix_tree.hpp"
#include "storage/prefix_tree_fresh.hpp"

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
            twins_.emplace_back(tree_, bucket::bytes(kind));
            return;
        }
        twins_.emplace_back(tree_, tree_.block_bytes(word));
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
        void* twin = twins_[next_++].keep();
        if (word.is_bucket()) return take_pairs(place, word, twin);
        const Word other = word.is_leaf() ? take_values(word, static_cast<Leaf*>(twin))
                                          : take_slots(word, static_cast<Node*>(twin));
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
        const Word* slots = word.block<Node>()->slots;
        return std::all_of(slots, slots + word.slots(), [](Word slot) { return slot.is_null(); });
    }

    Word take_pairs(Place place, Word word, void* twin) noexcept {
        const bucket::Pairs all(word), taken = inside(all);
        bucket::Pairs rest;
        for (const KeyValue& pair : all)
            if (!is_inside(pair.key)) rest.add(pair);
        tree_.write(place, bucket::fill(word.kind(), word.block<void>(), {rest.begin(), rest.end()},
                                        word.span()));
        return bucket::fill(bucket::roomy_kind(taken.size()), twin, {taken.begin(), taken.end()},
                            word.span());
    }

    Word take_values(Word word, Leaf* twin) noexcept {
        const unsigned bits = tree_.leaf_bits_;
        Leaf* leaf = word.block<Leaf>();
        std::memset(static_cast<void*>(twin), 0, Leaf::head_bytes(bits));
        twin->base = leaf->base;
        for (std::uint64_t at = 0; at <= low_mask(bits); ++at) {
            if (!leaf->has(at) || !is_inside(leaf->base + at)) continue;
            twin->values(bits)[at] = leaf->values(bits)[at];
            twin->present[at / 64] |= std::uint64_t{1} << at % 64;
            leaf->present[at / 64] &= ~(std::uint64_t{1} << at % 64);
            ++twin->count;
            --leaf->count;
        }
        return Word::leaf(twin, word.span());
    }

    Word take_slots(Word word, Node* twin) noexcept {
        twin->prefix = word.block<Node>()->prefix;
        const Word other = Word::node(twin, word.shift(), word.bits(), word.span());
        std::fill_n(twin->slots, other.slots(), Word{});
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

}  // namespace numatwin::native
