#include "systems/commits/board.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "memory/clock.hpp"

namespace numatwin::native {
namespace {

void copy_text(std::array<char, RoleSlot::text_max>& into, std::string_view text) {
    const std::size_t length = std::min(text.size(), into.size() - 1);
    std::copy_n(text.begin(), length, into.begin());
    into[length] = 0;
}

}  // namespace

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
      bytes_(bytes(setup)) {
    const int flags = descriptor < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED;
    void* found = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, flags, descriptor, 0);
    if (found == MAP_FAILED)
        throw std::system_error(errno, std::generic_category(), "memory for a run's counts");
    memory_ = static_cast<std::byte*>(found);
    // All of it is zero at first, which is how each of these begins: no process needs to be first.
    static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
    head_ = reinterpret_cast<Head*>(memory_);
    slots_ = reinterpret_cast<RoleSlot*>(memory_ + sizeof(Head));
    counters_ = reinterpret_cast<Counters*>(slots_ + roles_);
    rows_ = reinterpret_cast<Row*>(counters_ + roles_);
}

Board::~Board() {
    ::munmap(memory_, bytes_);
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
    auto& slot = slots_[role];
    if (contact.size() > slot.contact.size())
        throw std::runtime_error("the network's address of a process is too long");
    std::copy(contact.begin(), contact.end(), slot.contact.begin());
    slot.contact_bytes = static_cast<std::uint32_t>(contact.size());
    slot.state.store(RoleState::ready, std::memory_order_release);
}

std::span<const std::byte> Board::contact(std::uint32_t role) {
    const auto& slot = slots_[role];
    while (slot.state.load(std::memory_order_acquire) < RoleState::ready) {
        if (phase() == Phase::finished) throw std::runtime_error("the run was called off");
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return {slot.contact.data(), slot.contact_bytes};
}

void Board::fail(std::uint32_t role, std::string_view text) {
    fail_run(text);
    slots_[role].state.store(RoleState::failed, std::memory_order_release);
}

void Board::fail_run(std::string_view text) {
    std::uint32_t none = 0;
    if (!head_->failed.compare_exchange_strong(none, 1, std::memory_order_acq_rel)) return;
    copy_text(head_->failure, text);
    head_->failed.store(2, std::memory_order_release);  // the text is whole
}

std::string Board::failure() const {
    if (head_->failed.load(std::memory_order_acquire) != 2) return {};
    return head_->failure.data();
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
