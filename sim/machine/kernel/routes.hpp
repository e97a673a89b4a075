// The routes that lines take over a machine's directed links, from node to node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernel/huge_pages.hpp"

namespace numatwin {

// Sparse rows: of a table of numbers, the few entries of each row that are not 0.

using Numbers = std::vector<double>;
using Positions = std::vector<std::int64_t>;

// Entries first[i] … first[i + 1] - 1 are those of row i. None are given: all rows are empty.
struct SparseRows {
    Positions first, column;
    Numbers value;

    // use(column, value, entry)
    template <class Use>
    void each(std::size_t row, Use use) const {
        if (row + 1 >= first.size()) return;
        for (auto k = first[row]; k < first[row + 1]; ++k) {
            const auto at = static_cast<std::size_t>(k);
            use(static_cast<std::size_t>(column[at]), value[at], at);
        }
    }
};

class Routes {
  public:
    Routes() = default;
    // entering, predecessor [n, v]: of each vertex, on the way there from a node, the last link and
    // the vertex before it; n nodes are the first of v vertices. All are positions that are in
    // range, and each way ends.
    Routes(const Positions& entering, const Positions& predecessor, std::size_t vertices)
        : hop_(entering.size()), vertices_(vertices) {
        for (std::size_t k = 0; k < hop_.size(); ++k)
            hop_[k] = {static_cast<std::uint32_t>(entering[k]),
                       static_cast<std::uint32_t>(predecessor[k])};
    }

    // use(link) for each link on the way, the last one first.
    template <class Use>
    void each_link(std::size_t from, std::size_t to, Use use) const {
        const Hop* const hops = hop_.data() + from * vertices_;
        for (std::size_t vertex = to; vertex != from;) {
            const Hop hop = hops[vertex];
            use(hop.link);
            vertex = hop.before;
        }
    }
    bool crosses(std::size_t from, std::size_t to, std::size_t link) const {
        bool crossed = false;
        each_link(from, to, [&](std::size_t passed) { crossed = crossed || passed == link; });
        return crossed;
    }
    // Where the way is looked up first, for callers that fetch it into the cache.
    const void* last_hop(std::size_t from, std::size_t to) const {
        return hop_.data() + from * vertices_ + to;
    }

  private:
    // The last link on the way to a vertex, and the vertex before it.
    struct Hop {
        std::uint32_t link, before;
    };

    LargeVector<Hop> hop_;  // [n, v]
    std::size_t vertices_ = 0;
};

}  // namespace numatwin
