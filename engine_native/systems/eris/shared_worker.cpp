#include "systems/eris/shared_worker.hpp"

#include <algorithm>

#include "memory/clock.hpp"

namespace numatwin::native {
namespace {

// Of a scan that a worker does alone: after so many it looks whether all halt.
constexpr std::uint64_t entries_before_halt = 1 << 15;

}  // namespace

SharedWorker::SharedWorker(World& world, CommonScan& common, std::uint32_t number)
    : world_(world),
      setup_(world.setup),
      common_(common),
      number_(number),
      ns_per_tick_(ps_per_tick() / 1000),
      counts_(*world.counts[number]),
      maker_(world, setup_, number),
      values_(setup_.batch),
      words_(setup_.batch),
      found_(setup_.batch) {
    for (ObjectState& object : world.objects) memory_.push_back(&object.managers[0]->add_cache());
    adopt();
}

void SharedWorker::adopt() {
    {
        const std::scoped_lock lock(world_.control.mutex);
        version_ = world_.control.version();
        phase_ = world_.control.phase;
    }
    maker_.set_phase(phase_);
    only_scans_ = phase_ != nullptr && setup_.think_ns <= 0 && setup_.arrival_ns <= 0;
    if (only_scans_)
        for (const std::uint32_t operation : phase_->asked)
            if (setup_.operations[operation].kind != OperationKind::scan) only_scans_ = false;
}

void SharedWorker::load() {
    constexpr std::uint64_t piece = 1 << 12;
    for (std::size_t k = 0; k < world_.objects.size(); ++k) {
        ObjectState& object = world_.objects[k];
        // A column's entries come in their order, whoever appends them: one worker does.
        const bool column = object.shared_column != nullptr;
        if (column && k % world_.workers() != number_) continue;
        const std::uint64_t amount = object.setup.amount;
        std::uint64_t at = column ? 0 : part_of(amount, number_, world_.workers());
        const std::uint64_t end = column ? amount : part_of(amount, number_ + 1, world_.workers());
        std::vector<std::uint64_t> keys, values;
        while (at < end && !world_.control.halted()) {
            const std::uint64_t until = std::min(end, at + piece);
            keys.clear();
            values.clear();
            for (std::uint64_t i = at; i < until; ++i) {
                keys.push_back(i);
                values.push_back(column ? loaded_entry(setup_.seed, k, i)
                                        : object.far().make(*memory_[k], loaded_value(i)));
            }
            if (column)
                object.shared_column->append(values);
            else
                object.shared_tree->upsert(keys, values, *memory_[k]);
            counts_.loaded.fetch_add(until - at, std::memory_order_relaxed);
            at = until;
        }
    }
}

std::uint64_t SharedWorker::now_ns() const noexcept {
    return static_cast<std::uint64_t>(static_cast<double>(ticks()) * ns_per_tick_);
}

double SharedWorker::idle_ns() const {
    return maker_.next_ns() - static_cast<double>(now_ns());
}

bool SharedWorker::round() {
    const Ticks begin = ticks();
    counts_.rounds.add(1);
    if (world_.control.version() != version_) adopt();
    bool worked = false;
    if (only_scans_) {
        worked = world_.control.making() && scan_together();
    } else {
        const auto now = static_cast<double>(now_ns());
        const std::size_t most = std::min(maker_.allowed(now), setup_.batch);
        if (most > 0 && maker_.draw(now, most))
            for (Drawn* drawn = maker_.front(); drawn != nullptr; drawn = maker_.front()) {
                execute(*drawn);
                maker_.pop();
                worked = true;
            }
    }
    (worked ? counts_.busy_ticks : counts_.idle_ticks).add(ticks() - begin);
    return worked;
}

void SharedWorker::execute(Drawn& drawn) {
    const OperationSetup& operation = setup_.operations[drawn.operation];
    if (operation.kind == OperationKind::scan) return scan_alone(drawn);
    const Ticks begin = ticks();
    ObjectCounts& object = counts_.object[operation.object];
    SharedTree& tree = *world_.objects[operation.object].shared_tree;
    const FarValues far = world_.objects[operation.object].far();
    if (operation.kind == OperationKind::lookup) {
        object.found.add(tree.lookup(drawn.keys, values_.data(), found_.data()));
        if (far.used()) keep(far.read(values_.data(), found_.data(), drawn.count));
    } else if (operation.kind == OperationKind::upsert) {
        for (std::size_t k = 0; k < drawn.count; ++k) values_[k] = maker_.random().next();
        Memory& memory = *memory_[operation.object];
        if (!far.used()) {
            object.inserted.add(tree.upsert(drawn.keys, {values_.data(), drawn.count}, memory));
        } else {
            tree.lookup(drawn.keys, words_.data(), found_.data());
            far.write(words_.data(), found_.data(), values_.data(), drawn.count);
            for (std::size_t k = 0; k < drawn.count; ++k) {
                if (found_[k]) continue;
                const std::uint64_t word = far.make(memory, values_[k]);
                object.inserted.add(tree.upsert({&drawn.keys[k], 1}, {&word, 1}, memory));
            }
        }
    }
    const Ticks spent = ticks() - begin;
    object.executed.add(drawn.count);
    object.ticks.add(spent);
    counts_.step(Step::walk).add(spent);
    counts_.made.add(drawn.count);
    counts_.executed.add(drawn.count);
    counts_.operation[drawn.operation].made.add(drawn.count);
    done(drawn.operation, drawn.since_ns, drawn.count);
}

void SharedWorker::done(std::uint32_t operation, std::uint64_t since_ns, std::size_t count) {
    OperationCounts& counts = counts_.operation[operation];
    const std::uint64_t now = now_ns();
    counts.executed.add(count);
    counts.done.add(count);
    counts.latency.add(1000 * (now - std::min(now, since_ns)), count);
    if (setup_.think_ns > 0)
        world_.clients[number_].outstanding.fetch_sub(static_cast<std::int64_t>(count),
                                                      std::memory_order_relaxed);
}

void SharedWorker::scan_alone(const Drawn& drawn) {
    const OperationSetup& operation = setup_.operations[drawn.operation];
    const SharedColumn& column = *world_.objects[operation.object].shared_column;
    ObjectCounts& object = counts_.object[operation.object];
    for (std::size_t k = 0; k < drawn.count && !world_.control.halted(); ++k) {
        const Ticks begin = ticks();
        const std::uint64_t since_ns = setup_.open() ? drawn.since_ns : now_ns();
        const Scan scan = maker_.scan(operation);
        const std::uint64_t end = column.entries();
        results_.resize(1);
        for (std::uint64_t at = 0; at < end && !world_.control.halted();) {
            const std::uint64_t until = std::min(end, at + entries_before_halt);
            SharedScan shared({&scan, 1}, results_, at, until);
            column.visit_runs(at, until, [&](const ColumnRun& run) { shared.run(run); });
            at = until;
        }
        const Ticks spent = ticks() - begin;
        object.executed.add(1);
        object.ticks.add(spent);
        counts_.step(Step::scan).add(spent);
        counts_.operation[drawn.operation].made.add(1);
        done(drawn.operation, since_ns, 1);
    }
}

bool SharedWorker::scan_together() {
    const Ticks begin = ticks();
    const bool worked = common_.take_part(
        [&] {
            auto running = std::make_shared<CommonScan::Running>();
            running->operation =
                static_cast<std::uint32_t>(phase_->operation.draw(maker_.random()));
            running->since_ns = now_ns();
            const OperationSetup& operation = setup_.operations[running->operation];
            running->scan =
                std::make_unique<MorselScan>(*world_.objects[operation.object].shared_column,
                                             std::vector<Scan>{maker_.scan(operation)});
            counts_.operation[running->operation].made.add(1);
            return running;
        },
        [&](const CommonScan::Running& running) {
            counts_.object[setup_.operations[running.operation].object].executed.add(1);
            done(running.operation, running.since_ns, 1);
        });
    if (worked) counts_.step(Step::scan).add(ticks() - begin);
    return worked;
}

}  // namespace numatwin::native
