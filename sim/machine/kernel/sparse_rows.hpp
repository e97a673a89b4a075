// Sparse rows: of a table of numbers, the few entries of each row that are not 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace numatwin {

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

}  // namespace numatwin
