#include "systems/eris/partition_table.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "systems/eris/node_search.hpp"

namespace numatwin::native {

namespace {

constexpr std::size_t fan_out = 8;
constexpr std::size_t few = 4;  // keys, that go down the tree sooner than registers are filled
constexpr std::uint64_t greatest_key = std::numeric_limits<std::uint64_t>::max();

void check(std::span<const Partition> partitions) {
    if (partitions.empty() || partitions.front().first_key != 0) {
        throw std::invalid_argument("the first partition of a table begins at key 0");
    }
    for (std::size_t p = 1; p < partitions.size(); ++p) {
        if (partitions[p].first_key < partitions[p - 1].first_key) {
            throw std::invalid_argument(
                "the partitions of a table stand in the order of their keys");
        }
    }
}

}  // namespace

PartitionTree::PartitionTree(Memory& memory, std::span<const Partition> partitions,
                             std::uint64_t version)
    : memory_(memory), version_(version), partitions_(partitions.begin(), partitions.end()) {
    check(partitions);
    // What is not empty: its owner, and its last key.
    std::vector<std::uint32_t> owner;
    std::vector<std::uint64_t> last;
    for (std::size_t p = 0; p < partitions.size(); ++p) {
        const bool at_end = p + 1 == partitions.size();
        if (at_end || partitions[p + 1].first_key != partitions[p].first_key) {
            owner.push_back(partitions[p].owner);
            last.push_back(at_end ? greatest_key : partitions[p + 1].first_key - 1);
        }
    }
    if (owner.size() <= RankTable::most_partitions && rank_search::available()) {
        ranks_ = rank_search::table_of(last, owner);
    }
    // Level by level from below: eight children a node. A node's last key is its last child's.
    std::vector<std::vector<Node>> levels;
    do {
        std::vector<Node> level((last.size() + fan_out - 1) / fan_out);
        std::vector<std::uint64_t> last_of_node(level.size());
        for (std::size_t n = 0; n < level.size(); ++n) {
            const std::size_t children = std::min(fan_out, last.size() - n * fan_out);
            level[n].first_child = n * fan_out;
            std::fill(std::begin(level[n].last), std::end(level[n].last), greatest_key);
            std::copy_n(&last[n * fan_out], children - 1, level[n].last);
            last_of_node[n] = last[n * fan_out + children - 1];
        }
        nodes_ += level.size();
        levels.push_back(std::move(level));
        last = std::move(last_of_node);
    } while (last.size() > 1);
    levels_ = levels.size();
    leaves_ = owner.size();

    node_ = static_cast<Node*>(memory_.allocate(bytes()));
    owner_ = reinterpret_cast<std::uint32_t*>(node_ + nodes_);
    std::copy(owner.begin(), owner.end(), owner_);
    std::size_t at = 0;
    for (std::size_t level = levels_; level-- > 0;) {
        const std::size_t below = at + levels[level].size();  // where the next level begins
        for (Node node : levels[level]) {
            node.first_child += level > 0 ? below : 0;
            node_[at++] = node;
        }
    }
}

PartitionTree::~PartitionTree() {
    memory_.release(node_, bytes());
}

std::size_t PartitionTree::bytes() const {
    return nodes_ * sizeof(Node) + leaves_ * sizeof(std::uint32_t);
}

std::uint32_t PartitionTree::owner(std::uint64_t key) const {
    std::uint32_t owner = 0;
    find_owners(std::span<const std::uint64_t>(&key, 1), &owner);
    return owner;
}

template <class Entry>
void PartitionTree::find(std::span<const Entry> entries, std::uint32_t* owners) const {
    constexpr std::size_t stride = sizeof(Entry) / sizeof(std::uint64_t);
    const auto* keys = reinterpret_cast<const std::uint64_t*>(entries.data());
    if (ranks_ && entries.size() >= few) {
        rank_search::find(*ranks_, keys, stride, entries.size(), owners);
    } else {
        node_search::find({node_, levels_, owner_}, keys, stride, entries.size(), owners);
    }
}

void PartitionTree::find_owners(std::span<const std::uint64_t> keys, std::uint32_t* owners) const {
    find(keys, owners);
}

void PartitionTree::find_owners(std::span<const Pair> pairs, std::uint32_t* owners) const {
    find(pairs, owners);
}

PartitionTable::PartitionTable(Memory& memory, std::size_t readers,
                               std::span<const Partition> partitions)
    : memory_(memory), slots_(readers) {
    versions_.push_back(std::make_unique<PartitionTree>(memory, partitions, 0));
    current_.store(versions_.back().get(), std::memory_order_seq_cst);
}

PartitionTable::~PartitionTable() = default;

std::uint64_t PartitionTable::replace(std::span<const Partition> partitions) {
    const std::uint64_t version = newest().version() + 1;
    versions_.push_back(std::make_unique<PartitionTree>(memory_, partitions, version));
    current_.store(versions_.back().get(), std::memory_order_seq_cst);  // P1
    free_unused();
    return version;
}

std::size_t PartitionTable::free_unused() {
    const PartitionTree* newest = versions_.back().get();
    std::erase_if(versions_, [&](const std::unique_ptr<const PartitionTree>& version) {
        return version.get() != newest &&
               std::none_of(slots_.begin(), slots_.end(), [&](const Slot& slot) {
                   return slot.uses.load(std::memory_order_seq_cst) == version.get();  // P2
               });
    });
    return versions_.size() - 1;
}

bool PartitionTable::all_use_newest() const {
    const PartitionTree* newest = current_.load(std::memory_order_seq_cst);
    return std::all_of(slots_.begin(), slots_.end(), [newest](const Slot& slot) {
        // Looked at by seq_cst like P2: a reader that is not seen here yet will see the newest.
        const PartitionTree* uses = slot.uses.load(std::memory_order_seq_cst);
        return uses == nullptr || uses == newest;
    });
}

}  // namespace numatwin::native
