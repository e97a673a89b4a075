// Engine: balancing cycles are checked, planned and published.
#include <stdexcept>
#include <string>

#include "systems/eris/engine.hpp"

namespace numatwin::native {
namespace {

void check_bounds(const std::vector<std::uint64_t>& wanted, const std::vector<std::uint64_t>& now) {
    if (wanted.size() != now.size())
        throw std::invalid_argument("bounds: expected one more than AEUs");
    if (wanted.front() != now.front() || wanted.back() != now.back())
        throw std::invalid_argument("bounds: expected the same ends as before");
    for (std::size_t k = 1; k < wanted.size(); ++k)
        if (wanted[k] < wanted[k - 1])
            throw std::invalid_argument("bounds: expected an order that does not fall");
}

}  // namespace

bool Engine::balancing(std::size_t object) const {
    const std::scoped_lock lock(world_.control.mutex);
    for (const auto& cycle : world_.control.cycles)
        if (cycle->object == object && !cycle->over()) return true;
    return false;
}

bool Engine::rebalance(std::size_t number, const std::vector<std::uint64_t>& wanted) {
    expect(State::running, "rebalance: expected after start");
    if (number >= world_.objects.size())
        throw std::invalid_argument("object: expected one of objects");
    if (world_.setup.placement != Layout::partitioned)
        throw std::invalid_argument("rebalance: data that all share cannot be balanced");
    if (balancing(number)) throw std::invalid_argument("rebalance: a cycle is under way");
    const std::size_t workers = world_.workers();
    auto cycle = std::make_shared<Cycle>(workers);
    cycle->object = number;
    cycle->began = ticks();
    ObjectState& object = world_.objects[number];
    Control& control = world_.control;
    const std::scoped_lock lock(control.mutex);
    std::vector<Partition> partitions;
    if (object.table) {
        check_bounds(wanted, bounds_[number]);
        cycle->bounds = wanted;
        cycle->transfers = index_transfers(bounds_[number], wanted, world_.setup.node);
        cycle->left = workers + cycle->transfers.size();
        for (std::uint32_t k = 0; k < workers; ++k) partitions.push_back({wanted[k], k});
    } else {
        std::vector<std::uint64_t> now;
        std::uint64_t before = 0, after = 0;
        for (const auto& counts : world_.counts) {
            now.push_back(counts->object[number].entries.load());
            before += now.back();
        }
        if (wanted.size() != workers)
            throw std::invalid_argument("sizes: expected one for each AEU");
        for (const std::uint64_t size : wanted) after += size;
        if (before != after)
            throw std::invalid_argument("sizes: expected the sum of " + std::to_string(before));
        cycle->transfers = column_transfers(now, wanted, world_.setup.node);
        cycle->left = workers;
        cycle->unready = workers + cycle->transfers.size();
    }
    if (cycle->transfers.empty()) return false;
    control.cycles.reserve(control.cycles.size() + 1);
    if (object.table) {
        std::vector<std::uint64_t> bounds = wanted;
        object.table->replace(partitions);
        bounds_[number].swap(bounds);
    }
    control.cycles.push_back(std::move(cycle));
    control.publish();
    return true;
}

std::vector<CycleReport> Engine::cycles() const {
    const std::scoped_lock lock(world_.control.mutex);
    std::vector<CycleReport> found;
    const auto seconds = [&](Ticks at) {
        return static_cast<double>(at - started_) * ps_per_tick() / 1e12;
    };
    for (const auto& cycle : world_.control.cycles) {
        if (!cycle->over()) continue;
        std::size_t links = 0;
        for (const Transfer& transfer : cycle->transfers) links += transfer.link ? 1 : 0;
        found.push_back({cycle->object, links, cycle->transfers.size() - links,
                         cycle->copied_bytes.load(), seconds(cycle->began),
                         seconds(cycle->ended.load())});
    }
    return found;
}

std::vector<std::uint64_t> Engine::bounds(std::size_t object) const {
    const std::scoped_lock lock(world_.control.mutex);
    return bounds_.at(object);
}

}  // namespace numatwin::native
