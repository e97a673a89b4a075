#include "systems/commits/board.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "memory/clock.hpp"

namespace numatwin::native {

void Counters::add_latency(std::int64_t ps) {
    const auto value = static_cast<std::uint64_t>(std::max<std::int64_t>(ps, 0));
    const int shift = std::max(static_cast<int>(std::bit_width(value)) - 8, 0);
    const std::size_t bucket = static_cast<std::size_t>(shift) * parts + (value >> shift);
    latencies[std::min(bucket, buckets - 1)].add();
    latency_total_ps.add(value);
}

std::uint64_t Counters::ended() const {
    std::uint64_t count = commits.get() + given_up.get();
    for (const Count& aborted : aborts) count += aborted.get();
    return count;
}

std::uint64_t Board::bytes(const RunSetup& setup) {
    const std::uint64_t each = sizeof(RoleSlot) + sizeof(Counters) + setup.trace_rows * sizeof(Row);
    return sizeof(Head) + setup.roles() * each;
}

Board::Board(const RunSetup& setup, int descriptor)
    : clients_(setup.clients),
      roles_(setup.roles()),
      rows_each_(setup.trace_rows),
      memory_(bytes(setup), "memory for a run's counts", descriptor) {
    // All of it is zero at first, which is how each of these begins: no process needs to be first.
    static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
    head_ = reinterpret_cast<Head*>(memory_.data());
    slots_ = reinterpret_cast<RoleSlot*>(head_ + 1);
    counters_ = reinterpret_cast<Counters*>(slots_ + roles_);
    rows_ = reinterpret_cast<Row*>(counters_ + roles_);
}

std::int64_t Board::now_ns() const {
    return steady_ns() - head_->began_ns.load(std::memory_order_relaxed);
}

void Board::begin() {
    head_->began_ns.store(steady_ns(), std::memory_order_relaxed);
    set_phase(Phase::running);
}

bool Board::all(std::uint32_t first, std::uint32_t last, RoleState least) const {
    return std::all_of(slots_ + first, slots_ + last, [least](const RoleSlot& slot) {
        return slot.gone.load(std::memory_order_acquire) != 0 ||
               slot.state.load(std::memory_order_acquire) >= least;
    });
}

void Board::publish_contact(std::uint32_t role, std::span<const std::byte> contact) {
    slots_[role].contact.write(contact);
    slots_[role].state.store(RoleState::ready, std::memory_order_release);
}

std::span<const std::byte> Board::contact(std::uint32_t role) {
    const auto& slot = slots_[role];
    while (slot.state.load(std::memory_order_acquire) < RoleState::ready) {
        if (phase() == Phase::finished) throw std::runtime_error("the run was called off");
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return slot.contact.read();
}

void Board::fail(std::uint32_t role, std::string_view text) {
    fail_run(text);
    slots_[role].state.store(RoleState::failed, std::memory_order_release);
}

void Board::log(std::uint32_t role, RowKind kind, std::int64_t client, std::int64_t transaction,
                std::int64_t a, std::int64_t b) {
    if (rows_each_ == 0) return;
    auto& count = slots_[role].rows;
    const std::uint64_t at = count.load(std::memory_order_relaxed);
    if (at >= rows_each_) return;
    // Both: it stands between what came before it and what comes after it.
    const std::uint64_t sequence = head_->sequence.fetch_add(1, std::memory_order_acq_rel);
    rows_of(role)[at] = {
        sequence, now_ns() * 1000, static_cast<std::int64_t>(kind), client, transaction, a, b};
    count.store(at + 1, std::memory_order_release);
}

std::vector<Row> Board::trace() const {
    std::vector<Row> all;
    std::uint64_t known = ~std::uint64_t{0};  // up to there by all roles
    for (std::uint32_t role = 0; role < roles_; ++role) {
        const auto* rows = rows_of(role);
        const std::uint64_t count = slots_[role].rows.load(std::memory_order_acquire);
        all.insert(all.end(), rows, rows + count);
        if (count > 0 && count == rows_each_) known = std::min(known, rows[count - 1].sequence);
    }
    std::erase_if(all, [known](const Row& row) { return row.sequence > known; });
    std::sort(all.begin(), all.end(),
              [](const Row& one, const Row& other) { return one.sequence < other.sequence; });
    return all;
}

}  // namespace numatwin::native
