// The rows that a task works on, a batch at a time, and what its columns have for them.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "systems/tasks/operators.hpp"

namespace numatwin::native::tasks {

constexpr std::uint64_t batch_rows = 1024;

inline const Part& part_of(const Task& task) {
    return task.stage->table->part(task.part);
}

/// Appends the positions of the bits of a word that are set.
inline std::uint32_t* put_positions(std::uint64_t word, std::uint64_t first, std::uint32_t* into) {
    for (; word != 0; word &= word - 1)
        *into++ =
            static_cast<std::uint32_t>(first) + static_cast<std::uint32_t>(std::countr_zero(word));
    return into;
}

/// The bits of a scan's rows, from the table's first row on: tasks begin with a word.
inline const std::uint64_t* words_of(const Task& scan) {
    return scan.as<std::uint64_t>() - scan.first / 64;
}

inline bool has_positions(const StageRun& stage) {
    return stage.spec->positions || stage.spec->kind == Kind::probe;
}

/// Positions that a scan or probe found among these rows.
inline std::pair<const std::uint32_t*, const std::uint32_t*> positions_between(const Task& scan,
                                                                               std::uint64_t first,
                                                                               std::uint64_t last) {
    const auto* const all = scan.as<std::uint32_t>();
    const auto* const from = std::lower_bound(all, all + scan.entries, first);
    return {from, std::lower_bound(from, all + scan.entries, last)};
}

/// Calls use(scan, first, last) with the scans that have rows of the task's, and these.
template <class Use>
void for_selected(const Task& task, const StageRun& scans, Use use) {
    const std::span<const Task> all = scans.by_part[task.part].tasks;
    auto at = std::ranges::upper_bound(all, task.first, {}, &Task::last);
    for (; at != all.end() && at->first < task.last; ++at)
        use(*at, std::max(task.first, at->first), std::min(task.last, at->last));
}

/// Rows of a part, rising; of pairs, which row of the table that was built each has.
struct Batch {
    const std::uint32_t* rows;
    std::uint64_t count;
    const std::uint32_t* built = nullptr;
};

/// Calls use(batch) with the rows or pairs of the task's selection, rising.
template <class Use>
void for_batches(const Task& task, Use use) {
    const StageSpec& spec = *task.stage->spec;
    std::array<std::uint32_t, batch_rows + 64> batch;
    if (spec.selection < 0) {
        for (std::uint64_t from = task.first; from < task.last; from += batch_rows) {
            const std::uint64_t count = std::min(batch_rows, task.last - from);
            std::iota(batch.begin(), batch.begin() + count, static_cast<std::uint32_t>(from));
            use(Batch{batch.data(), count});
        }
        return;
    }
    const StageRun& scans = task.stage->at(spec.selection);
    std::uint32_t* end = batch.data();
    for_selected(task, scans, [&](const Task& scan, std::uint64_t first, std::uint64_t last) {
        if (has_positions(scans)) {
            auto [from, until] = positions_between(scan, first, last);
            for (; from < until; from += batch_rows)
                use(Batch{from, std::min<std::uint64_t>(batch_rows, until - from),
                          scan.room > 0 ? from + scan.room : nullptr});
            return;
        }
        const std::uint64_t* const words = words_of(scan);
        for (std::uint64_t w = first / 64; w * 64 < last; ++w) {
            end = put_positions(words[w], w * 64, end);
            if (end < batch.data() + batch_rows) continue;
            use(Batch{batch.data(), static_cast<std::uint64_t>(end - batch.data())});
            end = batch.data();
        }
    });
    if (end > batch.data())
        use(Batch{batch.data(), static_cast<std::uint64_t>(end - batch.data())});
}

/// Rows of the task's selection.
inline std::uint64_t rows_of(const Task& task) {
    const StageSpec& spec = *task.stage->spec;
    if (spec.selection < 0) return task.last - task.first;
    std::uint64_t rows = 0;
    const StageRun& scans = task.stage->at(spec.selection);
    for_selected(task, scans, [&](const Task& scan, std::uint64_t first, std::uint64_t last) {
        if (has_positions(scans)) {
            const auto [from, until] = positions_between(scan, first, last);
            rows += static_cast<std::uint64_t>(until - from);
        } else {
            const std::uint64_t* const words = words_of(scan);
            for (std::uint64_t w = first / 64; w * 64 < last; ++w)
                rows += static_cast<std::uint64_t>(std::popcount(words[w]));
        }
    });
    return rows;
}

/// A column of the task's part, or of the table that it was joined with.
class Reader {
  public:
    /// `number`: among the columns of its stage, those that are summed after the others.
    Reader(const Task& task, std::size_t number)
        : table_(task.stage->table_of(number)),
          column_(column_at(*task.stage->spec, number)),
          spec_(table_.spec().columns[column_]),
          joined_(!task.stage->spec->joined.empty() && task.stage->spec->joined[number]),
          own_(joined_ ? nullptr : &part_of(task).column(column_)) {}

    /// Of its task's part; nullptr for one that was joined.
    const PartColumn* own() const { return own_; }
    std::uint32_t width() const { return spec_.value_bytes; }
    void ids(const Batch& batch, std::uint64_t* into) const {
        stretches(batch, [&](const PartColumn& column, const std::uint32_t* rows,
                             std::uint64_t first, std::uint64_t count) {
            for (std::uint64_t k = 0; k < count; ++k) into[first + k] = column.ids.at(rows[k]);
        });
    }
    template <class Into>
    void values(const Batch& batch, Into* into) const {
        stretches(batch, [&](const PartColumn& column, const std::uint32_t* rows,
                             std::uint64_t first, std::uint64_t count) {
            if (!column.encoded())
                look_up(rows, count, into + first,
                        [&](auto row) { return column.ids.at(row) + 1; });
            else if (width() == 4)
                look_up(rows, count, into + first, by<std::uint32_t>(column));
            else
                look_up(rows, count, into + first, by<std::uint64_t>(column));
        });
    }
    /// What so many entries, and their values too, ask of memory.
    void count(Work& work, std::uint64_t entries, bool of_values) const {
        const std::uint64_t bytes =
            entries * spec_.bits / 8 + (of_values && spec_.encoded ? entries * width() : 0);
        (joined_ ? work.shared_bytes : work.part_bytes) += bytes;
    }

  private:
    static std::uint32_t column_at(const StageSpec& spec, std::size_t number) {
        const std::size_t first = spec.columns.size();
        return number < first ? spec.columns[number] : spec.sums[number - first];
    }
    template <class Value>
    static auto by(const PartColumn& column) {
        return [&column, values = column.dictionary.as<Value>()](std::uint32_t row) {
            return values[column.ids.at(row)];
        };
    }
    template <class Into, class Value>
    static void look_up(const std::uint32_t* rows, std::uint64_t count, Into* into, Value value) {
        for (std::uint64_t k = 0; k < count; ++k) into[k] = static_cast<Into>(value(rows[k]));
    }
    /// Calls use(column, rows, first, count) with all rows of a batch, those of one part at once.
    template <class Use>
    void stretches(const Batch& batch, Use use) const {
        if (own_ != nullptr) return use(*own_, batch.rows, std::uint64_t{0}, batch.count);
        if (table_.parts() == 1)
            return use(table_.part(0).column(column_), batch.built, std::uint64_t{0}, batch.count);
        for (std::uint64_t k = 0; k < batch.count; ++k) {
            const std::size_t part = table_.part_of(batch.built[k]);
            const auto row = static_cast<std::uint32_t>(batch.built[k] - table_.first(part));
            use(table_.part(part).column(column_), &row, k, std::uint64_t{1});
        }
    }

    const TaskTable& table_;
    std::uint32_t column_;
    const ColumnSpec& spec_;
    bool joined_;
    const PartColumn* own_;
};

/// Of its columns, and of those that it sums.
inline std::vector<Reader> readers_of(const Task& task) {
    std::vector<Reader> found;
    const StageSpec& spec = *task.stage->spec;
    for (std::size_t k = 0; k < spec.columns.size() + spec.sums.size(); ++k)
        found.emplace_back(task, k);
    return found;
}

}  // namespace numatwin::native::tasks
