#include "systems/eris/cycle.hpp"

#include <algorithm>
#include <limits>

namespace numatwin::native {
namespace {

// The partition that holds a key: of those that begin at or before it, the last.
std::uint32_t owner(const std::vector<std::uint64_t>& bounds, std::uint64_t key) {
    const auto above = std::upper_bound(bounds.begin(), bounds.end() - 1, key);
    return static_cast<std::uint32_t>(above - bounds.begin() - 1);
}

// Transfers among `workers`, taken off their surplus.
void match(std::vector<std::int64_t>& surplus, const std::vector<std::uint32_t>& workers,
           const std::vector<std::uint32_t>& node, std::vector<Transfer>& found) {
    std::size_t donor = 0, recipient = 0;
    while (true) {
        while (donor < workers.size() && surplus[workers[donor]] <= 0) ++donor;
        while (recipient < workers.size() && surplus[workers[recipient]] >= 0) ++recipient;
        if (donor == workers.size() || recipient == workers.size()) return;
        const std::uint32_t source = workers[donor], target = workers[recipient];
        const std::int64_t entries = std::min(surplus[source], -surplus[target]);
        Transfer transfer(source, target, node[source] == node[target]);
        transfer.entries = static_cast<std::uint64_t>(entries);
        found.push_back(transfer);
        surplus[source] -= entries;
        surplus[target] += entries;
    }
}

}  // namespace

std::vector<Transfer> index_transfers(const std::vector<std::uint64_t>& before,
                                      const std::vector<std::uint64_t>& after,
                                      const std::vector<std::uint32_t>& node) {
    std::vector<std::uint64_t> edges(before.begin(), before.end() - 1);
    edges.insert(edges.end(), after.begin(), after.end() - 1);
    std::sort(edges.begin(), edges.end());
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
    std::vector<Transfer> found;
    for (std::size_t k = 0; k < edges.size(); ++k) {
        const std::uint32_t source = owner(before, edges[k]), target = owner(after, edges[k]);
        if (source == target) continue;
        Transfer transfer(source, target, node[source] == node[target]);
        transfer.first = edges[k];
        transfer.last =
            k + 1 < edges.size() ? edges[k + 1] - 1 : std::numeric_limits<std::uint64_t>::max();
        found.push_back(transfer);
    }
    return found;
}

std::vector<Transfer> column_transfers(const std::vector<std::uint64_t>& before,
                                       const std::vector<std::uint64_t>& after,
                                       const std::vector<std::uint32_t>& node) {
    std::vector<std::int64_t> surplus(before.size());
    std::vector<std::vector<std::uint32_t>> on_node;
    std::vector<std::uint32_t> all;
    for (std::uint32_t k = 0; k < before.size(); ++k) {
        surplus[k] = static_cast<std::int64_t>(before[k] - after[k]);
        if (node[k] >= on_node.size()) on_node.resize(node[k] + 1);
        on_node[node[k]].push_back(k);
        all.push_back(k);
    }
    std::vector<Transfer> found;
    for (const auto& workers : on_node) match(surplus, workers, node, found);
    match(surplus, all, node, found);
    return found;
}

}  // namespace numatwin::native
