// How much load one group of processors takes from another, by Linux's rules: the twin of
// ../reference/os_balancing.py, where they are written out.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "machine/kernel/os_scheduler.hpp"

namespace numatwin {
namespace {

constexpr double half_life_ps = 32e9;

}  // namespace

// It was in use all the time since, or not at all.
void OsScheduler::Use::pass_time(Time now, bool runs) {
    const double left = std::exp2(-static_cast<double>(now - updated) / half_life_ps);
    part = runs ? 1.0 - (1.0 - part) * left : part * left;
    updated = now;
}

// Of its processors' time.
std::int64_t OsScheduler::Sum::room() const {
    if (threads < weight) return (weight - threads) * one;
    const double left = std::max(static_cast<double>(weight) - use, 0.0);
    return static_cast<std::int64_t>(left * static_cast<double>(one));
}

// Of groups with processors that are allowed (to the thread, if it is told), the local one first if
// it has any.
void OsScheduler::sum(Time now, const Domain& domain, std::size_t local, std::uint32_t thread) {
    sum_.clear();
    const auto add = [&](std::size_t group) {
        Sum group_sum{.group = group, .percent = imbalance_percent[domain.level]};
        for (const std::uint32_t cpu : domain.groups[group]) {
            if (thread == none ? !cpu_[cpu].allowed : !may(thread, cpu)) continue;
            ++group_sum.weight;
            group_sum.threads += static_cast<std::int64_t>(cpu_[cpu].threads());
            group_sum.idle += idle(cpu);
            Cpu& processor = cpu_[cpu];
            processor.pass_time(now);
            group_sum.use += processor.use.part;
        }
        if (group_sum.weight > 0) sum_.push_back(group_sum);
    };
    add(local);
    for (std::size_t group = 0; group < domain.groups.size(); ++group)
        if (group != local) add(group);
}

// What the local group takes, of sum_; false if nothing is out of balance.
bool OsScheduler::wanted(const Domain& domain, bool is_idle, Wanted& found) const {
    const Sum& local = sum_.front();
    const Sum* busiest = nullptr;
    const auto busy = [](const Sum& group_sum) {
        return group_sum.kind() == 0 ? std::tuple<std::int64_t, std::int64_t, std::int64_t>(
                                           0, -group_sum.idle, group_sum.threads)
                                     : std::tuple<std::int64_t, std::int64_t, std::int64_t>(
                                           group_sum.kind(), group_sum.load(), 0);
    };
    for (std::size_t k = 1; k < sum_.size(); ++k)
        if (sum_[k].threads > 0 && (busiest == nullptr || busy(sum_[k]) > busy(*busiest)))
            busiest = &sum_[k];
    if (busiest == nullptr || local.kind() > busiest->kind()) return false;
    if (local.kind() == 0) return wanted_for_room(domain, *busiest, is_idle, found);
    if (busiest->kind() < 2) return false;
    std::int64_t threads = 0, weight = 0;
    for (const Sum& group_sum : sum_) {
        threads += group_sum.threads;
        weight += group_sum.weight;
    }
    const std::int64_t mean = one * threads / weight;
    if (local.load() >= mean ||
        100 * busiest->load() <= imbalance_percent[domain.level] * local.load())
        return false;
    found = {
        busiest->group, load_,
        std::min((busiest->load() - mean) * busiest->weight, (mean - local.load()) * local.weight)};
    return true;
}

bool OsScheduler::wanted_for_room(const Domain& domain, const Sum& busiest, bool is_idle,
                                  Wanted& found) const {
    const Sum& local = sum_.front();
    std::int64_t more = busiest.threads - local.threads;
    if (more == 1 && local.threads == 0 && busiest.threads > 1) more = 2;
    if (!(domain.spreads && more > 1) && busiest.kind() < 2) {
        if (!is_idle || busiest.threads == 1) return false;
        if (busiest.weight > 1 && local.idle <= busiest.idle + 1) return false;
    }
    if (busiest.kind() == 2 && domain.level > cache) {
        found = {busiest.group, use_, local.room()};
        return true;
    }
    const bool by_threads = busiest.weight == 1 || domain.spreads;
    std::int64_t amount = std::max<std::int64_t>(by_threads ? more : local.idle - busiest.idle, 0);
    if (domain.level == beyond && local.threads + 1 <= domain.spare && amount <= 2) amount = 0;
    found = {busiest.group, threads_, (amount >> 1) * one};
    return true;
}

}  // namespace numatwin
