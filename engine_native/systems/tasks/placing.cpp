// What a placer orders: parts that move, and tables whose rows come to lie in other parts.
#include <algorithm>

#include "systems/tasks/engine.hpp"

namespace numatwin::native::tasks {
namespace {

constexpr std::uint64_t look_rows = 1 << 16;  // between two looks whether to stop

/// Rows [first, last) of a part.
struct Rows {
    const Part* part;
    std::uint64_t first, last;
};

/// Whether those rows have it, of each value of the part's dictionary.
std::vector<bool> used(const Rows& rows, std::size_t column) {
    const PartColumn& own = rows.part->column(column);
    std::vector<bool> found(own.dictionary.values());
    for (std::uint64_t row = rows.first; row < rows.last; ++row) found[own.ids.at(row)] = true;
    return found;
}

void copy_ids(const Rows& rows, std::size_t column, PartColumn& into, std::uint64_t at,
              const std::stop_token& stop) {
    const PartColumn& own = rows.part->column(column);
    std::vector<std::uint32_t> id_of(own.dictionary.values());  // both dictionaries are sorted
    for (std::uint64_t id = 0, to = 0; id < id_of.size(); ++id) {
        while (to + 1 < into.dictionary.values() && into.dictionary.at(to) < own.dictionary.at(id))
            ++to;
        id_of[id] = static_cast<std::uint32_t>(to);
    }
    for (std::uint64_t row = rows.first; row < rows.last; ++row) {
        if (row % look_rows == 0 && stop.stop_requested()) return;
        const std::uint64_t id = own.ids.at(row);
        into.ids.put(at++, own.encoded() ? id_of[id] : id);
    }
}

/// Those rows after each other; where they are `all` of the table, with all values of its columns.
std::unique_ptr<Part> copied(const std::vector<Rows>& from, bool all, const PartSpec& spec,
                             const std::vector<ColumnSpec>& columns, const std::stop_token& stop) {
    const Rows& rows = from.front();
    std::vector<std::vector<bool>> kept;  // none: all
    std::vector<std::uint64_t> values;
    for (std::size_t k = 0; k < columns.size(); ++k) {
        const bool some = columns[k].by_row && !all;
        kept.push_back(some ? used(rows, k) : std::vector<bool>());
        values.push_back(some ? static_cast<std::uint64_t>(std::ranges::count(kept[k], true))
                              : columns[k].distinct);
    }
    auto made = std::make_unique<Part>(spec, columns, values);
    for (std::size_t k = 0; k < columns.size(); ++k) {
        Dictionary& dictionary = made->column(k).dictionary;
        if (kept[k].empty()) dictionary.fill(0, 1);
        for (std::uint64_t id = 0, to = 0; id < kept[k].size(); ++id)
            if (kept[k][id]) dictionary.put(to++, rows.part->column(k).dictionary.at(id));
        std::uint64_t at = 0;
        for (const Rows& each : from) {
            copy_ids(each, k, made->column(k), at, stop);
            at += each.last - each.first;
        }
    }
    return made;
}

}  // namespace

std::shared_ptr<TaskTable> remade(const TaskTable& from, const std::vector<PartSpec>& parts,
                                  const std::stop_token& stop) {
    auto made = std::make_shared<TaskTable>(from, parts);
    const std::vector<ColumnSpec>& columns = from.spec().columns;
    std::vector<Rows> all;
    for (std::size_t p = 0; p < from.parts(); ++p)
        all.push_back({&from.part(p), 0, from.part(p).rows()});
    if (parts.size() == 1) made->set(0, copied(all, true, parts[0], columns, stop));
    for (std::size_t p = 0; parts.size() > 1 && p < parts.size(); ++p) {
        Rows half = all[p / 2];
        (p % 2 == 0 ? half.last : half.first) = parts[p / 2 * 2].rows;
        made->set(p, copied({half}, false, parts[p], columns, stop));
    }
    return made;
}

void TaskEngine::begin_copy(std::int64_t number, CopyJob job) {
    copying_[number] = std::jthread([=, this](const std::stop_token& stop) {
        try {
            job(stop);
            const std::scoped_lock lock(control_);
            arrived_.push_back(number);
        } catch (...) {
            failed(std::current_exception());
        }
    });
}

void TaskEngine::move(std::int64_t number, std::size_t table, std::size_t part, int host_node) {
    const std::scoped_lock lock(control_);
    begin_copy(number, [of = tables_.at(table), part, host_node](const std::stop_token& stop) {
        of->part(part).move(host_node, stop);
    });
}

void TaskEngine::remake(std::int64_t number, std::size_t table, std::vector<PartSpec> parts) {
    const std::scoped_lock lock(control_);
    begin_copy(number, [this, table, of = tables_.at(table),
                        parts = std::move(parts)](const std::stop_token& stop) {
        auto made = remade(*of, parts, stop);
        const std::scoped_lock locked(control_);
        remade_[table] = std::move(made);
    });
}

std::vector<std::int64_t> TaskEngine::arrived() {
    std::vector<std::shared_ptr<TaskTable>> unused;  // whose memory goes back without the lock
    std::vector<std::jthread> ended;                 // to be joined likewise
    const std::scoped_lock lock(control_);
    std::erase_if(retired_, [&unused](auto& table) {
        const bool free = table.use_count() == 1;
        if (free) unused.push_back(std::move(table));
        return free;
    });
    for (const std::int64_t number : arrived_)
        ended.push_back(std::move(copying_.extract(number).mapped()));
    return std::exchange(arrived_, {});
}

void TaskEngine::swap(std::size_t table) {
    const std::scoped_lock lock(control_);
    if (!remade_.at(table)) throw std::invalid_argument("table: expected one that was remade");
    retired_.push_back(std::exchange(tables_[table], std::move(remade_[table])));
}

void TaskEngine::hold(std::size_t table, std::size_t part) {
    const std::scoped_lock lock(control_);
    scheduler_.hold(tables_.at(table)->part(part));
}

void TaskEngine::place(std::size_t table, std::size_t part, std::uint32_t node) {
    const std::scoped_lock lock(control_);
    Part& placed = tables_.at(table)->part(part);
    placed.place(static_cast<int>(node));
    scheduler_.release(placed, placed.node(), spec_.queue_of.at(node));
}

std::vector<std::vector<LocalUse>> TaskEngine::local_use() const {
    const std::scoped_lock lock(control_);
    std::vector<std::unique_lock<std::mutex>> locks;  // no task ends meanwhile
    for (const auto& tally : tallies_) locks.emplace_back(tally->mutex);
    std::vector<std::vector<LocalUse>> found(1 + tables_.size());
    found[0].resize(nodes());
    for (std::size_t t = 0; t < tables_.size(); ++t)
        for (std::size_t p = 0; p < tables_[t]->parts(); ++p)
            found[1 + t].push_back(tables_[t]->part(p).use().now());
    for (std::size_t w = 0; w < tallies_.size(); ++w) {
        const Tally& tally = *tallies_[w];
        const std::uint32_t node = spec_.worker_node[w];
        add(found[0][node], tally.local);
        if (!tally.running || tally.running->queue != node) continue;
        const LocalUse more = tally.running_use();
        add(found[0][node], more);
        const StageRun& stage = *tally.running->stage;
        const auto t = static_cast<std::size_t>(std::max(stage.spec->table, 0));
        if (stage.table == tables_[t]) add(found[1 + t][tally.running->part], more);
    }
    return found;
}

}  // namespace numatwin::native::tasks
