// Aeu: scans of one column that wait together are one pass over its entries, chunk by chunk.
#include <algorithm>

#include "systems/eris/aeu.hpp"

namespace numatwin::native {
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
