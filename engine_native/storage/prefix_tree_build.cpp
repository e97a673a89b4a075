// A prefix tree from a sorted run: nodes of the size that so many keys need, filled once.
#include <cstring>
#include <stdexcept>

#include "storage/bucket.hpp"
#include "storage/prefix_tree.hpp"

namespace numatwin::native {

namespace {

/// So many pairs at most share a slot on average when a node is built.
constexpr std::size_t PAIRS_PER_SLOT = 11;

}  // namespace

void PrefixTree::append(std::span<const KeyValue> run) {
    if (run.empty()) return;
    for (std::size_t i = 1; i < run.size(); ++i)
        if (run[i - 1].key >= run[i].key)
            throw std::invalid_argument("append: expected ascending keys");
    if (!fits(run.back().key)) throw std::invalid_argument("append: key wider than key_bits");
    PrefixTree part(*memory_, shape_);
    part.build({}, 0, run);
    absorb(std::move(part));
}

/// Whatever is built hangs on the tree at once: when an allocation fails, nothing is lost.
void PrefixTree::build(Place place, unsigned span, std::span<const KeyValue> run) {
    if (run.size() <= bucket::MOST) {
        const unsigned kind = run.size() <= 4 ? 1 : run.size() <= 8 ? 2 : 3;
        write(place, bucket::fill(kind, allocate(bucket::bytes(kind)), run, span));
        keys_ += run.size();
        return;
    }
    const std::uint64_t differ = run.front().key ^ run.back().key;
    const auto top = static_cast<unsigned>(std::bit_width(differ));
    if (top <= leaf_bits_ && run.size() >= leaf_least_) {
        auto* leaf = static_cast<Leaf*>(allocate(Leaf::bytes(leaf_bits_)));
        std::memset(static_cast<void*>(leaf), 0, Leaf::head_bytes(leaf_bits_));
        leaf->base = above(run.front().key, leaf_bits_);
        leaf->count = run.size();
        for (const KeyValue& pair : run) {
            const std::uint64_t at = pair.key - leaf->base;
            leaf->values(leaf_bits_)[at] = pair.value;
            leaf->present[at / 64] |= std::uint64_t{1} << at % 64;
        }
        write(place, Word::leaf(leaf, span));
        keys_ += run.size();
        return;
    }
    // As dense as arrays of values are: on the grid (see prefix_tree_grow.cpp).
    const std::uint64_t arrays = ((run.back().key - run.front().key) >> leaf_bits_) + 1;
    const unsigned most = run.size() / leaf_least_ >= arrays ? grid_bits(top) : most_bits(top);
    unsigned bits = 1;
    while (bits < most && run.size() >> bits > PAIRS_PER_SLOT) ++bits;
    auto* block = static_cast<Node*>(allocate(Node::bytes(bits)));
    block->prefix = above(run.front().key, top);
    const Word node = Word::node(block, top - bits, bits, span);
    std::fill_n(block->slots, node.slots(), Word{});
    write(place, node);
    build_slots({node, 0}, bits, run);
}

/// Fills 2^span slots from `first` on.
void PrefixTree::build_slots(Place first, unsigned span, std::span<const KeyValue> run) {
    if (run.empty()) return;
    if (span == 0 || (run.size() <= bucket::MOST && span < first.node.bits()))
        return build(first, span, run);
    const std::size_t half = std::size_t{1} << (span - 1);
    const std::uint64_t middle =
        first.node.block<Node>()->prefix | static_cast<std::uint64_t>(first.index + half)
                                               << first.node.shift();
    const auto upper = std::partition_point(
        run.begin(), run.end(), [&](const KeyValue& pair) { return pair.key < middle; });
    const auto count = static_cast<std::size_t>(upper - run.begin());
    build_slots(first, span - 1, run.first(count));
    build_slots({first.node, first.index + half}, span - 1, run.subspan(count));
}

}  // namespace numatwin::native
