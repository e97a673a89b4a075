#include "systems/tasks/tables.hpp"

#include <algorithm>
#include <numeric>

#include "memory/mapping.hpp"

namespace numatwin::native::tasks {
namespace {

constexpr std::size_t line_bytes = 64;

/// Steele, Lea and Flood, Fast splittable pseudorandom number generators, OOPSLA 2014.
std::uint64_t mixed(std::uint64_t word) {
    word += 0x9E3779B97F4A7C15u;
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9u;
    word = (word ^ word >> 27) * 0x94D049BB133111EBu;
    return word ^ word >> 31;
}

/// Of `distinct` values, those of part `number` of so many: every one of `parts`, from `number` on.
std::uint64_t share_of(std::uint64_t distinct, std::size_t number, std::size_t parts) {
    return distinct > number ? (distinct - number + parts - 1) / parts : 0;
}

}  // namespace

void Dictionary::fill(std::uint64_t first, std::uint64_t step) {
    for (std::uint64_t id = 0; id < values_; ++id) {
        const std::uint64_t value = first + id * step + 1;
        if (value_bytes_ == 4) {
            reinterpret_cast<std::uint32_t*>(bytes_)[id] = static_cast<std::uint32_t>(value);
        } else {
            reinterpret_cast<std::uint64_t*>(bytes_)[id] = value;
        }
    }
}

Part::Part(const TableSpec& table, std::size_t number, std::uint64_t first, std::uint64_t seed)
    : spec_(table.parts[number]),
      specs_(table.columns),
      number_(number),
      parts_(table.parts.size()) {
    std::vector<std::uint64_t> values;
    std::size_t bytes = 0;
    for (const ColumnSpec& column : specs_) {
        values.push_back(column.by_row
                             ? std::max<std::uint64_t>(share_of(column.distinct, number, parts_), 1)
                             : column.distinct);
        bytes += round_up(PackedIds::bytes(spec_.rows, column.bits), line_bytes) +
                 round_up(values.back() * column.value_bytes, line_bytes);
    }
    const Placement placement =
        spec_.node < 0 ? Placement::interleaved() : Placement::near(spec_.host_node);
    memory_ = std::make_unique<Mapping>(bytes, placement, true);
    std::byte* at = memory_->begin();
    for (std::size_t k = 0; k < specs_.size(); ++k) {
        const ColumnSpec& column = specs_[k];
        PackedIds ids(at, column.bits);
        at += round_up(PackedIds::bytes(spec_.rows, column.bits), line_bytes);
        Dictionary dictionary(at, values[k], column.value_bytes);
        at += round_up(values[k] * column.value_bytes, line_bytes);
        dictionary.fill(column.by_row ? number : 0, column.by_row ? parts_ : 1);
        const std::uint64_t salt = mixed(seed ^ mixed(k));
        for (std::uint64_t row = 0; row < spec_.rows; ++row) {
            const auto drawn = static_cast<unsigned __int128>(mixed(salt + first + row));
            ids.put(row, static_cast<std::uint64_t>(drawn * values[k] >> 64));
        }
        columns_.push_back({ids, dictionary});
    }
}

ValueRange Part::smallest(std::size_t column, std::uint64_t smallest) const {
    const bool by_row = specs_[column].by_row;
    const std::uint64_t ids = by_row ? share_of(smallest, number_, parts_) : smallest;
    return ids == 0 ? ValueRange{1, 0} : ValueRange{0, ids - 1};
}

std::uint64_t TaskTable::rows() const {
    return std::accumulate(spec_.parts.begin(), spec_.parts.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const PartSpec& part) { return sum + part.rows; });
}

void TaskTable::make(std::size_t part, std::uint64_t seed) {
    std::uint64_t first = 0;
    for (std::size_t k = 0; k < part; ++k) first += spec_.parts[k].rows;
    parts_[part] = std::make_unique<Part>(spec_, part, first, seed);
}

void TaskTable::make_all_values(std::size_t column) {
    all_values_.resize(spec_.columns.size());
    std::vector<std::uint64_t>& values = all_values_[column];
    if (!values.empty()) return;
    values.resize(spec_.columns[column].distinct);
    std::iota(values.begin(), values.end(), std::uint64_t{1});
}

}  // namespace numatwin::native::tasks
