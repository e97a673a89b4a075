#include "systems/commits/commit_client.hpp"

#include <stdexcept>
#include <thread>
#include <utility>

namespace numatwin::native {

CommitClient::CommitClient(const RunSetup& setup, Board& board, std::uint32_t client,
                           Fabric& fabric)
    : setup_(setup),
      board_(board),
      client_(client),
      fabric_(fabric),
      draw_(setup, client),
      counters_(board.counters(client)),
      factor_(setup.factor(client)) {}

void CommitClient::run() {
    try {
        slowed_until_ns_ = board_.now_ns();
        while (board_.phase() == Phase::running) run_one();
    } catch (const Left&) {
    }
}

bool CommitClient::run_one() {
    draw_.next();
    const std::int64_t began_ns = board_.now_ns();
    bool committed = false;
    for (std::uint32_t tries = 0; tries <= setup_.retries && !committed; ++tries) {
        if (tries > 0) pause(setup_.backoff_ns);
        committed = try_transaction();
    }
    const std::int64_t ended_ns = board_.now_ns();
    if (committed) {
        counters_.commits.add();
        counters_.add_latency((ended_ns - began_ns) * 1000);
    } else {
        counters_.given_up.add();
    }
    counters_.busy_ns.add(static_cast<std::uint64_t>(ended_ns - began_ns));
    counters_.bytes.add(fabric_.carried_bytes - counted_bytes_);
    counted_bytes_ = fabric_.carried_bytes;
    if (setup_.think_ns > 0) {
        pause(draw_.think_ns() * factor_);
        slowed_until_ns_ = board_.now_ns();  // it has been that slow already
    }
    return committed;
}

bool CommitClient::try_transaction() {
    if (slot().fence.load(std::memory_order_relaxed) != 0) may_die_here();
    ++transaction_;
    if (copy_uses_ == 0) {
        may_die_here(at_snapshot);
        snapshot_ = fetch_snapshot();
        copy_uses_ = setup_.snapshot_every;
    }
    --copy_uses_;
    log(RowKind::begin, snapshot_);
    may_die_here(at_read);
    const Cause cause = transact();
    slow_down();
    if (cause == granted) {
        log(RowKind::outcome, cid_);
        return true;
    }
    log(RowKind::abort, cause);
    counters_.aborts[cause].add();
    copy_uses_ = 0;
    give_way();
    return false;
}

void CommitClient::check_phase() const {
    if (board_.phase() >= Phase::stopping) throw Left{};
}

void CommitClient::pause(std::int64_t time_ns) {
    const std::int64_t until_ns = board_.now_ns() + time_ns;
    for (;;) {
        check_phase();
        const std::int64_t left_ns = until_ns - board_.now_ns();
        if (left_ns <= 0) return;
        if (left_ns > 100'000)
            std::this_thread::sleep_for(
                std::chrono::nanoseconds(std::min<std::int64_t>(left_ns - 50'000, 5'000'000)));
        else
            give_way();
    }
}

void CommitClient::stretch_time() {
    pause((board_.now_ns() - slowed_until_ns_) * (factor_ - 1));
    slowed_until_ns_ = board_.now_ns();
}

// Where requests are carried it sleeps for each of them, and others run. To yield on top of that
// would cost it a slice (Linux 6.18: EEVDF moves it to its deadline), once for each abort.
void CommitClient::give_way() {
    if (setup_.crowded && !fabric_.carries()) std::this_thread::yield();
}

void CommitClient::die_here() {
    auto& own = slot();
    if (own.fence.load(std::memory_order_acquire) != 0 && own.pid.load() == 0) {
        // A thread cannot be killed: it leaves by itself.
        log(RowKind::fenced, 0);
        own.gone.store(1, std::memory_order_release);
        throw Left{};
    }
    if (own.die.load(std::memory_order_relaxed) == 0) return;
    log(RowKind::died, 0);
    own.holding.store(1, std::memory_order_release);
    if (own.pid.load() == 0) {
        own.gone.store(1, std::memory_order_release);
        throw Left{};
    }
    for (;;) ::std::this_thread::sleep_for(std::chrono::seconds(1));  // until the signal comes
}

void CommitNode::serve(const KeptConnections* kept) {
    greet();
    std::uint32_t idle = 0;
    while (board_.phase() != Phase::finished) {
        bool worked = fabric_.progress();
        while (fabric_.receive(message_)) {
            handle(message_);
            worked = true;
        }
        auto& state = board_.role(role_).state;
        if (state.load(std::memory_order_relaxed) == RoleState::ready && connected())
            state.store(RoleState::connected, std::memory_order_release);
        if (kept != nullptr && board_.phase() == Phase::running)
            std::exchange(kept, nullptr)->keep_own(role_, true);
        tick();
        if (worked) {
            idle = 0;
        } else if (++idle > fabric_.spins) {
            idle = 0;
            fabric_.sleep(std::chrono::milliseconds(busy() ? 1 : 20));
        }
    }
}

void CommitNode::send(std::uint32_t role, std::span<const std::byte> message) {
    if (peers_.empty()) peers_.assign(setup_.roles(), unknown);
    if (peers_[role] == lost) return;
    try {
        if (peers_[role] == unknown) peers_[role] = fabric_.connect(board_.contact(role));
        fabric_.send(peers_[role], message);
    } catch (const std::runtime_error&) {
        if (role >= setup_.clients) throw;
        peers_[role] = lost;
    }
}

int CommitNode::storage_index() const {
    for (std::size_t server = 0; server < setup_.storage.size(); ++server)
        if (is(setup_.storage[server])) return static_cast<int>(server);
    return -1;
}

}  // namespace numatwin::native
