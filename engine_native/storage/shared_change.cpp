// Changes to a shared prefix tree; the protocol stands in shared_tree.hpp.
#include "storage/shared_change.hpp"

#include <utility>
#include <vector>

namespace numatwin::native {

using namespace shared;

namespace {

/// A node starts with 16 slots.
constexpr unsigned FIRST_BITS = 4;

}  // namespace

class SharedTree::Change::Unlinked {
  public:
    explicit Unlinked(Change& change) : change_(change) {}
    Unlinked(const Unlinked&) = delete;
    Unlinked& operator=(const Unlinked&) = delete;
    ~Unlinked() {
        for (const auto [block, bytes] : blocks_)
            if (block != nullptr) change_.release(block, bytes);
    }
    void* allocate(std::size_t bytes) {
        blocks_.push_back({nullptr, 0});
        blocks_.back() = {change_.allocate(bytes), bytes};
        return blocks_.back().block;
    }
    void keep() noexcept { blocks_.clear(); }

  private:
    Change& change_;
    std::vector<Epochs::Block> blocks_;
};

/// A locked slot, unlocked again with what it held or what set() says.
class SharedTree::Change::Locked {
  public:
    explicit Locked(Word* slot) : slot_(slot), word_(lock(slot)) {}
    Locked(Locked&& other) noexcept
        : slot_(std::exchange(other.slot_, nullptr)), word_(other.word_) {}
    Locked& operator=(Locked&&) = delete;
    ~Locked() {
        if (slot_ != nullptr && word_ != MOVED) store_release(slot_, word_);
    }
    Word word() const { return word_; }
    void set(Word word) {
        store_release(slot_, word);
        slot_ = nullptr;
    }

  private:
    Word* slot_;
    Word word_;
};

SharedTree::Change::~Change() {
    // Only counts: relaxed.
    tree_.keys_.fetch_add(inserted_, std::memory_order_relaxed);
    tree_.bytes_.fetch_add(static_cast<std::uint64_t>(bytes_), std::memory_order_relaxed);
    guard_.leave(memory_);
}

void* SharedTree::Change::allocate(std::size_t bytes) {
    void* block = memory_.allocate(bytes);
    bytes_ += static_cast<std::int64_t>(bytes);
    return block;
}

void SharedTree::Change::release(void* block, std::size_t bytes) noexcept {
    memory_.release(block, bytes);
    bytes_ -= static_cast<std::int64_t>(bytes);
}

void SharedTree::Change::retire(void* block, std::size_t bytes) noexcept {
    guard_.retire(block, bytes);
    bytes_ -= static_cast<std::int64_t>(bytes);
}

bool SharedTree::Change::upsert(const Found& at, std::uint64_t key, std::uint64_t value) {
    const Word seen = load_acquire(at.slot);
    if (seen.is_node()) {
        if (is_locked(seen)) std::this_thread::yield();  // the node is being replaced
        if (is_locked(seen) || above(key, seen.top()) == seen.block<Node>()->prefix) return false;
        return put_above(at, seen, key, value);
    }
    bool must_grow = false;
    {
        Locked slot(at.slot);
        const Word word = slot.word();
        if (word == MOVED || word.is_node()) return false;
        if (word.is_null()) {
            const KeyValue pair{key, value};
            slot.set(bucket::fill(1, allocate(bucket::bytes(1)), {&pair, 1}, 0));
            ++inserted_;
            return true;
        }
        if (const int place = bucket::find(word, key, LoadRelaxed{}); place != bucket::NONE) {
            store_value_release(word, place, value);
            return true;
        }
        if (const int place = bucket::free_place(word, key); place != bucket::NONE) {
            slot.set(put_relaxed(word, place, key, value));
            ++inserted_;
            return true;
        }
        guard_.reserve(1);
        const Word larger = with_pair(word, key, value, at);
        if (larger.is_null()) {
            must_grow = true;
        } else {
            slot.set(larger);
            retire(word.block<void>(), bucket::bytes(word.kind()));
            ++inserted_;
            return true;
        }
    }
    if (must_grow) grow(at);
    return false;
}

bool SharedTree::Change::is_in_digit(Word node, unsigned bit) const {
    const unsigned width = tree_.shape_.prefix_bits;
    return !node.is_null() && node.shift() / width == bit / width;
}

/// What takes the place of a full bucket; null where the node must grow instead.
Word SharedTree::Change::with_pair(Word full, std::uint64_t key, std::uint64_t value,
                                   const Found& at) {
    bucket::Pairs pairs = pairs_of(full);
    if (bucket::capacity(full.kind()) < bucket::MOST) {
        pairs.add({key, value});
        const unsigned kind = full.kind() + 1;
        return bucket::fill(kind, allocate(bucket::bytes(kind)), pairs, 0);
    }
    std::uint64_t differ = 0;
    for (const KeyValue& pair : pairs) differ |= pair.key ^ key;
    const unsigned bit = highest_bit(differ);
    if (is_in_digit(at.node, bit)) return {};
    Unlinked blocks(*this);
    const Word made = make_node(key, bit, false, blocks);
    std::array<KeyValue, bucket::MOST + 1> all;
    *std::copy(pairs.begin(), pairs.end(), all.begin()) = {key, value};
    add(made, all, blocks);
    blocks.keep();
    return made;
}

/// An empty node over the digit of `bit`; with all its slots, or with 16 if those tell that bit.
Word SharedTree::Change::make_node(std::uint64_t key, unsigned bit, bool is_whole,
                                   Unlinked& blocks) {
    const unsigned width = tree_.shape_.prefix_bits;
    const unsigned low = bit / width * width, top = std::min(low + width, tree_.shape_.key_bits);
    unsigned bits = top - low;
    if (!is_whole && bits > FIRST_BITS && bit >= top - FIRST_BITS) bits = FIRST_BITS;
    return native::make_node(blocks.allocate(Node::bytes(bits)), key, top, bits, 0);
}

/// Pairs into the empty slots of a node that nobody else sees.
void SharedTree::Change::add(Word node, std::span<const KeyValue> pairs, Unlinked& blocks) {
    std::vector<KeyValue> sorted(pairs.begin(), pairs.end());
    std::sort(sorted.begin(), sorted.end(), [](KeyValue a, KeyValue b) { return a.key < b.key; });
    for (auto first = sorted.begin(); first != sorted.end();) {
        const std::size_t index = node.index(first->key);
        const auto end = std::find_if(first, sorted.end(),
                                      [&](KeyValue pair) { return node.index(pair.key) != index; });
        const auto count = static_cast<std::size_t>(end - first);
        const unsigned kind = count <= 4 ? 1 : count <= 8 ? 2 : 3;
        node.block<Node>()->slots[index] =
            bucket::fill(kind, blocks.allocate(bucket::bytes(kind)), {first, end}, 0);
        first = end;
    }
}

/// A node for the first bit in which the key differs from what `node` skips; where the node of the
/// slot is of the same digit, that one grows instead.
bool SharedTree::Change::put_above(const Found& at, Word node, std::uint64_t key,
                                   std::uint64_t value) {
    const std::uint64_t prefix = node.block<Node>()->prefix;
    const unsigned bit = highest_bit(above(key ^ prefix, node.top()));
    if (is_in_digit(at.node, bit)) {
        grow(at);
        return false;
    }
    Unlinked blocks(*this);
    const Word made = make_node(key, bit, false, blocks);
    const KeyValue pair{key, value};
    add(made, {&pair, 1}, blocks);
    *slot_of(made, prefix) = node;
    if (!cas_acquire_release(at.slot, node, made)) return false;
    blocks.keep();
    ++inserted_;
    return true;
}

/// Replaces the node of a slot by one with all the slots of its digit.
void SharedTree::Change::grow(const Found& at) {
    Locked link(at.parent);
    // Another thread may have replaced it, or put a node above it.
    if (link.word() != at.node) return;
    const Word old = at.node;
    Node* from = old.block<Node>();
    guard_.reserve(old.slots() + 1);
    Unlinked blocks(*this);
    std::vector<Locked> slots;
    slots.reserve(old.slots());
    for (std::size_t i = 0; i < old.slots(); ++i) slots.emplace_back(from->slots + i);
    const Word whole = make_node(from->prefix, old.shift(), true, blocks);
    for (const Locked& slot : slots) {
        const Word word = slot.word();
        if (word.is_node()) {
            *slot_of(whole, word.block<Node>()->prefix) = word;
        } else if (word.is_bucket()) {
            add(whole, pairs_of(word), blocks);
        }
    }
    blocks.keep();
    link.set(whole);
    for (Locked& slot : slots) {
        const Word word = slot.word();
        slot.set(MOVED);
        if (word.is_bucket()) retire(word.block<void>(), bucket::bytes(word.kind()));
    }
    retire(from, Node::bytes(old.bits()));
}

}  // namespace numatwin::native
