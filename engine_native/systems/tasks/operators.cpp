#include "systems/tasks/operators.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <utility>

namespace numatwin::native::tasks {
namespace {

constexpr std::uint64_t block_rows = 4096, batch_rows = 1024;
constexpr std::uint64_t ahead = 16;  // rows: as many lines as a core has under way

const Part& part_of(const Task& task) {
    return task.stage->table->part(task.part);
}

/// Appends the positions of the bits of a word that are set.
std::uint32_t* put_positions(std::uint64_t word, std::uint64_t first, std::uint32_t* into) {
    for (; word != 0; word &= word - 1)
        *into++ =
            static_cast<std::uint32_t>(first) + static_cast<std::uint32_t>(std::countr_zero(word));
    return into;
}

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

/// The bits of a scan's rows, from the table's first row on: tasks begin with a word.
const std::uint64_t* words_of(const Task& scan) {
    return scan.made.as<std::uint64_t>() - scan.first / 64;
}

/// Positions that a scan found among these rows.
std::pair<const std::uint32_t*, const std::uint32_t*> positions_between(const Task& scan,
                                                                        std::uint64_t first,
                                                                        std::uint64_t last) {
    const auto* const all = scan.made.as<std::uint32_t>();
    const auto* const from = std::lower_bound(all, all + scan.entries, first);
    return {from, std::lower_bound(from, all + scan.entries, last)};
}

/// Calls use(scan, first, last) with the scans that have rows of the task's, and these.
template <class Use>
void for_selected(const Task& task, const StageRun& scans, Use use) {
    for (const Task& scan : scans.by_part[task.part]) {
        const std::uint64_t first = std::max(task.first, scan.first);
        const std::uint64_t last = std::min(task.last, scan.last);
        if (first < last) use(scan, first, last);
    }
}

/// Calls use(rows, count) with the rows of the task's selection, a batch at a time, rising.
template <class Use>
void for_batches(const Task& task, Use use) {
    const StageSpec& spec = *task.stage->spec;
    std::array<std::uint32_t, batch_rows + 64> batch;
    if (spec.selection < 0) {
        for (std::uint64_t from = task.first; from < task.last; from += batch_rows) {
            const std::uint64_t count = std::min(batch_rows, task.last - from);
            std::iota(batch.begin(), batch.begin() + count, static_cast<std::uint32_t>(from));
            use(batch.data(), count);
        }
        return;
    }
    const StageRun& scans = (*task.stage->stages)[static_cast<std::size_t>(spec.selection)];
    std::uint32_t* end = batch.data();
    for_selected(task, scans, [&](const Task& scan, std::uint64_t first, std::uint64_t last) {
        if (scans.spec->positions) {
            auto [from, until] = positions_between(scan, first, last);
            for (; from < until; from += batch_rows)
                use(from, std::min<std::uint64_t>(batch_rows, until - from));
            return;
        }
        const std::uint64_t* const words = words_of(scan);
        for (std::uint64_t w = first / 64; w * 64 < last; ++w) {
            end = put_positions(words[w], w * 64, end);
            if (end < batch.data() + batch_rows) continue;
            use(batch.data(), static_cast<std::uint64_t>(end - batch.data()));
            end = batch.data();
        }
    });
    if (end > batch.data()) use(batch.data(), static_cast<std::uint64_t>(end - batch.data()));
}

/// Rows of the task's selection.
std::uint64_t rows_of(const Task& task) {
    const StageSpec& spec = *task.stage->spec;
    if (spec.selection < 0) return task.last - task.first;
    std::uint64_t rows = 0;
    const StageRun& scans = (*task.stage->stages)[static_cast<std::size_t>(spec.selection)];
    for_selected(task, scans, [&](const Task& scan, std::uint64_t first, std::uint64_t last) {
        if (scans.spec->positions) {
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

template <class Value, class Into>
void look_up(const PartColumn& column, const std::uint32_t* rows, std::uint64_t count, Into* into) {
    const auto* values = column.dictionary.as<Value>();
    for (std::uint64_t k = 0; k < count; ++k) into[k] = values[column.ids.at(rows[k])];
}

/// Column after column, each with a value for each row.
void materialise(Task& task, Buffers& buffers) {
    const StageSpec& spec = *task.stage->spec;
    const Part& part = part_of(task);
    task.entries = rows_of(task);
    std::size_t bytes = 0;
    for (const std::uint32_t column : spec.columns)
        bytes += task.entries * part.column(column).dictionary.value_bytes();
    task.made = buffers.take(bytes);
    std::uint64_t done = 0;
    for_batches(task, [&](const std::uint32_t* rows, std::uint64_t count) {
        std::byte* at = task.made.memory.get();
        for (const std::uint32_t k : spec.columns) {
            const PartColumn& column = part.column(k);
            const std::uint32_t width = column.dictionary.value_bytes();
            std::byte* into = at + done * width;
            if (width == 4) {
                look_up<std::uint32_t>(column, rows, count, reinterpret_cast<std::uint32_t*>(into));
            } else {
                look_up<std::uint64_t>(column, rows, count, reinterpret_cast<std::uint64_t*>(into));
            }
            at += task.entries * width;
        }
        done += count;
    });
    task.part_bytes += bytes;
    for (const std::uint32_t k : spec.columns)
        task.part_bytes += task.entries * part.column(k).ids.bits() / 8;
    task.own_bytes += bytes;
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
    const Part& part = part_of(task);
    const std::uint32_t* agreed = nullptr;
    if (spec.agreed >= 0) {
        const auto& by_part = (*task.stage->stages)[static_cast<std::size_t>(spec.agreed)].by_part;
        if (!by_part.empty()) agreed = by_part[task.part].front().made.as<std::uint32_t>();
    }
    const auto sums = static_cast<std::uint32_t>(spec.sums.size());
    GroupSums& groups =
        task.groups.emplace(buffers, std::min(spec.groups, task.last - task.first), sums);
    Finder finder(groups, spec.radix);
    std::array<std::uint64_t, batch_rows + 64> key;
    std::vector<std::uint64_t> value(sums * key.size());  // column after column
    for_batches(task, [&](const std::uint32_t* rows, std::uint64_t count) {
        std::fill_n(key.begin(), count, 0);
        const std::uint32_t* map = agreed;
        for (std::size_t c = 0; c < spec.columns.size(); ++c) {
            const PartColumn& column = part.column(spec.columns[c]);
            for (std::uint64_t k = 0; k < count; ++k) {
                const std::uint64_t id = column.ids.at(rows[k]);
                key[k] = key[k] * spec.radix[c] + (map == nullptr ? id : map[id]);
            }
            if (map != nullptr) map += column.dictionary.values();
        }
        for (std::uint32_t s = 0; s < sums; ++s) {
            const PartColumn& column = part.column(spec.sums[s]);
            std::uint64_t* const into = value.data() + s * key.size();
            if (column.dictionary.value_bytes() == 4)
                look_up<std::uint32_t>(column, rows, count, into);
            else
                look_up<std::uint64_t>(column, rows, count, into);
        }
        for (std::uint64_t k = 0; k < count; ++k) {
            finder.prefetch(key[std::min(k + ahead, count - 1)]);
            std::uint64_t* const words = finder.group(key[k]);
            ++words[0];
            for (std::uint32_t s = 0; s < sums; ++s) words[2 + s] += value[s * key.size() + k];
        }
        task.entries += count;
    });
    task.rows = task.entries;
    for (const std::uint32_t k : spec.columns)
        task.part_bytes += task.entries * part.column(k).ids.bits() / 8;
    for (const std::uint32_t k : spec.sums)
        task.part_bytes += task.entries * (part.column(k).ids.bits() / 8 +
                                           part.column(k).dictionary.value_bytes());
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
    }
}

}  // namespace numatwin::native::tasks
