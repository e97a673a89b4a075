#include "systems/tasks/operators.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "systems/tasks/selections.hpp"

namespace numatwin::native::tasks {
namespace {

constexpr std::uint64_t block_rows = 4096;
constexpr std::uint64_t ahead = 16;        // rows: as many lines as a core has under way
constexpr std::uint64_t lines_ahead = 32;  // of tables that no cache of the address space covers

void scan(Task& task, Work& work) {
    const StageSpec& spec = *task.stage->spec;
    const Part& part = part_of(task);
    const std::uint64_t rows = task.last - task.first;
    task.made = work.take(spec.positions ? rows * 4 : (rows + 63) / 64 * 8);
    std::uint32_t* positions = task.as<std::uint32_t>();
    std::array<std::uint64_t, block_rows / 64> other, scratch;
    for (std::uint64_t from = task.first; from < task.last; from += block_rows) {
        const std::uint64_t count = std::min(block_rows, task.last - from);
        std::uint64_t* words =
            spec.positions ? scratch.data() : task.as<std::uint64_t>() + (from - task.first) / 64;
        for (std::size_t k = 0; k < spec.columns.size(); ++k) {
            const ValueRange range = part.smallest(spec.columns[k], spec.smallest[k]);
            const PackedIds& ids = part.column(spec.columns[k]).ids;
            ids.match(from, count, range, k == 0 ? words : other.data());
            for (std::uint64_t w = 0; k > 0 && w < (count + 63) / 64; ++w) words[w] &= other[w];
        }
        for (std::uint64_t w = 0; w < (count + 63) / 64; ++w) {
            task.entries += static_cast<std::uint64_t>(std::popcount(words[w]));
            if (spec.positions) positions = put_positions(words[w], from + w * 64, positions);
        }
    }
    for (const std::uint32_t column : spec.columns)
        work.part_bytes += rows * part.column(column).ids.bits() / 8;
    work.own_bytes += spec.positions ? task.entries * 4 : rows / 8;
}

/// Column after column, each with a value for each row.
void materialise(Task& task, Work& work) {
    const std::vector<Reader> readers = readers_of(task);
    task.entries = rows_of(task);
    std::size_t bytes = 0;
    for (const Reader& reader : readers) bytes += task.entries * reader.width();
    task.made = work.take(bytes);
    std::uint64_t done = 0;
    for_batches(task, [&](const Batch& batch) {
        std::byte* at = task.made;
        for (const Reader& reader : readers) {
            std::byte* into = at + done * reader.width();
            if (reader.width() == 4) {
                reader.values(batch, reinterpret_cast<std::uint32_t*>(into));
            } else {
                reader.values(batch, reinterpret_cast<std::uint64_t*>(into));
            }
            at += task.entries * reader.width();
        }
        done += batch.count;
    });
    for (const Reader& reader : readers) reader.count(work, task.entries, true);
    work.own_bytes += bytes;
}

/// Calls use(row, home, key) for each row of a batch, the lines of whose key are in the caches by
/// then.
template <class Use>
void for_keys(const JoinTable& table, const Reader& reader, const Batch& batch, Use use) {
    std::array<std::uint64_t, batch_rows + 64> keys, homes;
    reader.values(batch, keys.data());
    for (std::uint64_t k = 0; k < batch.count; ++k) homes[k] = table.home(keys[k]);
    for (std::uint64_t k = 0; k < batch.count; ++k) {
        table.prefetch(homes[std::min(k + lines_ahead, batch.count - 1)]);
        table.prefetch_more(homes[std::min(k + lines_ahead / 2, batch.count - 1)]);
        use(batch.rows[k], homes[k], keys[k]);
    }
}

/// Adds its rows to the table that all tasks of the stage build.
void build(Task& task, Work& work) {
    const Reader key(task, 0);
    JoinTable& table = *task.stage->built;
    const std::uint64_t first = task.stage->table->first(task.part);
    for_batches(task, [&](const Batch& batch) {
        for_keys(table, key, batch, [&](auto row, auto home, auto value) {
            table.add(home, value, static_cast<std::uint32_t>(first + row));
        });
        task.entries += batch.count;
    });
    key.count(work, task.entries, true);
    work.shared_bytes += task.entries * JoinTable::row_bytes;
}

/// Positions of pairs that a task makes, rising by row: two arrays of so many.
class Pairs {
  public:
    Pairs(Task& task, Work& work, std::uint64_t room) : task_(task), work_(work) {
        make_room(room);
    }
    /// They are the task's.
    void end() {
        task_.entries = count_;
        task_.made = work_.keep(std::move(memory_));
    }

    void add(std::uint32_t row, std::uint32_t built) {
        if (count_ == task_.room) make_room(2 * count_);
        rows_[count_] = row;
        built_[count_++] = built;
    }

  private:
    void make_room(std::uint64_t room) {
        Buffer larger = work_.buffers.take(room * 2 * sizeof(std::uint32_t));
        auto* const into = larger.as<std::uint32_t>();
        std::copy_n(rows_, count_, into);
        std::copy_n(built_, count_, into + room);
        std::swap(memory_, larger);
        work_.buffers.give(std::move(larger));
        rows_ = into, built_ = into + room, task_.room = room;
    }

    Task& task_;
    Work& work_;
    Buffer memory_;
    std::uint32_t *rows_ = nullptr, *built_ = nullptr;
    std::uint64_t count_ = 0;
};

/// The pairs that match.
void probe(Task& task, Work& work) {
    const Reader key(task, 0);
    const JoinTable& table = *task.stage->at(task.stage->spec->built).built;
    const std::uint64_t rows = rows_of(task);
    Pairs pairs(task, work, std::max<std::uint64_t>(rows, batch_rows));
    for_batches(task, [&](const Batch& batch) {
        for_keys(table, key, batch, [&](auto row, auto home, auto value) {
            table.find(home, value, [&](std::uint32_t built) { pairs.add(row, built); });
        });
    });
    pairs.end();
    key.count(work, rows, true);
    work.shared_bytes += rows * JoinTable::row_bytes / 2;
    work.own_bytes += task.entries * 2 * sizeof(std::uint32_t);
}

/// Where each value of the part's dictionary stands among all values: both are sorted.
void agree(Task& task, Work& work) {
    const StageSpec& spec = *task.stage->spec;
    for (const std::uint32_t k : spec.columns)
        task.entries += part_of(task).column(k).dictionary.values();
    task.made = work.take(task.entries * 4);
    auto* into = task.as<std::uint32_t>();
    for (const std::uint32_t k : spec.columns) {
        const Dictionary& own = part_of(task).column(k).dictionary;
        const std::vector<std::uint64_t>& all = task.stage->table->all_values(k);
        std::uint32_t at = 0;
        for (std::uint64_t id = 0; id < own.values(); ++id) {
            const std::uint64_t value = own.at(id);
            while (all[at] < value) ++at;
            *into++ = at;
        }
        work.part_bytes += own.values() * own.value_bytes();
    }
    work.own_bytes += task.entries * 4;
}

/// A table of groups, and what it takes to find them fast.
class Finder {
  public:
    /// `radix`: of each column of a key, how many ids it has.
    Finder(GroupSums& groups, const std::vector<std::uint64_t>& radix)
        : groups_(groups), slots_(groups.slots()) {
        std::uint64_t keys = 1;
        for (const std::uint64_t ids : radix)
            keys = std::max(keys, ids) > known_max ? 0 : keys * ids;  // 0: too many
        if (keys <= known_max) known_.assign(keys, nullptr);
    }

    /// The lines of a group that will be looked for come into the caches.
    void prefetch(std::uint64_t key) const {
        if (known_.empty()) groups_.prefetch(key);
    }
    /// The group's words; of few possible keys each is looked for once.
    std::uint64_t* group(std::uint64_t key) {
        if (known_.empty()) return groups_.group(key);
        if (known_[key] != nullptr) return known_[key];
        std::uint64_t* const found = groups_.group(key);
        if (groups_.slots() != slots_) std::ranges::fill(known_, nullptr);
        slots_ = groups_.slots();
        return known_[key] = found;
    }

  private:
    static constexpr std::uint64_t known_max = 4096;  // pointers that a first cache holds
    GroupSums& groups_;
    std::vector<std::uint64_t*> known_;
    std::uint64_t slots_;
};

void aggregate(Task& task, Work& work) {
    const StageSpec& spec = *task.stage->spec;
    const std::vector<Reader> readers = readers_of(task);
    const std::uint32_t* agreed = nullptr;
    if (spec.agreed >= 0) {
        const auto& by_part = task.stage->at(spec.agreed).by_part;
        if (!by_part.empty()) agreed = by_part[task.part].tasks.front().as<std::uint32_t>();
    }
    const auto sums = static_cast<std::uint32_t>(spec.sums.size());
    GroupSums& groups = *(task.groups = std::make_unique<GroupSums>(
                              work.buffers, std::min(spec.groups, task.last - task.first), sums));
    Finder finder(groups, spec.radix);
    std::array<std::uint64_t, batch_rows + 64> key, ids;
    std::vector<std::uint64_t> value(sums * key.size());  // column after column
    for_batches(task, [&](const Batch& batch) {
        std::fill_n(key.begin(), batch.count, 0);
        const std::uint32_t* map = agreed;
        for (std::size_t c = 0; c < spec.columns.size(); ++c) {
            const PartColumn* const own = readers[c].own();
            const bool mapped = map != nullptr && own != nullptr && own->encoded();
            readers[c].ids(batch, ids.data());
            for (std::uint64_t k = 0; k < batch.count; ++k)
                key[k] = key[k] * spec.radix[c] + (mapped ? map[ids[k]] : ids[k]);
            if (mapped) map += own->dictionary.values();
        }
        for (std::uint32_t s = 0; s < sums; ++s)
            readers[spec.columns.size() + s].values(batch, value.data() + s * key.size());
        task.entries += batch.count;
        if (spec.columns.empty()) {  // one group: no addition waits for what the last one stored
            std::uint64_t* const words = finder.group(0);
            words[0] += batch.count;
            for (std::uint32_t s = 0; s < sums; ++s) {
                const auto first = value.begin() + static_cast<std::ptrdiff_t>(s * key.size());
                words[2 + s] +=
                    std::reduce(first, first + static_cast<std::ptrdiff_t>(batch.count));
            }
            return;
        }
        for (std::uint64_t k = 0; k < batch.count; ++k) {
            finder.prefetch(key[std::min(k + ahead, batch.count - 1)]);
            std::uint64_t* const words = finder.group(key[k]);
            ++words[0];
            for (std::uint32_t s = 0; s < sums; ++s) words[2 + s] += value[s * key.size() + k];
        }
    });
    task.rows = task.entries;
    for (std::size_t k = 0; k < readers.size(); ++k)
        readers[k].count(work, task.entries, k >= spec.columns.size());
    work.own_bytes += groups.bytes();
}

/// The groups of all tasks before whose hashes are in this task's share.
void merge(Task& task, Work& work) {
    const StageRun& stage = *task.stage;
    const StageRun& local = (*stage.stages)[stage.spec->inputs.front()];
    const std::uint64_t tasks = stage.tasks.size(), each = UINT64_MAX / tasks;
    const auto number = static_cast<std::uint64_t>(&task - stage.tasks.data());
    const std::uint64_t low = number * each + (number > 0);
    const std::uint64_t high = number + 1 == tasks ? UINT64_MAX : (number + 1) * each;
    GroupSums& groups = *(task.groups = std::make_unique<GroupSums>(
                              work.buffers, stage.spec->groups / tasks + 1,
                              static_cast<std::uint32_t>(stage.spec->sums.size())));
    for (const Task& from : local.tasks) {
        task.rows += groups.merge(*from.groups, low, high);
        work.own_bytes += from.groups->bytes() / tasks;
    }
    task.entries = groups.groups();
}

// In the order of Kind.
constexpr std::array operators{scan, materialise, agree, aggregate, merge, build, probe};

/// Whole words of a bitmap each, as many as the others of its part.
void begin(Task& task, const TaskRange& range, std::uint32_t node) {
    StageRun& stage = *range.stage;
    if (task.stage != nullptr) throw std::runtime_error("a task ran twice");
    task = {.stage = &stage, .part = range.part, .ran_on = node};
    const Part* const part = range.of_part();
    if (part == nullptr) return;
    const std::span<Task> all = stage.by_part[range.part].tasks;
    const auto number = static_cast<std::uint64_t>(&task - all.data());
    const std::uint64_t words = part->rows() / word_rows, end = number + 1;
    task.first = words * number / all.size() * word_rows;
    task.last = end == all.size() ? part->rows() : words * end / all.size() * word_rows;
}

}  // namespace

std::uint64_t StageRun::rows_taken() const {
    if (spec->selection < 0) return table->rows();
    std::uint64_t rows = 0;
    for (std::size_t part = 0; part < table->parts(); ++part)
        rows += at(spec->selection).entries(part);
    return rows;
}

const TaskTable& StageRun::table_of(std::size_t number) const {
    if (spec->joined.empty() || !spec->joined[number]) return *table;
    return *at(at(spec->selection).spec->built).table;
}

void run_tasks(const TaskRange& range, Work& work) {
    PartTasks& all = range.stage->by_part[range.part];
    std::uint64_t rows = 0, entries = 0;
    for (Task& task : range.tasks) {
        begin(task, range, work.node);
        operators[static_cast<std::size_t>(range.stage->spec->kind)](task, work);
        rows += task.last - task.first;
        entries += task.groups ? task.rows : task.entries;
    }
    // Who ends the last task of the stage sees them.
    all.rows.fetch_add(rows, std::memory_order_relaxed);
    all.entries.fetch_add(entries, std::memory_order_relaxed);
}

}  // namespace numatwin::native::tasks
