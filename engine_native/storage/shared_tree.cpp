// What any thread does with a shared prefix tree: batches whose cache misses overlap.
#include "storage/shared_tree.hpp"

#include <stdexcept>

#include "storage/shared_change.hpp"

namespace numatwin::native {

using namespace shared;

SharedTree::SharedTree(Memory& memory, TreeShape shape) : memory_(memory), shape_(shape) {
    shape.check();
}

SharedTree::~SharedTree() {
    epochs_.drain(memory_);
    release_all(root_);
}

void SharedTree::release_all(Word word) noexcept {
    if (word.is_bucket()) {
        memory_.release(word.block<void>(), bucket::bytes(word.kind()));
    } else if (word.is_node()) {
        for (std::size_t i = 0; i < word.slots(); ++i) release_all(word.block<Node>()->slots[i]);
        memory_.release(word.block<void>(), Node::bytes(word.bits()));
    }
}

std::size_t SharedTree::lookup(std::span<const std::uint64_t> keys, std::uint64_t* values,
                               std::uint8_t* found) const noexcept {
    Epochs::Guard guard(epochs_);
    std::size_t hits = 0;
    const auto end = [&](Word word, std::uint64_t key, std::size_t i) {
        while (word == MOVED) {
            word = load_acquire(find(key).slot);
            // A node whose skipped bits differ: the key is not there.
        }
        std::uint64_t value = 0;
        bool there = false;
        if (word.is_bucket()) {
            const int place = bucket::find(word, key, LoadRelaxed{});
            there = place != bucket::NONE;
            if (there) value = load_value_acquire(word, place);
        }
        values[i] = value;
        found[i] = there;
        hits += there;
    };
    const auto prefetch = [](Word word, std::uint64_t key) {
        if (word.is_bucket()) bucket::prefetch(word, key);
    };
    look_up(keys, &root_, load_acquire, prefetch, end);
    return hits;
}

SharedTree::Found SharedTree::find(std::uint64_t key) const noexcept {
    Found at{&root_, {}, nullptr};
    while (true) {
        const Word word = unlocked(load_acquire(at.slot));
        if (!word.is_node() || above(key, word.top()) != word.block<Node>()->prefix) return at;
        at = {slot_of(word, key), word, at.slot};
    }
}

void SharedTree::descend(std::span<const std::uint64_t> keys, Found* found) const noexcept {
    std::uint8_t going[GROUP];
    std::size_t left = 0;
    for (std::size_t i = 0; i < keys.size(); ++i) {
        found[i] = {&root_, {}, nullptr};
        going[left++] = static_cast<std::uint8_t>(i);
    }
    while (left > 0) {
        const std::size_t active = std::exchange(left, 0);
        for (std::size_t j = 0; j < active; ++j) {
            const std::size_t i = going[j];
            const std::uint64_t key = keys[i];
            Found& at = found[i];
            const Word word = unlocked(load_acquire(at.slot));
            if (word.is_bucket()) bucket::prefetch(word, key);
            if (!word.is_node()) continue;
            const unsigned covered = at.node.is_null() ? shape_.key_bits : at.node.shift();
            if (word.top() < covered && above(key, word.top()) != word.block<Node>()->prefix)
                continue;
            at = {slot_of(word, key), word, at.slot};
            __builtin_prefetch(at.slot, 1);
            going[left++] = static_cast<std::uint8_t>(i);
        }
    }
}

std::size_t SharedTree::upsert(std::span<const std::uint64_t> keys,
                               std::span<const std::uint64_t> values, Memory& mine) {
    if (values.size() != keys.size())
        throw std::invalid_argument("upsert: expected as many values as keys");
    Change change(*this, mine);
    for (std::size_t start = 0; start < keys.size(); start += GROUP) {
        const auto group = keys.subspan(start, std::min(GROUP, keys.size() - start));
        Found found[GROUP];
        descend(group, found);
        for (std::size_t i = 0; i < group.size(); ++i) {
            if (group[i] > low_mask(shape_.key_bits))
                throw std::invalid_argument("upsert: key wider than key_bits");
            // Each try finds the place again: another thread may have changed it.
            while (!change.upsert(found[i], group[i], values[start + i])) found[i] = find(group[i]);
        }
    }
    return change.inserted();
}

void SharedTree::walk(std::uint64_t first, std::uint64_t last, Sink sink, void* context) const {
    Epochs::Guard guard(epochs_);
    last = std::min(last, low_mask(shape_.key_bits));
    if (first > last) return;
    // Where a node has been replaced, the scan goes on from the root at the first key not seen.
    while (!walk_slot(&root_, first, last, sink, context)) {
    }
}

bool SharedTree::walk_slot(const Word* slot, std::uint64_t& first, std::uint64_t last, Sink sink,
                           void* context) const {
    const Word word = unlocked(load_acquire(slot));
    if (word == MOVED) return false;
    if (word.is_bucket()) {
        bucket::Pairs pairs;
        for (const KeyValue& pair : pairs_of(word))
            if (pair.key >= first && pair.key <= last) pairs.add(pair);
        pairs.sort();
        sink(context, pairs);
        return true;
    }
    if (!word.is_node()) return true;
    const std::uint64_t least = word.block<Node>()->prefix, most = least | low_mask(word.top());
    if (first > most || last < least) return true;
    const std::uint64_t end = std::min(last, most);
    for (std::uint64_t from = std::max(first, least);;) {
        const std::uint64_t to = from | low_mask(word.shift());
        first = from;
        if (!walk_slot(slot_of(word, from), first, last, sink, context)) return false;
        if (to >= end) return true;
        from = to + 1;
    }
}

}  // namespace numatwin::native
