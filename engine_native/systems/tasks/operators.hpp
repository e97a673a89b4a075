// What tasks do to their rows: filter, join, look up values, group and sum, merge.
//
// A scan writes a bit for each row or the positions of what it finds; a join, the positions of
// pairs. What follows takes these a thousand rows at a time, column by column.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "systems/tasks/buffers.hpp"
#include "systems/tasks/group_sums.hpp"
#include "systems/tasks/join_table.hpp"
#include "systems/tasks/tables.hpp"

namespace numatwin::native::tasks {

constexpr std::uint64_t word_rows = 64;  ///< tasks begin with a word of a bitmap

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
/// made stays until its query is answered. Who runs it sets all of it.
struct Task {
    StageRun* stage = nullptr;
    std::uint32_t part = 0, ran_on = 0;
    std::uint64_t first = 0, last = 0;
    std::uint64_t entries = 0;  ///< rows or pairs that it has found, or passed on
    std::byte* made = nullptr;
    std::uint64_t room = 0;  ///< pairs: rows, and from here on those of the table that was built
    std::unique_ptr<GroupSums> groups = nullptr;
    std::uint64_t rows = 0;  ///< that its groups have

    template <class Word>
    Word* as() const {
        return reinterpret_cast<Word*>(made);
    }
};

/// Tasks of a stage that follow each other, of one part, in one queue.
struct TaskRange {
    StageRun* stage = nullptr;
    std::span<Task> tasks;
    std::uint32_t part = 0;
    int home = -1;  ///< node of the part; negative: all nodes, or none
    std::uint32_t queue = 0;

    const Part* of_part() const;  ///< nullptr: none
};

/// Of a part, in the order of rows; rows and entries of those that have ended.
struct PartTasks {
    std::span<Task> tasks;
    std::atomic<std::uint64_t> rows = 0, entries = 0;
};

/// Of one stage of a query that is being answered.
struct StageRun {
    const StageSpec* spec = nullptr;
    std::shared_ptr<const TaskTable> table;
    std::vector<StageRun>* stages = nullptr;
    std::vector<Task> tasks;
    std::vector<PartTasks> by_part;  ///< of a merge: of none, as if of one
    QueryRun* query = nullptr;
    std::atomic<std::uint64_t> left = 0;  ///< tasks that have not ended
    bool began = false, done = false;
    std::unique_ptr<JoinTable> built;  ///< by all its tasks

    std::uint64_t entries(std::size_t part) const {
        return by_part.empty() ? 0 : by_part[part].entries.load();
    }
    /// Rows that it takes: of its selection, else all.
    std::uint64_t rows_taken() const;
    const StageRun& at(int stage) const { return (*stages)[static_cast<std::size_t>(stage)]; }
    /// The table of one of its columns, by their number, those that are summed after the others.
    const TaskTable& table_of(std::size_t number) const;
};

inline const Part* TaskRange::of_part() const {
    return stage->table == nullptr ? nullptr : &stage->table->part(part);
}

/// Does the tasks.
void run_tasks(const TaskRange& range, Work& work);

}  // namespace numatwin::native::tasks
