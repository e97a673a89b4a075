// A heap of (key, index) with the least on top, in which the key of an index can be changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace numatwin {

// Four children a node: fewer levels, and the children share a cache line or two. Equal keys come
// in the order of their index.
class IndexedHeap {
  public:
    using Index = std::uint32_t;
    struct Node {
        double key;
        Index index;
        bool operator<(const Node& other) const {
            return key < other.key || (key == other.key && index < other.index);
        }
    };

    bool empty() const { return node_.empty(); }
    const Node& top() const { return node_.front(); }

    // Makes room for the indices below size.
    void reserve(std::size_t size) {
        if (place_.size() < size) place_.resize(size, absent);
    }

    // Inserts the index or changes its key.
    void set(Index index, double key) {
        if (place_[index] == absent) {
            node_.push_back({key, index});
            sift_up(node_.size() - 1, {key, index});
            return;
        }
        const Node node{key, index};
        const std::size_t place = place_[index];
        if (node < node_[place]) {
            sift_up(place, node);
        } else {
            sift_down(place, node);
        }
    }

    // Does nothing if the index is absent.
    void erase(Index index) {
        const std::size_t place = place_[index];
        if (place == absent) return;
        place_[index] = absent;
        const Node last = node_.back();
        node_.pop_back();
        if (place == node_.size()) return;
        if (last < node_[place]) {
            sift_up(place, last);
        } else {
            sift_down(place, last);
        }
    }

  private:
    static constexpr std::size_t children = 4;
    static constexpr std::uint32_t absent = std::numeric_limits<std::uint32_t>::max();

    void put(std::size_t place, const Node& node) {
        node_[place] = node;
        place_[node.index] = static_cast<std::uint32_t>(place);
    }

    void sift_up(std::size_t place, const Node& node) {
        while (place > 0) {
            const std::size_t parent = (place - 1) / children;
            if (!(node < node_[parent])) break;
            put(place, node_[parent]);
            place = parent;
        }
        put(place, node);
    }

    void sift_down(std::size_t place, const Node& node) {
        for (;;) {
            const std::size_t first = place * children + 1;
            if (first >= node_.size()) break;
            const std::size_t end =
                first + children < node_.size() ? first + children : node_.size();
            std::size_t least = first;
            for (std::size_t child = first + 1; child < end; ++child) {
                if (node_[child] < node_[least]) least = child;
            }
            if (!(node_[least] < node)) break;
            put(place, node_[least]);
            place = least;
        }
        put(place, node);
    }

    std::vector<Node> node_;
    std::vector<std::uint32_t> place_;  // of each index in node_
};

}  // namespace numatwin
