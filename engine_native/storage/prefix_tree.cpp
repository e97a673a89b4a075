// What a prefix tree does for a batch of keys: descents whose cache misses overlap.
//
// Upserts descend in groups as look-ups do, then do their work one by one in the order of the
// batch, at the places found; when a node's block has been replaced meanwhile, from the root again,
// which by then is in the caches.
#include "storage/prefix_tree.hpp"

#include <stdexcept>

#include "storage/bucket.hpp"

namespace numatwin::native {
namespace {

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

void TreeShape::check() const {
    if (key_bits < 1 || key_bits > 64) throw std::invalid_argument("key_bits: expected 1 to 64");
    if (prefix_bits < 1 || prefix_bits > 16)
        throw std::invalid_argument("prefix_bits: expected 1 to 16");
}

PrefixTree::PrefixTree(Memory& memory, TreeShape shape) : memory_(&memory), shape_(shape) {
    shape.check();
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

std::span<Word> PrefixTree::slots_of(Place place, unsigned span) noexcept {
    if (place.node.is_null()) return {&root_, 1};
    const std::size_t many = std::size_t{1} << span;
    return {place.node.block<Node>()->slots + (place.index & ~(many - 1)), many};
}

void PrefixTree::write(Place place, Word word) noexcept {
    std::ranges::fill(slots_of(place, word.span()), word);
}

void PrefixTree::clear(Place place, unsigned span) noexcept {
    std::ranges::fill(slots_of(place, span), Word{});
}

bool PrefixTree::are_null(Place place, unsigned span) noexcept {
    return std::ranges::all_of(slots_of(place, span), &Word::is_null);
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
    look_up(
        keys, &root_, [](const Word* slot) { return *slot; },
        [&](Word word, std::uint64_t key) { prefetch_end(word, key, leaf_bits_); }, end);
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
        if (!leaf->put(at, value, leaf_bits_)) return 0;
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

// A prefix tree from a sorted run: nodes of the size that so many keys need, filled once.

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
        Leaf* leaf = new_leaf(run.front().key);
        for (const KeyValue& pair : run) leaf->put(pair.key - leaf->base, pair.value, leaf_bits_);
        write(place, Word::leaf(leaf, span));
        keys_ += run.size();
        return;
    }
    // As dense as arrays of values are: on the grid (see prefix_tree_grow.cpp).
    const std::uint64_t arrays = ((run.back().key - run.front().key) >> leaf_bits_) + 1;
    const unsigned most = run.size() / leaf_least_ >= arrays ? grid_bits(top) : most_bits(top);
    unsigned bits = 1;
    while (bits < most && run.size() >> bits > PAIRS_PER_SLOT) ++bits;
    const Word node = new_node(run.front().key, top, bits, span);
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

// Ranges of a prefix tree in the order of their keys, and what a subtree amounts to.

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
        return pairs.size() == 0 || sink(context, pairs);
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
        each_word(word, [&](Word child) {
            const Size part = size_of(child);
            size.keys += part.keys;
            size.bytes += part.bytes;
        });
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
