// The nodes of a prefix tree built anew above the same buckets and arrays of values.
//
// A tree that has grown piece by piece has the levels that each piece needed, and more where pieces
// began in the middle of a node's range. From all of its ends at once it gets as few levels as so
// many need: where they fill their range, whole digits from below, the rest in the uppermost node.
#include <vector>

#include "storage/prefix_tree.hpp"

namespace numatwin::native {

/// A bucket or an array of values, and its least and its greatest key.
struct PrefixTree::End {
    std::uint64_t first, last;
    Word word;
};

void PrefixTree::relink() {
    if (!root_.is_node()) return;
    std::vector<End> ends;
    collect(root_, ends);
    PrefixTree made(*memory_, shape_);
    try {
        made.link_ends({}, 0, ends);
    } catch (...) {
        made.release_nodes(made.root_);
        made.root_ = {};
        throw;
    }
    release_nodes(root_);
    root_ = std::exchange(made.root_, Word{});
    bytes_ += std::exchange(made.bytes_, 0);
    ++replaced_;
}

void PrefixTree::collect(Word word, std::vector<End>& ends) const {
    if (word.is_null()) return;
    if (!word.is_node()) return ends.push_back({end_key(word, false), end_key(word, true), word});
    const Word* slots = word.block<Node>()->slots;
    for (std::size_t i = 0; i < word.slots(); i += std::size_t{1} << slots[i].span())
        collect(slots[i], ends);
}

/// Nodes alone: what they lead to in the end stays.
void PrefixTree::release_nodes(Word word) noexcept {
    if (!word.is_node()) return;
    const Word* slots = word.block<Node>()->slots;
    for (std::size_t i = 0; i < word.slots(); i += std::size_t{1} << slots[i].span())
        release_nodes(slots[i]);
    release_block(word);
}

/// Into the 2^span slots at `place`, which have a node in common: one end, or a node above several.
void PrefixTree::link_ends(Place place, unsigned span, std::span<const End> ends) {
    if (ends.size() == 1) return write(place, ends[0].word.with_span(span));
    const std::uint64_t differ = ends.front().first ^ ends.back().last;
    const auto top = static_cast<unsigned>(std::bit_width(differ));
    const auto needed = static_cast<unsigned>(std::bit_width(ends.size() - 1));
    const unsigned most = most_bits(top);
    unsigned bits = std::min(needed, most);
    // Ends that fill a quarter of their range or more: below this node, nodes of whole digits.
    const unsigned above_ends = top > leaf_bits_ ? top - leaf_bits_ : top;
    if (needed + 1 >= above_ends && above_ends > most)
        bits = (above_ends - 1) % shape_.prefix_bits + 1;
    auto* block = static_cast<Node*>(allocate(Node::bytes(bits)));
    block->prefix = above(ends.front().first, top);
    const Word node = Word::node(block, top - bits, bits, span);
    std::fill_n(block->slots, node.slots(), Word{});
    write(place, node);
    link_ends_to_slots({node, 0}, bits, ends);
}

/// Each end belongs to one half of the slots: its range is theirs or less.
void PrefixTree::link_ends_to_slots(Place first, unsigned span, std::span<const End> ends) {
    if (ends.empty()) return;
    if (span == 0 || ends.size() == 1) return link_ends(first, span, ends);
    const std::size_t half = std::size_t{1} << (span - 1);
    const std::uint64_t middle =
        first.node.block<Node>()->prefix | static_cast<std::uint64_t>(first.index + half)
                                               << first.node.shift();
    const auto upper = std::partition_point(ends.begin(), ends.end(),
                                            [&](const End& end) { return end.first < middle; });
    const auto count = static_cast<std::size_t>(upper - ends.begin());
    link_ends_to_slots(first, span - 1, ends.first(count));
    link_ends_to_slots({first.node, first.index + half}, span - 1, ends.subspan(count));
}

}  // namespace numatwin::native
