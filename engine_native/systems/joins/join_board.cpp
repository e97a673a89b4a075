#include "systems/joins/join_board.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>

namespace numatwin::native {

std::uint64_t JoinBoard::bytes(const JoinSetup& setup) {
    const std::uint64_t nodes = setup.nodes;
    return sizeof(Head) +
           nodes * (sizeof(Slot) + setup.rounds * sizeof(NodeFigures) +
                    std::uint64_t{2} * setup.partitions * sizeof(std::uint64_t)) +
           (setup.keep_rows ? setup.rows_max() * sizeof(ResultRow) : 0);
}

JoinBoard::JoinBoard(const JoinSetup& setup, int descriptor)
    : setup_(setup), memory_(bytes(setup), "memory for a run's figures", descriptor) {
    // All of it is zero at first, which is how each of these begins.
    head_ = reinterpret_cast<Head*>(memory_.data());
    slots_ = reinterpret_cast<Slot*>(head_ + 1);
    figures_ = reinterpret_cast<NodeFigures*>(slots_ + setup.nodes);
    counts_ = reinterpret_cast<std::uint64_t*>(figures_ + std::size_t{setup.nodes} * setup.rounds);
    rows_ = reinterpret_cast<ResultRow*>(counts_ + std::size_t{2} * setup.nodes * setup.partitions);
}

void JoinBoard::meet(std::uint32_t node, Fabric& fabric) {
    // Release and acquire: what each has written before is seen after.
    const std::uint32_t step = slots_[node].step.load(std::memory_order_relaxed) + 1;
    slots_[node].step.store(step, std::memory_order_release);
    wait(fabric, [this, step] {
        return std::all_of(slots_, slots_ + setup_.nodes, [step](const Slot& slot) {
            return slot.step.load(std::memory_order_acquire) >= step;
        });
    });
}

void JoinBoard::wait(Fabric& fabric, const std::function<bool()>& done) const {
    constexpr std::uint32_t spins = 200, yields = 2'000;
    for (std::uint32_t looks = 0; !done(); ++looks) {
        if (fabric.progress() || looks < spins) continue;
        if (const auto text = failure(); !text.empty()) throw std::runtime_error(text);
        if (looks < yields)
            std::this_thread::yield();
        else
            std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
}

void JoinBoard::add_rows(std::span<const ResultRow> rows) {
    const std::uint64_t at = head_->rows.fetch_add(rows.size(), std::memory_order_relaxed);
    if (at + rows.size() > setup_.rows_max())
        throw std::runtime_error("more rows than the result can have");
    std::copy(rows.begin(), rows.end(), rows_ + at);
}

void JoinBoard::check() const {
    if (const auto text = failure(); !text.empty()) throw std::runtime_error(text);
    ResultTotals expected;
    for (std::uint32_t node = 0; node < setup_.nodes; ++node) expected += slots_[node].expected;
    for (std::uint32_t round = 0; round < setup_.rounds; ++round) {
        ResultTotals found;
        for (std::uint32_t node = 0; node < setup_.nodes; ++node)
            found += figures(round, node).found;
        if (found == expected) continue;
        throw std::runtime_error(
            "a tuple was lost, or taken twice: " + std::to_string(found.tuples) + " of " +
            std::to_string(expected.tuples) + " found, or others than these, in round " +
            std::to_string(round + 1));
    }
}

}  // namespace numatwin::native
