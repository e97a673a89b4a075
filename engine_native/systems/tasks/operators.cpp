#include "systems/tasks/operators.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <utility>

#include "systems/tasks/selections.hpp"

namespace numatwin::native::tasks {
namespace {

constexpr std::uint64_t block_rows = 4096;
constexpr std::uint64_t ahead = 16;        // rows: as many lines as a core has under way
constexpr std::uint64_t lines_ahead = 32;  // of tables that no cache of the address space covers

void scan(Task& task, Buffers& buffers) {
    const StageSpec& spec = *task.stage->spec;
    const Part& part = part_of(task);
    const std::uint64_t rows = task.last - task.first;
    task.made = buffers.take(spec.positions ? rows * 4 : (rows + 63) / 64 * 8);
    std::uint32_t* positions = task.made.as<std::uint32_t>();
    std::array<std::uint64_t, block_rows / 64> other, scratch;
    for (std::uint64_t from = task.first; from < task.last; from += block_rows) {
        const std::uint64_t count = std::min(block_rows, task.last - from);
        std::uint64_t* words = spec.positions
                                   ? scratch.data()
                                   : task.made.as<std::uint64_t>() + (from - task.first) / 64;
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
        task.part_bytes += rows * part.column(column).ids.bits() / 8;
    task.own_bytes += spec.positions ? task.entries * 4 : rows / 8;
}

/// Column after column, each with a value for each row.
void materialise(Task& task, Buffers& buffers) {
    const std::vector<Reader> readers = readers_of(task);
    task.entries = rows_of(task);
    std::size_t bytes = 0;
    for (const Reader& reader : readers) bytes += task.entries * reader.width();
    task.made = buffers.take(bytes);
    std::uint64_t done = 0;
    for_batches(task, [&](const Batch& batch) {
        std::byte* at = task.made.memory.get();
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
    for (const Reader& reader : readers) reader.count(task, task.entries, true);
    task.own_bytes += bytes;
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
void build(Task& task) {
    const Reader key(task, 0);
    JoinTable& table = *task.stage->built;
    const std::uint64_t first = task.stage->table->first(task.part);
    for_batches(task, [&](const Batch& batch) {
        for_keys(table, key, batch, [&](auto row, auto home, auto value) {
            table.add(home, value, static_cast<std::uint32_t>(first + row));
        });
        task.entries += batch.count;
    });
    key.count(task, task.entries, true);
    task.shared_bytes += task.entries * JoinTable::row_bytes;
}

/// Positions of pairs that a task makes, rising by row: two arrays of so many.
class Pairs {
  public:
    Pairs(Task& task, Buffers& buffers, std::uint64_t room) : task_(task), buffers_(buffers) {
        make_room(room);
    }
    ~Pairs() { task_.entries = count_; }
    Pairs(const Pairs&) = delete;
    Pairs& operator=(const Pairs&) = delete;

    void add(std::uint32_t row, std::uint32_t built) {
        if (count_ == task_.room) make_room(2 * count_);
        rows_[count_] = row;
        built_[count_++] = built;
    }

  private:
    void make_room(std::uint64_t room) {
        Buffer larger = buffers_.take(room * 2 * sizeof(std::uint32_t));
        auto* const into = larger.as<std::uint32_t>();
        std::copy_n(rows_, count_, into);
        std::copy_n(built_, count_, into + room);
        std::swap(task_.made, larger);
        buffers_.give(std::move(larger));
        rows_ = into, built_ = into + room, task_.room = room;
    }

    Task& task_;
    Buffers& buffers_;
    std::uint32_t *rows_ = nullptr, *built_ = nullptr;
    std::uint64_t count_ = 0;
};

/// The pairs that match.
void probe(Task& task, Buffers& buffers) {
    const Reader key(task, 0);
    const JoinTable& table = *task.stage->at(task.stage->spec->built).built;
    const std::uint64_t rows = rows_of(task);
    {
        Pairs pairs(task, buffers, std::max<std::uint64_t>(rows, batch_rows));
        for_batches(task, [&](const Batch& batch) {
            for_keys(table, key, batch, [&](auto row, auto home, auto value) {
                table.find(home, value, [&](std::uint32_t built) { pairs.add(row, built); });
            });
        });
    }
    key.count(task, rows, true);
    task.shared_bytes += rows * JoinTable::row_bytes / 2;
    task.own_bytes += task.entries * 2 * sizeof(std::uint32_t);
}

/// Where each value of the part's dictionary stands among all values: both are sorted.
void agree(Task& task, Buffers& buffers) {
    const StageSpec& spec = *task.stage->spec;
    for (const std::uint32_t k : spec.columns)
        task.entries += part_of(task).column(k).dictionary.values();
    task.made = buffers.take(task.entries * 4);
    auto* into = task.made.as<std::uint32_t>();
    for (const std::uint32_t k : spec.columns) {
        const Dictionary& own = part_of(task).column(k).dictionary;
        const std::vector<std::uint64_t>& all = task.stage->table->all_values(k);
        std::uint32_t at = 0;
        for (std::uint64_t id = 0; id < own.values(); ++id) {
            const std::uint64_t value = own.at(id);
            while (all[at] < value) ++at;
            *into++ = at;
        }
        task.part_bytes += own.values() * own.value_bytes();
    }
    task.own_bytes += task.entries * 4;
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

void aggregate(Task& task, Buffers& buffers) {
    const StageSpec& spec = *task.stage->spec;
    const std::vector<Reader> readers = readers_of(task);
    const std::uint32_t* agreed = nullptr;
    if (spec.agreed >= 0) {
        const auto& by_part = task.stage->at(spec.agreed).by_part;
        if (!by_part.empty()) agreed = by_part[task.part].front().made.as<std::uint32_t>();
    }
    const auto sums = static_cast<std::uint32_t>(spec.sums.size());
    GroupSums& groups =
        task.groups.emplace(buffers, std::min(spec.groups, task.last - task.first), sums);
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
        for (std::uint64_t k = 0; k < batch.count; ++k) {
            finder.prefetch(key[std::min(k + ahead, batch.count - 1)]);
            std::uint64_t* const words = finder.group(key[k]);
            ++words[0];
            for (std::uint32_t s = 0; s < sums; ++s) words[2 + s] += value[s * key.size() + k];
        }
        task.entries += batch.count;
    });
    task.rows = task.entries;
    for (std::size_t k = 0; k < readers.size(); ++k)
        readers[k].count(task, task.entries, k >= spec.columns.size());
    task.own_bytes += groups.bytes();
}

/// The groups of all tasks before whose hashes are in this task's share.
void merge(Task& task, Buffers& buffers) {
    const StageRun& stage = *task.stage;
    const StageRun& local = (*stage.stages)[stage.spec->inputs.front()];
    const std::uint64_t tasks = stage.tasks.size(), each = UINT64_MAX / tasks;
    const std::uint64_t low = task.number * each + (task.number > 0);
    const std::uint64_t high = task.number + 1 == tasks ? UINT64_MAX : (task.number + 1) * each;
    GroupSums& groups = task.groups.emplace(buffers, stage.spec->groups / tasks + 1,
                                            static_cast<std::uint32_t>(stage.spec->sums.size()));
    for (const Task& from : local.tasks) {
        task.rows += groups.merge(*from.groups, low, high);
        task.own_bytes += from.groups->bytes() / tasks;
    }
    task.entries = groups.groups();
}

}  // namespace

std::uint64_t StageRun::entries(std::size_t part) const {
    if (by_part.empty()) return 0;
    return std::accumulate(by_part[part].begin(), by_part[part].end(), std::uint64_t{0},
                           [](std::uint64_t sum, const Task& task) { return sum + task.entries; });
}

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

void run_task(Task& task, Buffers& buffers, std::uint32_t node) {
    task.ran_on = node;
    ++task.runs;
    switch (task.stage->spec->kind) {
        case Kind::scan:
            return scan(task, buffers);
        case Kind::materialise:
            return materialise(task, buffers);
        case Kind::dictionaries:
            return agree(task, buffers);
        case Kind::aggregate:
            return aggregate(task, buffers);
        case Kind::merge:
            return merge(task, buffers);
        case Kind::build:
            return build(task);
        case Kind::probe:
            return probe(task, buffers);
    }
}

}  // namespace numatwin::native::tasks
