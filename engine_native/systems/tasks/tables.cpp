#include "systems/tasks/tables.hpp"

#include <algorithm>
#include <numeric>
#include <ranges>

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

/// By column, how many a drawn part has.
std::vector<std::uint64_t> values_of(const TableSpec& table, std::size_t number) {
    std::vector<std::uint64_t> found;
    for (const ColumnSpec& column : table.columns) {
        const std::uint64_t own = share_of(column.distinct, number, table.parts.size());
        found.push_back(column.by_row ? std::max<std::uint64_t>(own, 1) : column.distinct);
    }
    return found;
}

}  // namespace

std::uint64_t Dictionary::up_to(std::uint64_t value) const {
    const auto ids = std::views::iota(std::uint64_t{0}, values_);
    return static_cast<std::uint64_t>(
        std::ranges::upper_bound(ids, value, {}, [this](std::uint64_t id) { return at(id); }) -
        ids.begin());
}

void Dictionary::fill(std::uint64_t first, std::uint64_t step) {
    for (std::uint64_t id = 0; id < values_; ++id) put(id, first + id * step + 1);
}

Part::Part(const PartSpec& spec, const std::vector<ColumnSpec>& columns,
           const std::vector<std::uint64_t>& values)
    : spec_(spec), specs_(columns) {
    std::size_t bytes = 0;
    for (std::size_t k = 0; k < specs_.size(); ++k)
        bytes += round_up(PackedIds::bytes(spec_.rows, specs_[k].bits), line_bytes) +
                 round_up(values[k] * specs_[k].value_bytes, line_bytes);
    const Placement placement =
        spec_.node < 0 ? Placement::interleaved() : Placement::near(spec_.host_node);
    memory_ = std::make_unique<Mapping>(bytes, placement, true);
    std::byte* at = memory_->begin();
    for (std::size_t k = 0; k < specs_.size(); ++k) {
        const ColumnSpec& column = specs_[k];
        PackedIds ids(at, column.bits);
        at += round_up(PackedIds::bytes(spec_.rows, column.bits), line_bytes);
        columns_.push_back({ids, Dictionary(at, values[k], column.value_bytes)});
        at += round_up(values[k] * column.value_bytes, line_bytes);
    }
}

Part::Part(const TableSpec& table, std::size_t number, std::uint64_t first, std::uint64_t seed)
    : Part(table.parts[number], table.columns, values_of(table, number)) {
    for (std::size_t k = 0; k < specs_.size(); ++k) {
        auto& [ids, dictionary] = columns_[k];
        dictionary.fill(specs_[k].by_row ? number : 0, specs_[k].by_row ? table.parts.size() : 1);
        const std::uint64_t salt = mixed(seed ^ mixed(k));
        for (std::uint64_t row = 0; row < spec_.rows; ++row) {
            const auto drawn = static_cast<unsigned __int128>(mixed(salt + first + row));
            ids.put(row, static_cast<std::uint64_t>(drawn * dictionary.values() >> 64));
        }
    }
}

void Part::move(int host_node, const std::stop_token& stop) {
    if (spec_.host_node != host_node) memory_->move(host_node, stop);
    spec_.host_node = host_node;
}

ValueRange Part::smallest(std::size_t column, std::uint64_t smallest) const {
    // Values of the whole column are 1, 2, ...
    const std::uint64_t ids =
        specs_[column].by_row ? columns_[column].dictionary.up_to(smallest) : smallest;
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
    all_values_->resize(spec_.columns.size());
    std::vector<std::uint64_t>& values = (*all_values_)[column];
    if (!values.empty()) return;
    values.resize(spec_.columns[column].distinct);
    std::iota(values.begin(), values.end(), std::uint64_t{1});
}

}  // namespace numatwin::native::tasks
