// Ranges of a prefix tree in the order of their keys, and what a subtree amounts to.
#include "storage/bucket.hpp"
#include "storage/prefix_tree.hpp"

namespace numatwin::native {

namespace {

/// So many slots ahead of the scan, buckets are prefetched.
constexpr std::size_t AHEAD = 6;

/// Inlined: see bucket::prefetch.
[[gnu::always_inline]] inline void prefetch_all(Word word) {
    if (!word.is_bucket()) return;
    for (unsigned line = 0; line < bucket::lines(word.kind()); ++line)
        __builtin_prefetch(word.block<Line>() + line);
}

}  // namespace

void PrefixTree::walk(std::uint64_t first, std::uint64_t last, Sink sink, void* context) const {
    if (first <= last) walk_word(root_, first, last, sink, context);
}

bool PrefixTree::walk_word(Word word, std::uint64_t first, std::uint64_t last, Sink sink,
                           void* context) const {
    if (word.is_null()) return true;
    if (word.is_bucket()) {
        bucket::Pairs pairs;
        for (const KeyValue& pair : bucket::Pairs(word))
            if (pair.key >= first && pair.key <= last) pairs.add(pair);
        pairs.sort();
        return pairs.size() == 0 || sink(context, {pairs.begin(), pairs.end()});
    }
    const std::uint64_t least = prefix_of(word), most = least | low_mask(top_of(word));
    if (first > most || last < least) return true;
    first = std::max(first, least);
    last = std::min(last, most);
    if (word.is_node()) {
        const Word* slots = word.block<Node>()->slots;
        const std::size_t end = word.index(last);
        std::size_t i = word.index(first);
        while (i <= end) {
            if (i + AHEAD <= end) prefetch_all(slots[i + AHEAD]);
            if (!walk_word(slots[i], first, last, sink, context)) return false;
            const std::size_t many = std::size_t{1} << slots[i].span();
            i = (i & ~(many - 1)) + many;
        }
        return true;
    }
    Leaf* leaf = word.block<Leaf>();
    const std::uint64_t* values = leaf->values(leaf_bits_);
    std::array<KeyValue, 64> run;
    std::size_t count = 0;
    for (std::uint64_t at = first - least; at <= last - least;) {
        const std::uint64_t ahead = leaf->present[at / 64] >> at % 64;
        if (ahead == 0) {
            at = (at / 64 + 1) * 64;
            continue;
        }
        at += static_cast<std::uint64_t>(std::countr_zero(ahead));
        if (at > last - least) break;
        run[count++] = {least + at, values[at]};
        ++at;
        if (count == run.size()) {
            if (!sink(context, run)) return false;
            count = 0;
        }
    }
    return count == 0 || sink(context, {run.data(), count});
}

std::size_t PrefixTree::flatten(std::uint64_t first, std::uint64_t last,
                                std::span<KeyValue> piece) const {
    struct Taken {
        std::span<KeyValue> piece;
        std::size_t count = 0;
    } taken{piece};
    walk(
        first, last,
        [](void* context, std::span<const KeyValue> run) {
            auto& to = *static_cast<Taken*>(context);
            const std::size_t fits = std::min(run.size(), to.piece.size() - to.count);
            std::copy_n(run.data(), fits, to.piece.data() + to.count);
            to.count += fits;
            return to.count < to.piece.size();
        },
        &taken);
    return taken.count;
}

PrefixTree::Size PrefixTree::size_of(Word word) const noexcept {
    if (word.is_null()) return {};
    Size size{0, block_bytes(word)};
    if (word.is_bucket()) {
        size.keys = word.count();
    } else if (word.is_leaf()) {
        size.keys = word.block<Leaf>()->count;
    } else {
        const Word* slots = word.block<Node>()->slots;
        for (std::size_t i = 0; i < word.slots(); i += std::size_t{1} << slots[i].span()) {
            const Size part = size_of(slots[i]);
            size.keys += part.keys;
            size.bytes += part.bytes;
        }
    }
    return size;
}

std::uint64_t PrefixTree::end_key(Word word, bool greatest) const noexcept {
    while (word.is_node()) {
        const Word* slots = word.block<Node>()->slots;
        std::size_t i = greatest ? word.slots() - 1 : 0;
        while (slots[i].is_null()) i += greatest ? std::size_t{0} - 1 : 1;
        word = slots[i];
    }
    if (word.is_leaf()) {
        Leaf* leaf = word.block<Leaf>();
        std::uint64_t at = greatest ? low_mask(leaf_bits_) : 0;
        while (!leaf->has(at)) at += greatest ? std::uint64_t{0} - 1 : 1;
        return leaf->base + at;
    }
    bucket::Pairs pairs(word);
    pairs.sort();
    return greatest ? pairs.end()[-1].key : pairs.begin()->key;
}

}  // namespace numatwin::native
