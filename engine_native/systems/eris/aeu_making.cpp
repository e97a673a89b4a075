// Aeu: its clients' commands are made and routed.
#include <algorithm>

#include "systems/eris/aeu.hpp"

namespace numatwin::native {

// Commands drawn earlier that found no room, or else a new batch. Counts what was put into outgoing
// buffers; where not all was, no more is made in this round.
//
// A command's latency begins when its client hands it over: that of an open client when it arrives,
// of a closed one when there is room for it, as that one has nothing to hand over before.
void Aeu::make() {
    const Ticks begin = ticks();
    const std::uint64_t begin_ns = now_ns();
    if (is_behind() ||
        !maker_.draw(static_cast<double>(begin_ns), std::min(to_make_, setup_.batch))) {
        stuck_ = true;
        return;
    }
    ++batches_made_;
    std::size_t made = 0;
    for (Drawn* drawn = maker_.front(); drawn != nullptr; drawn = maker_.front()) {
        std::size_t some = 0;
        if (setup_.operations[drawn->operation].kind == OperationKind::scan) {
            while (some < drawn->left() && ask_scan(*drawn)) ++some;
            counts_.scans_made.add(some);
        } else {
            if (!setup_.open()) drawn->since_ns = begin_ns;
            some = route(*drawn);
            counts_.made.add(some);
        }
        counts_.operation[drawn->operation].made.add(some);
        drawn->at += some;
        made += some;
        if (drawn->left() > 0) {
            stuck_ = true;
            break;
        }
        maker_.pop();
    }
    if (made > 0) moved_ = true;
    to_make_ -= std::min(made, to_make_);
    count_step(Step::issue, begin);
}

// Returns how many of what is left found room.
std::size_t Aeu::route(const Drawn& drawn) {
    const OperationSetup& operation = setup_.operations[drawn.operation];
    const bool upsert = operation.kind == OperationKind::upsert;
    // Where a command's share of a batch is large, each batch has a header and a stamp of its own;
    // else commands of several batches stand under one header, with the oldest one's stamp.
    const bool own = setup_.batch >= 16 * world_.workers();
    CommandHeader header;
    header.operation = static_cast<std::uint8_t>(operation.kind);
    header.object = static_cast<std::uint16_t>(operation.object);
    header.origin = static_cast<std::uint16_t>(number_);
    header.callback = drawn.operation | (own ? batches_made_ << 16 : 0);
    header.stamp = stamp_of(drawn.since_ns);
    const std::size_t words = std::max<std::size_t>(setup_.command_bytes / 8, upsert ? 2 : 1);
    header.entry_words = static_cast<std::uint8_t>(words);
    const PartitionTree& table = *table_[operation.object];
    const std::span<const std::uint64_t> keys = std::span(drawn.keys).subspan(drawn.at);
    if (words == 1) return router_.route_keys(table, header, keys);
    if (words > 2) return route_padded(header, drawn, words);
    pairs_.resize(keys.size());
    for (std::size_t k = 0; k < keys.size(); ++k)
        pairs_[k] = {keys[k], upsert ? maker_.random().next() : 0};
    return router_.route_pairs(table, header, pairs_);
}

// Commands of more than 16 bytes: a key, a value, and nothing behind it.
std::size_t Aeu::route_padded(CommandHeader header, const Drawn& drawn, std::size_t words) {
    const PartitionTree& table = *table_[header.object];
    words_.assign(words, 0);
    for (std::size_t k = drawn.at; k < drawn.count; ++k) {
        const std::uint32_t owner = table.owner(drawn.keys[k]);
        words_[0] = drawn.keys[k];
        words_[1] = maker_.random().next();
        if (outgoing_.append(owner, header, words_)) continue;
        outgoing_.flush(owner);
        if (!outgoing_.append(owner, header, words_)) return k - drawn.at;
    }
    return drawn.left();
}

// A scan, to all who hold a part; false where as many as may are under way, or there is no room.
bool Aeu::ask_scan(const Drawn& drawn) {
    const std::uint32_t operation = drawn.operation;
    std::atomic<std::size_t>& running = running_scans_[operation].count;
    // First a look: who waits for its turn does not take the line from who gives it.
    if (running.load(std::memory_order_relaxed) >= setup_.scans_max) return false;
    if (running.fetch_add(1, std::memory_order_relaxed) >= setup_.scans_max) {
        running.fetch_sub(1, std::memory_order_relaxed);
        return false;
    }
    const OperationSetup& asked = setup_.operations[operation];
    ColumnVersions& versions = *world_.objects[asked.object].versions;
    ScanTask* const task = &own_scans_.take();
    task->operation = operation;
    task->object = static_cast<std::uint32_t>(asked.object);
    task->origin = number_;
    task->scan = maker_.scan(asked);
    task->since_ns = setup_.open() ? drawn.since_ns : now_ns();
    task->version = versions.begin();
    const HolderBitmap& holders = versions.holders(task->version);
    task->left.store(static_cast<std::uint32_t>(holders.count()), std::memory_order_relaxed);
    CommandHeader header;
    header.operation = static_cast<std::uint8_t>(Kind::scan);
    header.object = static_cast<std::uint16_t>(asked.object);
    header.origin = static_cast<std::uint16_t>(number_);
    const auto address = reinterpret_cast<std::uint64_t>(task);
    if (!outgoing_.append_multicast(holders, header, {&address, 1})) {
        outgoing_.flush_all();
        if (!outgoing_.append_multicast(holders, header, {&address, 1})) {
            versions.end(task->version);
            running.fetch_sub(1, std::memory_order_relaxed);
            task->finished.store(true, std::memory_order_relaxed);
            return false;
        }
    }
    return true;
}

// Aeu: scans of one column that wait together are one pass over its entries, chunk by chunk.

namespace {

// After so many entries (256 KiB) the AEU's clients get their turn, as in the event plane.
constexpr std::uint64_t scan_chunk_entries = 1 << 15;

}  // namespace

// All scans of the column that wait begin a pass over its entries as they are now. What is on its
// way is scanned by its source for the old version of the layout, by its target for the new one.
void Aeu::begin_scans(std::size_t object) {
    ColumnPartition& part = *column_[object];
    tasks_.swap(scans_[object]);
    scans_[object].clear();
    scans_waiting_ -= tasks_.size();
    sums_.assign(tasks_.size(), {});
    scan_object_ = object;
    const std::uint64_t version = part.cycle ? part.cycle->version.load() : 0;
    const auto add = [&](const Column& column, auto&& takes) {
        if (stretches_left_ == stretches_.size()) stretches_.emplace_back();
        Stretch& stretch = stretches_[stretches_left_];
        stretch.tasks.clear();
        stretch.scans.clear();
        for (std::size_t k = 0; k < tasks_.size(); ++k) {
            if (!takes(*tasks_[k])) continue;
            stretch.tasks.push_back(k);
            stretch.scans.push_back(tasks_[k]->scan);
        }
        // Without a scan of the version that it belongs to, it may be another's by now.
        if (stretch.tasks.empty()) return;
        stretch.column = &column;
        stretch.at = 0;
        stretch.until = column.entries();
        ++stretches_left_;
    };
    const auto is_new = [&](const ScanTask& task) {
        return version > 0 && task.version >= version;
    };
    add(part.own, [](const ScanTask&) { return true; });
    for (const auto& one : part.leaving)
        add(*one, [&](const ScanTask& task) { return !is_new(task); });
    for (auto& one : part.arriving)
        if (one.ready()) add(one.entries(), is_new);
}

void Aeu::scan_chunk() {
    const Ticks begin = ticks();
    Stretch& stretch = stretches_[stretches_left_ - 1];
    const std::uint64_t until = std::min(stretch.until, stretch.at + scan_chunk_entries);
    results_.resize(std::max(results_.size(), stretch.scans.size()));
    const std::span<ScanResult> results{results_.data(), stretch.scans.size()};
    SharedScan shared(stretch.scans, results, stretch.at, until);
    stretch.column->visit_runs(stretch.at, until, [&](const ColumnRun& run) { shared.run(run); });
    for (std::size_t k = 0; k < results.size(); ++k) {
        Sums& sums = sums_[stretch.tasks[k]];
        sums.matches += results[k].matches;
        sums.sum += results[k].sum;
    }
    stretch.at = until;
    if (stretch.at == stretch.until) --stretches_left_;
    ObjectCounts& object = counts_.object[scan_object_];
    if (stretches_left_ == 0) {
        for (std::size_t k = 0; k < tasks_.size(); ++k) {
            ScanTask& task = *tasks_[k];
            object.executed.add(1);
            if (task.operation != ScanTask::outside)
                counts_.operation[task.operation].executed.add(1);
            // Once a pass: all that have a part of the scan write this line.
            task.matches.fetch_add(sums_[k].matches, std::memory_order_relaxed);
            task.sum.fetch_add(sums_[k].sum, std::memory_order_relaxed);
            end_scan(task);
        }
        tasks_.clear();
    }
    const Ticks spent = ticks() - begin;
    object.ticks.add(spent);
    counts_.step(Step::scan).add(spent);
}

// This AEU's part is done; whoever is last ends the scan. Acquire and release: the last one sees
// what the others found.
void Aeu::end_scan(ScanTask& task) {
    if (task.left.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
    world_.objects[task.object].versions->end(task.version);
    counts_.scans_done.add(1);
    if (task.operation == ScanTask::outside) {
        task.finished.store(true, std::memory_order_release);
        return;
    }
    OperationCounts& operation = counts_.operation[task.operation];
    operation.done.add(1);
    const std::uint64_t now = now_ns();
    operation.latency.add(1000 * (now - std::min(now, task.since_ns)), 1);
    if (setup_.think_ns > 0)
        world_.clients[task.origin].outstanding.fetch_sub(1, std::memory_order_relaxed);
    RunningScans& running = running_scans_[task.operation];
    task.finished.store(true, std::memory_order_release);  // its maker may use it again
    running.count.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace numatwin::native
