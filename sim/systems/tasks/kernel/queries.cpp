// Clients, and how a query becomes stages and a stage tasks: ../reference/queries.py.
#include <algorithm>
#include <cmath>

#include "systems/tasks/kernel/tasks.hpp"

namespace numatwin {

// -- clients

std::uint32_t TaskModel::drawn(Stream& stream) {
    const double drawn = stream.uniform() * mix_.back();
    const auto found = std::upper_bound(mix_.begin(), mix_.end(), drawn);
    if (found == mix_.end()) return static_cast<std::uint32_t>(setup_.last_of_mix);
    return static_cast<std::uint32_t>(found - mix_.begin());
}

void TaskModel::ask(std::uint32_t client) {
    const std::int64_t own = setup_.client_query[client];
    begin(own == nothing ? drawn(client_stream_[2 * client]) : static_cast<std::uint32_t>(own),
          client);
}

void TaskModel::begin(std::uint32_t query_kind, std::uint32_t client) {
    const auto first = static_cast<std::uint32_t>(setup_.query_first[query_kind]);
    const auto end = static_cast<std::uint32_t>(setup_.query_first[query_kind + 1]);
    if (free_queries_.empty()) {
        free_queries_.push_back(static_cast<std::uint32_t>(query_.size()));
        query_.emplace_back();
        state_.resize(query_.size() * stages_max_);
        ran_.resize(query_.size() * stages_max_);
    }
    const std::uint32_t query_index = free_queries_.back();
    free_queries_.pop_back();
    query_[query_index] = {asked_++, query_kind, client, end - first, clock.now(), version_};
    for (std::uint32_t s = first; s < end; ++s)
        state(query_index, s) = {static_cast<std::uint32_t>(setup_.stages[s].inputs.size()), 0, 0};
    log(asked_row, query_kind, static_cast<std::int32_t>(client), query_[query_index].number);
    for (std::uint32_t s = first; s < end; ++s)
        if (setup_.stages[s].inputs.empty()) start_stage(query_index, s);
}

void TaskModel::answer(std::uint32_t query_index) {
    const Query query = query_[query_index];
    free_queries_.push_back(query_index);
    const Time latency = clock.now() - query.asked;
    latency_[query.kind].add(latency);
    latency_total_[query.kind] += latency;
    log(answered_row, query.kind, static_cast<std::int32_t>(query.client), query.number, latency);
    if (query.client == none) return;
    if (setup_.think_ps == 0) return ask(query.client);
    clock.schedule(clock.now() + think_.draw(client_stream_[2 * query.client + 1]), asks,
                   query.client);
}

// -- stages

const TaskModel::PartList& TaskModel::list_of(std::uint32_t query, std::int64_t table) const {
    const auto& lists = list_[static_cast<std::size_t>(table)];
    std::size_t version = lists.size() - 1;
    while (lists[version].version > query_[query].version) --version;
    return lists[version];
}

double TaskModel::entries_of(std::uint32_t query, std::uint32_t s) const {
    const StageSetup& stage = setup_.stages[s];
    double rows = 0, parts = 0, tasks = 0;
    if (stage.table != nothing) {
        const PartList& list = list_of(query, stage.table);
        rows = static_cast<double>(list.rows);
        parts = static_cast<double>(list.parts.size());
    }
    for (const std::int64_t input : stage.inputs)
        tasks += state(query, static_cast<std::uint32_t>(input)).made;
    return std::min(stage.per_row * rows + stage.per_part * parts + stage.per_input_task * tasks +
                        stage.constant,
                    stage.most);
}

void TaskModel::start_stage(std::uint32_t query, std::uint32_t s) {
    const StageSetup& stage = setup_.stages[s];
    const bool too_few =
        stage.parts_min > 1 &&
        static_cast<std::int64_t>(list_of(query, stage.counted).parts.size()) < stage.parts_min;
    if (stage.pipelined || too_few) {
        state(query, s).made = 0;
        return stage_ended(query, s);
    }
    std::int64_t hint = stage.concurrency != 0 ? stage.concurrency : setup_.concurrency;
    if (hint == 0) hint = std::max<std::int64_t>(static_cast<std::int64_t>(free_workers_), 1);
    const double entries = entries_of(query, s);
    const auto at_most = [](std::int64_t wanted, double entry_count) {
        const double most = std::floor(entry_count);
        if (most < static_cast<double>(wanted)) wanted = static_cast<std::int64_t>(most);
        return static_cast<std::uint32_t>(std::max<std::int64_t>(wanted, 1));
    };
    if (stage.table == nothing) {
        const std::uint32_t count = at_most(hint, entries);
        expect(query, s, count);
        for (std::uint32_t k = 0; k < count; ++k)
            make(query, s, k, none, 1.0 / count, entries, node_of(query, stage, k, none));
        return;
    }
    // The list may move while tasks are made, where a table's parts do; none does here.
    const PartList& list = list_of(query, stage.table);
    const auto rows = static_cast<double>(list.rows);
    const auto tasks_of = [&](const Part& part) {
        const auto share =
            static_cast<std::int64_t>(static_cast<__int128>(hint) * part.rows / list.rows);
        return at_most(share, entries * static_cast<double>(part.rows) / rows);
    };
    std::uint32_t total = 0, index = 0;
    for (const std::uint32_t part : list.parts) total += tasks_of(part_[part]);
    expect(query, s, total);
    for (const std::uint32_t part : list.parts) {
        const std::uint32_t count = tasks_of(part_[part]);
        const double share = static_cast<double>(part_[part].rows) / rows;
        for (std::uint32_t k = 0; k < count; ++k, ++index)
            make(query, s, index, part, share / count, entries, node_of(query, stage, index, part));
    }
}

void TaskModel::expect(std::uint32_t query, std::uint32_t s, std::uint32_t tasks) {
    state(query, s).made = state(query, s).tasks_left = tasks;
    if (setup_.stages[s].kept) ran(query, s).assign(tasks, 0);
    for (const std::int64_t t : setup_.stages[s].followers) {
        const auto follower = static_cast<std::uint32_t>(t);
        if (setup_.stages[follower].pipelined) expect(query, follower, tasks);
    }
}

std::int64_t TaskModel::node_of(std::uint32_t query, const StageSetup& stage, std::uint32_t index,
                                std::uint32_t part) {
    if (part != none) {
        if (part_[part].node >= 0) return part_[part].node;
    } else if (!stage.inputs.empty()) {
        const auto input = static_cast<std::uint32_t>(stage.inputs.front());
        const std::uint32_t count = state(query, input).made;
        if (count > 0) return ran(query, input)[index % count];
    }
    return in_turn(static_cast<std::size_t>(stage.task_class));
}

void TaskModel::make(std::uint32_t query, std::uint32_t s, std::uint32_t index, std::uint32_t part,
                     double fraction, double entries, std::int64_t node) {
    if (free_tasks_.empty()) {
        free_tasks_.push_back(static_cast<std::uint32_t>(task_.size()));
        task_.emplace_back();
    }
    const std::uint32_t task_index = free_tasks_.back();
    free_tasks_.pop_back();
    Task& task = task_[task_index];
    task.query = query;
    task.stage = s;
    task.index = index;
    task.part = part;
    task.fraction = fraction;
    task.entries = std::max(1.0, entries * fraction);
    task.home = static_cast<std::int32_t>(part == none ? node : part_[part].node);
    task.node = static_cast<std::int32_t>(stand_in_[static_cast<std::size_t>(node)]);
    task.owner = none;
    task.number = tasks_made_++;
    ClassCounts& counts = class_[class_of(task)];
    ++counts.made;
    if (part != none && part_[part].blocked) {
        ++counts.waiting;
        part_[part].waiting.push_back(task_index);
        return log(made_row, task.number, s, part, nothing);
    }
    log(made_row, task.number, s, static_cast<std::int32_t>(part), task.node);
    queue_task(task_index);
}

void TaskModel::follow(std::uint32_t task_index, std::uint32_t node) {
    const Task task = task_[task_index];
    const std::uint32_t query = task.query, s = task.stage;
    const StageSetup& stage = setup_.stages[s];
    if (stage.kept) ran(query, s)[task.index] = static_cast<std::int32_t>(node);
    for (const std::int64_t t : stage.followers) {
        const auto follower = static_cast<std::uint32_t>(t);
        if (!setup_.stages[follower].pipelined) continue;
        make(query, follower, task.index, task.part, task.fraction, entries_of(query, follower),
             node);
    }
    if (--state(query, s).tasks_left == 0) stage_ended(query, s);
}

void TaskModel::stage_ended(std::uint32_t query, std::uint32_t s) {
    if (--query_[query].stages_left == 0) return answer(query);
    for (const std::int64_t t : setup_.stages[s].followers) {
        const auto follower = static_cast<std::uint32_t>(t);
        const bool pipelined = setup_.stages[follower].pipelined;
        const bool left_out = pipelined && state(query, s).made == 0;
        if (--state(query, follower).inputs_left == 0 && (left_out || !pipelined))
            start_stage(query, follower);
    }
}

// -- parts

void TaskModel::new_list(std::size_t table, const std::vector<std::int64_t>& rows,
                         const std::vector<std::int64_t>& nodes) {
    if (rows.empty() || rows.size() != nodes.size())
        throw std::invalid_argument("nodes: expected one for each part, at least one");
    PartList list;
    list.version = version_;
    for (std::size_t k = 0; k < rows.size(); ++k) {
        if (rows[k] < 0 || nodes[k] < -static_cast<std::int64_t>(spreads()) ||
            nodes[k] >= static_cast<std::int64_t>(n_))
            throw std::invalid_argument("parts: expected rows from 0 on, and nodes");
        list.parts.push_back(static_cast<std::uint32_t>(part_.size()));
        list.rows += rows[k];
        part_.push_back({rows[k], nodes[k], false, {}, {}});
        part_.back().use.since = clock.now();
    }
    if (list.rows <= 0) throw std::invalid_argument("rows: expected at least one");
    list_[table].push_back(std::move(list));
}

void TaskModel::set_parts(std::size_t table, const std::vector<std::int64_t>& rows,
                          const std::vector<std::int64_t>& nodes) {
    ++version_;
    new_list(table, rows, nodes);
}

TaskModel::Part& TaskModel::part_of(std::size_t table, std::size_t part) {
    if (table >= list_.size() || part >= list_[table].back().parts.size())
        throw std::invalid_argument("part: expected one of a table");
    return part_[list_[table].back().parts[part]];
}

void TaskModel::place(std::size_t table, std::size_t p, std::int64_t node) {
    if (node < 0 || node >= static_cast<std::int64_t>(n_))
        throw std::invalid_argument("node: expected one of the machine");
    Part& part = part_of(table, p);
    part.node = node;
    part.blocked = false;
    std::vector<std::uint32_t> waiting;
    waiting.swap(part.waiting);
    for (const std::uint32_t task_index : waiting) {
        Task& task = task_[task_index];
        --class_[class_of(task)].waiting;
        task.home = static_cast<std::int32_t>(node);
        task.node = static_cast<std::int32_t>(stand_in_[static_cast<std::size_t>(node)]);
        task.owner = none;
        queue_task(task_index);
    }
    plan();
}

}  // namespace numatwin
