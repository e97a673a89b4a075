#include "systems/commits/one_sided_client.hpp"

#include <algorithm>
#include <thread>

namespace numatwin::native {

OneSidedClient::OneSidedClient(const RunSetup& setup, Board& board, std::uint32_t client,
                               Fabric& fabric)
    : CommitClient(setup, board, client, fabric),
      bits_(setup.clients, setup.timestamp_bits, setup.timestamps_at()),
      vector_(TimestampBits::head_bytes + bits_.vector_bytes()),
      seen_(std::size_t{setup.reads} * setup.block_bytes()),
      written_(writes() * setup.block_bytes()),
      address_(std::size_t{setup.reads} + setup.inserts),
      second_(setup.reads),
      wanted_(setup.updates),
      words_(setup.updates),
      locks_(setup.updates),
      addends_(setup.send_queue),
      next_cid_(std::int64_t{client} + 1) {}

void OneSidedClient::connect() {
    for (std::size_t server = 0; server < setup_.storage.size(); ++server)
        servers_.push_back(connect_to(setup_.storage_role(server)));
    timestamps_ = connect_to(setup_.timestamp_role());
    // A first look at each, so that connections stand before the run begins.
    Pending pending;
    for (const Fabric::Peer server : servers_)
        fabric_.get(server, 0, seen_.data(), word_bytes, pending);
    fabric_.get(timestamps_, bits_.floor_at(), vector_.data(), word_bytes, pending);
    fabric_.wait(pending);
    if (remedied()) complain(Complaint::about_nothing);
}

Cause OneSidedClient::transact() {
    if (const Cause cause = prepare(); cause != granted) return abort(cause);
    slow_down();
    wait_for_timestamps();
    return commit();
}

Cause OneSidedClient::prepare() {
    for (std::size_t k = 0; k < setup_.reads; ++k) address_[k] = address_of(draw_.reads()[k]);
    for (std::size_t k = 0; k < setup_.inserts; ++k)
        address_[setup_.reads + k] = address_of(draw_.creates()[k]);
    if (const Cause cause = read_all(); cause != granted) return cause;
    if (const Cause cause = check_reads(); cause != granted) return cause;
    make_blocks();
    for (std::size_t k = 0; k < setup_.updates; ++k) {
        wanted_[k] = LockWord::unlocked(seen(k).cid(0, leases()));
        words_[k] = wanted_[k] | LockWord::lock_bit;
        locks_[k].status = granted;  // until a CAS fails
    }
    bit_cid_ = next_cid_;
    bit_ = bits_.bit(bit_cid_);
    return granted;
}

Cause OneSidedClient::commit() {
    if (leases()) locking_ns_ = board_.now_ns();
    may_die_here(at_lock);
    Cause cause = lock_all();
    if (claims()) cause = claim_all(cause);
    if (cause == granted) may_die_here(at_write);
    slow_down();
    if (cause == granted) cause = install();
    if (cause == granted) return granted;
    unlock_all();
    // First the bit: the run would stand at a claimed timestamp while this waits for an answer.
    abort(cause);
    if (leases()) break_expired();
    return cause;
}

// Blocks that change while they are read are read again; who is locked for longer counts as such.
Cause OneSidedClient::read_all() {
    const auto& keys = draw_.reads();
    Pending pending;
    std::uint64_t unread =
        keys.size() == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << keys.size()) - 1;
    for (int look_number = 0; unread != 0 && look_number < looks_max; ++look_number) {
        if (look_number > 0) give_way();
        for (std::size_t k = 0; k < keys.size(); ++k) {
            if ((unread >> k & 1) == 0) continue;
            const auto [server, at] = address_[k];
            fabric_.get(server, at, &seen_[k * setup_.block_bytes()], setup_.block_bytes(),
                        pending);
            count(OneSided::read);
        }
        fabric_.order();
        for (std::size_t k = 0; k < keys.size(); ++k) {
            if ((unread >> k & 1) == 0) continue;
            const auto [server, at] = address_[k];
            fabric_.get(server, at, reinterpret_cast<std::byte*>(&second_[k]), word_bytes, pending);
        }
        fabric_.wait(pending);
        for (std::size_t k = 0; k < keys.size(); ++k)
            if ((unread >> k & 1) != 0 && look(k, second_[k])) unread &= ~(std::uint64_t{1} << k);
    }
    if (unread == 0) return granted;
    for (std::size_t k = 0; k < setup_.updates; ++k) {
        const bool locked = (unread >> k & 1) != 0 && LockWord::is_locked(second_[k]);
        locks_[k] = {locked ? cause_locked : cause_conflict, second_[k]};
    }
    if (leases()) break_expired();
    return cause_locked;
}

// Whether the block at hand is whole.
bool OneSidedClient::look(std::size_t read, std::uint64_t second_word) {
    if (setup_.sabotage == Sabotage::torn_reads) return true;
    const std::uint64_t first_word = seen(read).word();
    return first_word == second_word && !LockWord::is_locked(first_word);
}

Cause OneSidedClient::check_reads() {
    Cause cause = granted;
    for (std::size_t k = 0; k < setup_.reads; ++k) {
        const RecordBlock found = seen(k);
        const int at = found.visible(snapshot_, leases());
        const std::int64_t cid = at < 0 ? -1 : found.cid(static_cast<std::uint32_t>(at), leases());
        log(RowKind::read, draw_.reads()[k], cid);
        if (at < 0) cause = cause_snapshot;
        // Under a trace writers stamp their version on all of a payload but its first word.
        if (at >= 0 && board_.traced()) {
            const auto payload = found.payload(static_cast<std::uint32_t>(at));
            for (std::size_t word = 1; word < payload.size() / word_bytes; ++word) {
                std::int64_t stamp;
                std::memcpy(&stamp, &payload[word * word_bytes], word_bytes);
                if (stamp == cid) continue;
                counters().torn.add();
                break;
            }
        }
    }
    if (cause != granted || setup_.sabotage == Sabotage::no_validation) return cause;
    for (std::size_t k = 0; k < setup_.updates; ++k)
        if (seen(k).cid(0, leases()) > snapshot_) return cause_conflict;
    return granted;
}

// The client's own work: an update takes one from the stock, the first word of the record.
void OneSidedClient::make_blocks() {
    for (std::size_t k = 0; k < writes(); ++k) {
        std::byte* memory = &written_[k * setup_.block_bytes()];
        RecordBlock made = block(memory);
        if (k < setup_.updates) {
            std::memcpy(memory, &seen_[k * setup_.block_bytes()], setup_.block_bytes());
            made.shift(leases());
            std::int64_t stock;
            std::memcpy(&stock, made.payload(0).data(), word_bytes);
            --stock;
            std::memcpy(made.payload(0).data(), &stock, word_bytes);
        } else {
            std::memset(memory, 0, setup_.block_bytes());
            const std::int64_t number = written_key(k);
            std::memcpy(made.payload(0).data(), &number, word_bytes);
        }
    }
}

// CAS per record, all at once: validates and locks. A processor's own CAS waits for all that it has
// stored before: so there is little between them.
Cause OneSidedClient::lock_all() {
    Pending pending;
    if (leases())
        for (std::size_t k = 0; k < setup_.updates; ++k)
            words_[k] = LockWord::leased(LockWord::cid(wanted_[k], true), client_, locking_ns_);
    if (setup_.sabotage == Sabotage::no_validation) want_what_stands();
    for (std::size_t k = 0; k < setup_.updates; ++k) {
        const auto [server, at] = address_[k];
        fabric_.compare_and_swap(server, at, wanted_[k], words_[k], pending);
    }
    count(OneSided::cas, setup_.updates);
    fabric_.wait(pending);
    // Word by word: to read several at a time would wait until they have left the store queue.
    for (std::size_t k = 0; k < setup_.updates; ++k)
        if (words_[k] != wanted_[k]) return cause_of_refusal();
    return granted;
}

// A deliberate mistake: whatever version stands there is taken.
void OneSidedClient::want_what_stands() {
    for (std::size_t k = 0; k < setup_.updates; ++k) {
        const auto [server, at] = address_[k];
        wanted_[k] = read_word(server, at) & ~LockWord::lock_bit;
    }
}

// What each CAS met, where not all of them succeeded.
Cause OneSidedClient::cause_of_refusal() {
    Cause cause = granted;
    for (std::size_t k = 0; k < setup_.updates; ++k) {
        const std::uint64_t found = words_[k];
        auto& status = locks_[k].status;
        status = granted;
        if (found != wanted_[k])
            status = LockWord::is_locked(found) ? cause_locked : cause_conflict;
        locks_[k].word = found;
        cause = std::max(cause, status);
    }
    return cause;
}

// From here to the bit a client is not shut out: whoever fences it waits for the end of this. So a
// fenced client's WRITEs have landed, all of them, or never will.
Cause OneSidedClient::install() {
    auto& own = slot();
    own.installing.store(1, std::memory_order_relaxed);  // for who reports a kill meanwhile
    if (leases()) {
        // seq_cst: either this sees the fence, or who fences sees this.
        own.installing.store(1, std::memory_order_seq_cst);
        const bool fenced = own.fence.load(std::memory_order_seq_cst) != 0;
        if (fenced || board_.now_ns() - locking_ns_ > setup_.lease_ns / 2) {
            own.installing.store(0, std::memory_order_release);
            if (fenced) may_die_here();
            return cause_lease;
        }
    }
    cid_ = next_cid_;
    if (board_.traced()) trace_writes();
    if (setup_.sabotage == Sabotage::bit_before_write) {
        set_bit(RowKind::commit);
        for (int k = 0; k < 20; ++k) std::this_thread::yield();
        write_blocks();
    } else {
        write_blocks();
        may_die_here(at_bit);
        set_bit(RowKind::commit);
    }
    counters().updates.add(setup_.updates);
    own.installing.store(0, std::memory_order_release);
    return granted;
}

// Decided. All of a payload but its first word tells the version, so that a torn read shows.
void OneSidedClient::trace_writes() {
    for (std::size_t k = 0; k < writes(); ++k) {
        log(RowKind::write, written_key(k), cid_);
        const auto payload = block(&written_[k * setup_.block_bytes()]).payload(0);
        for (std::size_t at = word_bytes; at < payload.size(); at += word_bytes)
            std::memcpy(&payload[at], &cid_, word_bytes);
    }
}

void OneSidedClient::write_blocks() {
    Pending pending;
    const std::size_t bytes = setup_.block_bytes(), count_of_writes = writes();
    std::byte* made = written_.data();
    for (std::size_t k = 0; k < count_of_writes; ++k, made += bytes) {
        block(made).set_word(LockWord::unlocked(cid_));
        const auto [server, at] = written_at(k);
        // While the lock is held: the order of these rows is that of the versions.
        if (board_.traced()) log(RowKind::install, written_key(k), cid_);
        fabric_.publish(server, at, made, bytes);
    }
    count(OneSided::write, writes());
    for (const Fabric::Peer server : servers_) fabric_.flush(server, pending);
    fabric_.wait(pending);
}

void OneSidedClient::unlock_all() {
    Pending pending;
    for (std::size_t k = 0; k < setup_.updates; ++k) {
        if (locks_[k].status != granted) continue;
        const auto [server, at] = address_[k];
        words_[k] = wanted_[k];
        if (leases()) {  // it may have been broken
            wanted_[k] = LockWord::leased(LockWord::cid(words_[k], true), client_, locking_ns_);
            fabric_.compare_and_swap(server, at, wanted_[k], words_[k], pending);
        } else {
            fabric_.put(server, at, reinterpret_cast<const std::byte*>(&words_[k]), word_bytes);
            fabric_.flush(server, pending);
        }
        count(OneSided::unlock);
    }
    fabric_.wait(pending);
}

// Has the owners of locks that outlived their lease fenced, then frees these.
void OneSidedClient::break_expired() {
    std::vector<std::uint32_t> owners;
    for (std::size_t k = 0; k < setup_.updates; ++k) {
        const auto [status, word] = locks_[k];
        if (status != cause_locked || LockWord::owner(word) == client_ ||
            LockWord::age_ns(word, board_.now_ns()) <= setup_.lease_ns)
            continue;
        const std::uint32_t owner = LockWord::owner(word);
        if (std::find(owners.begin(), owners.end(), owner) == owners.end()) {
            owners.push_back(owner);
            complain(owner);
        }
        const auto [server, at] = address_[k];
        const std::uint64_t expected = word;
        std::uint64_t freed = LockWord::unlocked(LockWord::cid(word, true));
        Pending pending;
        fabric_.compare_and_swap(server, at, expected, freed, pending);
        count(OneSided::break_lock);
        fabric_.wait(pending);
        if (freed == expected) log(RowKind::broken, draw_.reads()[k], owner);
    }
}

void OneSidedClient::complain(std::int64_t owner) {
    const Complaint complaint{static_cast<std::uint32_t>(OneSided::complaint), client_, owner};
    fabric_.send(timestamps_, {reinterpret_cast<const std::byte*>(&complaint), sizeof complaint});
    if (board_.phase() == Phase::running) count(OneSided::complaint);
    while (!fabric_.receive(message_)) {
        if (board_.phase() != Phase::starting) check_phase();
        may_die_here();
        fabric_.sleep(std::chrono::milliseconds(5));
    }
}

}  // namespace numatwin::native
