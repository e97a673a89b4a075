// An AEU's partition of a column, and what leaves or reaches it in a balancing cycle.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "storage/column.hpp"
#include "systems/eris/cycle.hpp"

namespace numatwin::native {

struct ColumnPartition {
    explicit ColumnPartition(Memory& memory) : memory(memory), own(memory) {}

    /// Entries on their way here. `source` is what the source set aside; it is linked, or copied.
    struct Arriving {
        std::size_t transfer;
        std::shared_ptr<Column> source;
        std::optional<Column> copy;

        bool ready() const { return !copy || source == nullptr; }
        Column& entries() { return copy ? *copy : *source; }
    };

    Memory& memory;
    Column own;
    /// The cycle that it takes part in, until it is over for this AEU.
    std::shared_ptr<Cycle> cycle;
    std::vector<std::shared_ptr<Column>> leaving;
    std::vector<Arriving> arriving;
};

}  // namespace numatwin::native
