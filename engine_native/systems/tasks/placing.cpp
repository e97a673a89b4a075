#include "systems/tasks/placing.hpp"

#include <algorithm>

#include "memory/clock.hpp"
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

void Placing::begin(std::int64_t number, Job job) {
    {
        const std::scoped_lock lock(mutex_);
        jobs_.emplace_back(number, std::move(job));
    }
    more_.notify_one();
}

std::vector<std::int64_t> Placing::ended() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(ended_, {});
}

void Placing::work(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (more_.wait(lock, stop, [this] { return !jobs_.empty(); }) && !stop.stop_requested()) {
        auto [number, job] = std::move(jobs_.front());
        jobs_.pop_front();
        lock.unlock();
        try {
            job(stop);
            lock.lock();
            ended_.push_back(number);
        } catch (...) {
            failed_(std::current_exception());
            lock.lock();
        }
    }
}

void TaskEngine::move(std::int64_t number, std::size_t table, std::size_t part, int host_node) {
    const std::scoped_lock lock(control_);
    placing_->begin(number, [of = tables_.at(table), part, host_node](const std::stop_token& stop) {
        of->part(part).move(host_node, stop);
    });
}

void TaskEngine::remake(std::int64_t number, std::size_t table, std::vector<PartSpec> parts) {
    const std::scoped_lock lock(control_);
    placing_->begin(number, [this, table, of = tables_.at(table),
                             parts = std::move(parts)](const std::stop_token& stop) {
        auto made = remade(*of, parts, stop);
        const std::scoped_lock locked(control_);
        remade_[table] = std::move(made);
    });
}

std::vector<std::int64_t> TaskEngine::arrived() {
    std::vector<std::shared_ptr<TaskTable>> unused;  // whose memory goes back without the lock
    {
        const std::scoped_lock lock(control_);
        std::erase_if(retired_, [&unused](auto& table) {
            const bool free = table.use_count() == 1;
            if (free) unused.push_back(std::move(table));
            return free;
        });
    }
    return placing_->ended();
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

std::vector<std::vector<std::pair<double, double>>> TaskEngine::local_use() const {
    using Use = std::pair<double, double>;
    const std::scoped_lock lock(control_);
    std::vector<std::unique_lock<std::mutex>> locks;  // no task ends meanwhile
    for (const auto& tally : tallies_) locks.emplace_back(tally->mutex);
    std::vector<std::vector<Use>> found(1 + tables_.size());
    found[0].resize(nodes());
    for (std::size_t t = 0; t < tables_.size(); ++t) {
        for (std::size_t p = 0; p < tables_[t]->parts(); ++p) {
            const PartUse& use = tables_[t]->part(p).use();
            found[1 + t].emplace_back(use.ns.load(), use.bytes.load());
        }
    }
    const auto add = [](Use& use, double ns, double bytes) {
        use.first += ns;
        use.second += bytes;
    };
    for (std::size_t w = 0; w < tallies_.size(); ++w) {
        const Tally& tally = *tallies_[w];
        const std::uint32_t node = spec_.worker_node[w];
        add(found[0][node], tally.local_ns, tally.bytes);
        if (tally.running == nullptr || tally.running->queue != node) continue;
        const auto ns = static_cast<double>(steady_ns() - tally.since_ns);
        add(found[0][node], ns, ns * 1e-9 * tally.Bps);
        const StageRun& stage = *tally.running->stage;
        if (stage.table == nullptr) continue;
        const auto t = static_cast<std::size_t>(stage.spec->table);
        if (stage.table == tables_[t])
            add(found[1 + t][tally.running->part], ns, ns * 1e-9 * tally.Bps);
    }
    return found;
}

}  // namespace numatwin::native::tasks
