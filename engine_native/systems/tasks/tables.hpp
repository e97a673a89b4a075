// Tables by column: of each part its index vectors and dictionaries, on a node of this host.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <vector>

#include "kernel/described.hpp"
#include "memory/mapping.hpp"
#include "storage/packed_ids.hpp"

namespace numatwin::native::tasks {

struct ColumnSpec {
    FIELDS_OF(ColumnSpec);
    FIELD(std::uint32_t, bits, "of an id", 1);
    FIELD(std::uint64_t, distinct, "values of the whole column", 1);
    FIELD(std::uint32_t, value_bytes, "4 or 8", 8);
    FIELD(bool, by_row, "parts have values of their own: each one in so many, not all", false);
    FIELD(bool, encoded, "by a dictionary; else ids are the values, from 1 on", true);
    END_OF_FIELDS;
};

struct PartSpec {
    FIELDS_OF(PartSpec);
    FIELD(std::uint64_t, rows, "of the part");
    FIELD(int, node, "a position; negative: page by page over all nodes");
    FIELD(int, host_node, "where that is on this host", -1);
    END_OF_FIELDS;
};

struct TableSpec {
    FIELDS_OF(TableSpec);
    FIELD(std::vector<ColumnSpec>, columns, "by position");
    FIELD(std::vector<PartSpec>, parts, "in the order of rows");
    END_OF_FIELDS;
};

/// A sorted dictionary.
class Dictionary {
  public:
    Dictionary() = default;
    Dictionary(std::byte* bytes, std::uint64_t values, std::uint32_t value_bytes)
        : bytes_(bytes), values_(values), value_bytes_(value_bytes) {}
    std::uint64_t values() const { return values_; }
    std::uint32_t value_bytes() const { return value_bytes_; }
    template <class Value>
    const Value* as() const {
        return reinterpret_cast<const Value*>(bytes_);
    }
    std::uint64_t at(std::uint64_t id) const {
        return value_bytes_ == 4 ? as<std::uint32_t>()[id] : as<std::uint64_t>()[id];
    }
    /// How many are not above it.
    std::uint64_t up_to(std::uint64_t value) const;
    void put(std::uint64_t id, std::uint64_t value) {
        if (value_bytes_ == 4)
            reinterpret_cast<std::uint32_t*>(bytes_)[id] = static_cast<std::uint32_t>(value);
        else
            reinterpret_cast<std::uint64_t*>(bytes_)[id] = value;
    }
    /// Those after `first` in steps, from 1 on: the values first + 1, first + 1 + step, ...
    void fill(std::uint64_t first, std::uint64_t step);

  private:
    std::byte* bytes_ = nullptr;
    std::uint64_t values_ = 0;
    std::uint32_t value_bytes_ = 8;
};

/// Without a dictionary an id stands for the value that is one more.
struct PartColumn {
    PackedIds ids;
    Dictionary dictionary;

    bool encoded() const { return dictionary.values() > 0; }
    std::uint64_t value(std::uint64_t row) const {
        return encoded() ? dictionary.at(ids.at(row)) : ids.at(row) + 1;
    }
};

/// Of tasks that were not stolen: ns, bytes.
using LocalUse = std::array<double, 2>;
void add(auto& use, const LocalUse& more) {
    for (std::size_t k = 0; k < more.size(); ++k) use[k] += more[k];
}

/// Of a part, since it was made.
struct PartUse {
    std::uint64_t scanned = 0;  ///< rows, by answered queries
    std::array<std::atomic<double>, 2> local{};
    LocalUse now() const { return {local[0].load(), local[1].load()}; }
};

/// Rows and dictionaries of a part.
class Part {
  public:
    /// Drawn: with equal probability any of its values, each once where there are as many as rows.
    /// `number` of the table's parts, whose first row is row `first` of the table. Throws
    /// OutOfMemory.
    Part(const TableSpec& table, std::size_t number, std::uint64_t first, std::uint64_t seed);
    /// Room for its rows, and for so many values of each column. Throws OutOfMemory.
    Part(const PartSpec& spec, const std::vector<ColumnSpec>& columns,
         const std::vector<std::uint64_t>& values);
    std::uint64_t rows() const { return spec_.rows; }
    int node() const { return spec_.node; }
    void place(int node) { spec_.node = node; }
    /// Its pages go to a node of this host, unless they are there. Throws std::invalid_argument.
    void move(int host_node, const std::stop_token& stop);
    const PartColumn& column(std::size_t k) const { return columns_[k]; }
    PartColumn& column(std::size_t k) { return columns_[k]; }
    PartUse& use() const { return *use_; }
    /// The ids whose values are among the `smallest` ones of the whole column: a range from 0.
    ValueRange smallest(std::size_t column, std::uint64_t smallest) const;

  private:
    PartSpec spec_;
    std::vector<ColumnSpec> specs_;
    std::unique_ptr<Mapping> memory_;
    std::vector<PartColumn> columns_;
    std::unique_ptr<PartUse> use_ = std::make_unique<PartUse>();
};

class TaskTable {
  public:
    explicit TaskTable(const TableSpec& spec);
    /// The same rows in other parts, of which there are none yet.
    TaskTable(const TaskTable& of, std::vector<PartSpec> parts)
        : TaskTable(TableSpec{of.spec_.columns, std::move(parts)}) {
        all_values_ = of.all_values_;
    }
    const TableSpec& spec() const { return spec_; }
    std::size_t parts() const { return parts_.size(); }
    const Part& part(std::size_t k) const { return *parts_[k]; }
    Part& part(std::size_t k) { return *parts_[k]; }
    void set(std::size_t k, std::unique_ptr<Part> part) { parts_[k] = std::move(part); }
    std::uint64_t rows() const { return firsts_.back(); }
    /// The row of the table with which a part begins.
    std::uint64_t first(std::size_t part) const { return firsts_[part]; }
    /// The part with that row of the table.
    std::size_t part_of(std::uint64_t row) const;
    /// Makes a part; different ones may be made at the same time.
    void make(std::size_t part, std::uint64_t seed);
    /// All values of a column in order, in what all parts share: for one to be made to agree.
    const std::vector<std::uint64_t>& all_values(std::size_t column) const {
        return (*all_values_)[column];
    }
    /// Before the first query that groups by that column.
    void make_all_values(std::size_t column);

  private:
    TableSpec spec_;
    std::vector<std::uint64_t> firsts_;
    std::vector<std::unique_ptr<Part>> parts_;
    std::shared_ptr<std::vector<std::vector<std::uint64_t>>> all_values_ =
        std::make_shared<std::vector<std::vector<std::uint64_t>>>();
};

/// The rows of a table, in their order, in as many parts twice over, or in one. Each part's own
/// dictionaries keep the values that it has; those of a single part have all. What is half done at
/// `stop` is for nobody. Throws OutOfMemory.
std::shared_ptr<TaskTable> remade(const TaskTable& from, const std::vector<PartSpec>& parts,
                                  const std::stop_token& stop);

}  // namespace numatwin::native::tasks
