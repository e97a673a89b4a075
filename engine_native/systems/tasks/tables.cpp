#include "systems/tasks/tables.hpp"

#include <algorithm>
#include <numeric>
#include <ranges>

#include "memory/mapping.hpp"

namespace numatwin::native::tasks {
namespace {

constexpr std::size_t line_bytes = 64;
constexpr double golden_ratio = 0.6180339887498949;

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

std::uint64_t rows_of(const TableSpec& table) {
    return std::accumulate(table.parts.begin(), table.parts.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const PartSpec& part) { return sum + part.rows; });
}

std::size_t dictionary_bytes(const ColumnSpec& column, std::uint64_t values) {
    return column.encoded ? round_up(values * column.value_bytes, line_bytes) : 0;
}

/// Calls put(row, id) for so many rows from `first` on, no id twice, and neighbours far apart.
template <class Put>
void each_once(std::uint64_t first, std::uint64_t rows, std::uint64_t ids, std::uint64_t drawn,
               Put put) {
    auto step = static_cast<std::uint64_t>(static_cast<double>(ids) * golden_ratio) + 1;
    while (std::gcd(step, ids) != 1) ++step;
    const auto before = static_cast<unsigned __int128>(first) * step + drawn;
    auto id = static_cast<std::uint64_t>(before % ids);
    for (std::uint64_t row = 0; row < rows; ++row) {
        put(row, id);
        id = (id + step) % ids;
    }
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
                 dictionary_bytes(specs_[k], values[k]);
    const Placement placement =
        spec_.node < 0 ? Placement::interleaved() : Placement::near(spec_.host_node);
    memory_ = std::make_unique<Mapping>(bytes, placement, true);
    std::byte* at = memory_->begin();
    for (std::size_t k = 0; k < specs_.size(); ++k) {
        const ColumnSpec& column = specs_[k];
        PackedIds ids(at, column.bits);
        at += round_up(PackedIds::bytes(spec_.rows, column.bits), line_bytes);
        const std::uint64_t known = column.encoded ? values[k] : 0;
        columns_.push_back({ids, Dictionary(at, known, column.value_bytes)});
        at += dictionary_bytes(column, known);
    }
}

Part::Part(const TableSpec& table, std::size_t number, std::uint64_t first, std::uint64_t seed)
    : Part(table.parts[number], table.columns, values_of(table, number)) {
    const std::vector<std::uint64_t> values = values_of(table, number);
    for (std::size_t k = 0; k < specs_.size(); ++k) {
        const ColumnSpec& column = specs_[k];
        auto& [ids, dictionary] = columns_[k];
        dictionary.fill(column.by_row ? number : 0, column.by_row ? table.parts.size() : 1);
        const std::uint64_t salt = mixed(seed ^ mixed(k));
        // Parts are not divided as values are: one may be there twice.
        if (column.distinct >= rows_of(table) && spec_.rows <= values[k] + 1) {
            each_once(column.by_row ? 0 : first, spec_.rows, values[k], salt,
                      [&ids](std::uint64_t row, std::uint64_t id) { ids.put(row, id); });
            continue;
        }
        for (std::uint64_t row = 0; row < spec_.rows; ++row) {
            const auto drawn = static_cast<unsigned __int128>(mixed(salt + first + row));
            ids.put(row, static_cast<std::uint64_t>(drawn * values[k] >> 64));
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

TaskTable::TaskTable(const TableSpec& spec)
    : spec_(spec), firsts_(spec.parts.size() + 1), parts_(spec.parts.size()) {
    for (std::size_t k = 0; k < parts(); ++k) firsts_[k + 1] = firsts_[k] + spec.parts[k].rows;
}

std::size_t TaskTable::part_of(std::uint64_t row) const {
    // Parts are about equal.
    auto part = static_cast<std::size_t>(static_cast<unsigned __int128>(row) * parts() / rows());
    while (firsts_[part] > row) --part;
    while (firsts_[part + 1] <= row) ++part;
    return part;
}

void TaskTable::make(std::size_t part, std::uint64_t seed) {
    parts_[part] = std::make_unique<Part>(spec_, part, firsts_[part], seed);
}

void TaskTable::make_all_values(std::size_t column) {
    all_values_->resize(spec_.columns.size());
    std::vector<std::uint64_t>& values = (*all_values_)[column];
    if (!values.empty()) return;
    values.resize(spec_.columns[column].distinct);
    std::iota(values.begin(), values.end(), std::uint64_t{1});
}

}  // namespace numatwin::native::tasks
