// What tasks do to their rows: filter, join, look up values, group and sum, merge.
//
// A scan writes a bit for each row or the positions of what it finds; a join, the positions of
// pairs. What follows takes these a thousand rows at a time, column by column.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "systems/tasks/buffers.hpp"
#include "systems/tasks/group_sums.hpp"
#include "systems/tasks/join_table.hpp"
#include "systems/tasks/tables.hpp"

namespace numatwin::native::tasks {

enum class Kind { scan, materialise, dictionaries, aggregate, merge, build, probe };

struct StageSpec {
    FIELDS_OF(StageSpec);
    FIELD(Kind, kind, "what its tasks do", Kind::scan);
    FIELD(std::uint32_t, task_class, "of its tasks");
    FIELD(int, table, "whose parts they work on; negative: none", -1);
    FIELD(std::vector<std::uint32_t>, inputs, "earlier stages, all of whose tasks have ended");
    FIELD(std::uint32_t, concurrency, "tasks at most; 0: as the engine says");
    FIELD(std::uint32_t, parts_min, "it is left out where its table has fewer", 1);
    FIELD(std::vector<std::uint32_t>, columns, "filtered, compared, looked up, or grouped by");
    FIELD(std::vector<std::uint64_t>, smallest, "of a scan: values of each that it lets through");
    FIELD(bool, positions, "of a scan: it writes positions, not a bit for each row", false);
    FIELD(int, selection, "the scan or probe whose rows it takes; negative: all rows", -1);
    FIELD(int, built, "of a probe: the stage that builds its table", -1);
    FIELD(std::vector<std::uint32_t>, sums, "columns that are summed");
    FIELD(int, agreed, "the stage that makes ids of all parts agree; negative: they do", -1);
    FIELD(std::uint64_t, groups, "expected", 1);
    FIELD(std::vector<std::uint64_t>, radix, "values of each column that is grouped by");
    FIELD(std::vector<bool>, joined,
          "of columns, then sums: it is of the table that was built; empty: none is");
    END_OF_FIELDS;
};

struct StageRun;
struct QueryRun;

/// Rows [first, last) of a part; of a merge, of all hashes the one share in so many. What it has
/// made stays until its query is answered.
struct Task {
    StageRun* stage = nullptr;
    std::uint32_t number = 0, part = 0;
    std::uint64_t first = 0, last = 0;
    int home = -1;  ///< node of its part; negative: all nodes, or none
    std::uint32_t queue = 0, ran_on = 0;
    std::uint32_t runs = 0;
    Buffer made;
    std::uint64_t entries = 0;  ///< rows or pairs that it has found, or passed on
    std::uint64_t room = 0;     ///< pairs: rows, and from here on those of the table that was built
    std::optional<GroupSums> groups;
    std::uint64_t rows = 0;  ///< that its groups have
    /// That it asked for, caches aside: of its part, its own, on all nodes.
    std::uint64_t part_bytes = 0, own_bytes = 0, shared_bytes = 0;

    const Part* of_part() const;  ///< nullptr: none
};

/// Of one stage of a query that is being answered; `by_part`: its tasks, in the order of rows.
struct StageRun {
    const StageSpec* spec = nullptr;
    std::shared_ptr<const TaskTable> table;
    std::vector<StageRun>* stages = nullptr;
    std::vector<Task> tasks;
    std::vector<std::span<Task>> by_part;
    QueryRun* query = nullptr;
    std::atomic<std::uint64_t> left = 0;  ///< tasks that have not ended
    bool began = false, done = false;
    std::unique_ptr<JoinTable> built;  ///< by all its tasks

    std::uint64_t entries(std::size_t part) const;
    /// Rows that it takes: of its selection, else all.
    std::uint64_t rows_taken() const;
    const StageRun& at(int stage) const { return (*stages)[static_cast<std::size_t>(stage)]; }
    /// The table of one of its columns, by their number, those that are summed after the others.
    const TaskTable& table_of(std::size_t number) const;
};

inline const Part* Task::of_part() const {
    return stage->table == nullptr ? nullptr : &stage->table->part(part);
}

/// Does the task; what it makes comes from `buffers`, those of node `node`.
void run_task(Task& task, Buffers& buffers, std::uint32_t node);

}  // namespace numatwin::native::tasks
