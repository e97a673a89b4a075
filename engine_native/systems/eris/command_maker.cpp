#include "systems/eris/command_maker.hpp"

#include <algorithm>
#include <limits>

namespace numatwin::native {

CommandMaker::CommandMaker(World& world, const EngineSetup& setup, std::uint32_t worker)
    : control_(world.control),
      setup_(setup),
      outstanding_(world.clients[worker].outstanding),
      random_(setup.seed, worker),
      of_operation_(setup.operations.size()) {}

std::size_t CommandMaker::allowed(double now_ns) {
    if (!setup_.clients || phase_ == nullptr) return 0;
    if (!control_.making()) {
        first_round_ = true;  // nobody arrives while clients pause
        return 0;
    }
    std::size_t most = setup_.commands_per_round();
    if (first_round_) {  // workers that begin together do not stay in step
        first_round_ = false;
        most = static_cast<std::size_t>(static_cast<double>(most) * random_.uniform()) + 1;
        if (setup_.arrival_ns > 0)
            next_arrival_ns_ = now_ns + random_.exponential(setup_.arrival_ns);
    }
    if (setup_.think_ns <= 0) return most;
    if (at_ < used_) return setup_.batch;  // of a batch that has begun
    // Acquire is not needed: answers carry nothing that the client reads.
    if (outstanding_.load(std::memory_order_relaxed) > 0) return 0;
    if (waiting_) {
        waiting_ = false;
        think_until_ns_ = now_ns + random_.exponential(setup_.think_ns);
    }
    return now_ns >= think_until_ns_ ? setup_.batch : 0;
}

bool CommandMaker::draw(double now_ns, std::size_t most) {
    if (at_ < used_) return true;
    at_ = used_ = 0;
    if (setup_.open()) {
        // Those that came one soon after the other share a stamp: at most eight stamps a batch.
        const std::size_t together = std::max<std::size_t>(setup_.batch / 8, 1);
        std::size_t due = 0;
        while (due < most && next_arrival_ns_ <= now_ns) {
            const double since_ns = next_arrival_ns_;
            std::size_t count = 0;
            while (count < together && due < most && next_arrival_ns_ <= now_ns) {
                next_arrival_ns_ += random_.exponential(setup_.arrival_ns);
                ++count;
                ++due;
            }
            mix(count, since_ns);
        }
    } else {
        mix(most, now_ns);
    }
    if (used_ == 0) return false;
    if (setup_.think_ns > 0) {
        std::size_t all = 0;
        for (std::size_t k = 0; k < used_; ++k) all += drawn_[k].count;
        outstanding_.fetch_add(static_cast<std::int64_t>(all), std::memory_order_relaxed);
        waiting_ = true;
    }
    return true;
}

// Draws `count` commands of the phase's mix; those of one operation stand together.
void CommandMaker::mix(std::size_t count, double since_ns) {
    if (phase_->asked.size() == 1) return add(phase_->asked[0], count, since_ns);
    std::fill(of_operation_.begin(), of_operation_.end(), 0);
    for (std::size_t k = 0; k < count; ++k) ++of_operation_[phase_->operation.draw(random_)];
    for (const std::uint32_t operation : phase_->asked)
        if (of_operation_[operation] > 0) add(operation, of_operation_[operation], since_ns);
}

void CommandMaker::add(std::uint32_t operation, std::size_t count, double since_ns) {
    if (count == 0) return;
    if (used_ == drawn_.size()) drawn_.emplace_back();
    Drawn& drawn = drawn_[used_++];
    drawn.operation = operation;
    drawn.count = count;
    drawn.at = 0;
    drawn.since_ns = static_cast<std::uint64_t>(since_ns);
    drawn.keys.clear();
    if (const auto& keys = phase_->keys[operation]) {
        drawn.keys.resize(count);
        keys->draw(random_, drawn.keys);
    }
}

Scan CommandMaker::scan(const OperationSetup& operation) noexcept {
    Scan found;
    found.output = operation.result;
    if (operation.selectivity >= 1) return found;
    // One that shall find nothing looks for a single value: an empty range would be known to hold
    // nothing without a look at the column.
    const auto width =
        std::max<std::uint64_t>(static_cast<std::uint64_t>(operation.selectivity * 0x1p64), 1);
    const std::uint64_t low = random_.below(0 - width);
    found.range = {low, low + width - 1};
    return found;
}

double CommandMaker::next_ns() const noexcept {
    if (!control_.making()) return std::numeric_limits<double>::infinity();
    if (setup_.arrival_ns > 0) return next_arrival_ns_;
    return waiting_ ? std::numeric_limits<double>::infinity() : think_until_ns_;
}

}  // namespace numatwin::native
