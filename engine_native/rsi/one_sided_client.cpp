#include "rsi/one_sided_client.hpp"

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

std::int64_t OneSidedClient::fetch_snapshot() {
    const std::int64_t highest = setup_.snapshot_bytes == 0 ? look_at_vector() : look_at_words();
    if (claims()) {
        const std::int64_t now_ns = board_.now_ns();
        if (highest != known_) {
            since_ns_ = now_ns;
        } else if (now_ns - since_ns_ >= setup_.skip_after_ns) {
            complain(Complaint::about_snapshot);
            since_ns_ = board_.now_ns();
        }
    }
    known_ = highest;
    lags_below_ = std::min(top_, known_ + bits_.reach()) - setup_.clients;
    if (remedied()) raise_floor();
    return highest;
}

// With remedies the leading run may pass a timestamp that its owner has not set, more than a lap
// while that sleeps; so what the bits mean depends on the floor: no bit is set more than a lap
// above it. It must not have moved meanwhile.
std::int64_t OneSidedClient::look_at_vector() {
    Pending pending;
    auto* floor = vector_.data();
    std::uint64_t floor_before = 0, floor_after = 0;
    do {
        if (remedied()) {
            fabric_.get(timestamps_, bits_.floor_at(), floor, word_bytes, pending);
            fabric_.order();
        }
        fabric_.get(timestamps_, bits_.bits_at(), vector_.data() + TimestampBits::head_bytes,
                    bits_.vector_bytes(), pending);
        count(OneSided::snapshot_read);
        if (remedied()) {
            fabric_.order();
            fabric_.get(timestamps_, bits_.floor_at(), reinterpret_cast<std::byte*>(&floor_after),
                        word_bytes, pending);
        }
        fabric_.wait(pending);
        std::memcpy(&floor_before, floor, word_bytes);
    } while (remedied() && floor_before != floor_after);
    if (remedied()) floor_ = static_cast<std::int64_t>(floor_before);
    const auto at_hand = [this](std::uint64_t word) {
        std::uint64_t found;
        std::memcpy(&found, &vector_[TimestampBits::head_bytes + word * word_bytes], word_bytes);
        return found;
    };
    if (!remedied())
        top_ = bits_.top(
            next_cid_, known_ + bits_.reach(), [](std::uint64_t) { return true; }, at_hand);
    return bits_.run_end(std::max(known_, floor_), at_hand);
}

// From where the run ended the last time, as many words at a time as the scenario says.
std::int64_t OneSidedClient::look_at_words() {
    const std::uint64_t words = bits_.vector_bytes() / word_bytes;
    const std::uint64_t each = std::min<std::uint64_t>(
        std::max<std::uint64_t>(setup_.snapshot_bytes / word_bytes, 1), words);
    std::uint64_t first = 0, end = 0;  // those at hand
    Pending pending;
    std::uint64_t before = 0, after = 0;
    std::int64_t found;
    do {
        end = first;
        if (remedied()) {
            fabric_.get(timestamps_, bits_.floor_at(), reinterpret_cast<std::byte*>(&before),
                        word_bytes, pending);
            fabric_.wait(pending);
        }
        const std::int64_t from = std::max(known_, static_cast<std::int64_t>(before));
        found = bits_.run_end(from, [&](std::uint64_t word) {
            if (word < first || word >= end) {
                first = word;
                end = std::min(word + each, words);
                fabric_.get(timestamps_, bits_.bits_at() + first * word_bytes, vector_.data(),
                            (end - first) * word_bytes, pending);
                fabric_.wait(pending);
                count(OneSided::snapshot_read);
            }
            std::uint64_t value;
            std::memcpy(&value, &vector_[(word - first) * word_bytes], word_bytes);
            return value;
        });
        if (remedied()) {
            fabric_.order();
            fabric_.get(timestamps_, bits_.floor_at(), reinterpret_cast<std::byte*>(&after),
                        word_bytes, pending);
            fabric_.wait(pending);
        }
    } while (remedied() && before != after);
    if (remedied()) {
        floor_ = static_cast<std::int64_t>(before);
        return found;
    }
    top_ = bits_.top(
        next_cid_, known_ + bits_.reach(),
        [&](std::uint64_t word) { return word >= first && word < end; },
        [&](std::uint64_t word) {
            std::uint64_t value;
            std::memcpy(&value, &vector_[(word - first) * word_bytes], word_bytes);
            return value;
        });
    return found;
}

// Who sees the run well ahead of the floor raises this: timestamps end a lap above it, and the
// server's thread may be away for longer than a lap takes. Where the CAS fails another one did.
void OneSidedClient::raise_floor() {
    if (known_ - floor_ < std::max<std::int64_t>(bits_.lap() / 8, 1)) return;
    const auto expected = static_cast<std::uint64_t>(floor_);
    auto word = static_cast<std::uint64_t>(known_);
    Pending pending;
    fabric_.compare_and_swap(timestamps_, bits_.floor_at(), expected, word, pending);
    fabric_.wait(pending);
    floor_ = word == expected ? known_ : static_cast<std::int64_t>(word);
}

Cause OneSidedClient::transact() {
    if (const Cause cause = prepare(); cause != granted) return abort(cause);
    drag();
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
    Cause cause = lock_all();
    if (claims()) cause = claim_all(cause);
    if (cause == granted) may_die_here();
    drag();
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

void OneSidedClient::wait_for_timestamps() {
    while (!owns_timestamp()) {
        pause(setup_.poll_ns);
        fetch_snapshot();
    }
    if (leases() && next_cid_ > LockWord::leased_cid_max) {
        board_.fail(client_, "more timestamps than a leased lock's word holds: a shorter run");
        throw Left{};
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
    Pending pending;
    for (std::size_t k = 0; k < setup_.updates; ++k) {
        const auto [server, at] = address_[k];
        fabric_.get(server, at, reinterpret_cast<std::byte*>(&wanted_[k]), word_bytes, pending);
        fabric_.wait(pending);
        wanted_[k] &= ~LockWord::lock_bit;
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

// CAS of the timestamp's claim; where the server has skipped it, the first one that it has not.
Cause OneSidedClient::claim_all(Cause cause) {
    while (claims() && !claimed_) {
        if (!owns_timestamp()) return std::max(cause, cause_timestamps);
        Pending pending;
        if (!claim_word_ || claim_at_ != bits_.claim_at(next_cid_)) {
            claim_at_ = bits_.claim_at(next_cid_);
            std::uint64_t word = 0;
            fabric_.get(timestamps_, claim_at_, reinterpret_cast<std::byte*>(&word), word_bytes,
                        pending);
            fabric_.wait(pending);
            claim_word_ = word;
        }
        if (bits_.is_claimed(*claim_word_, next_cid_)) {
            next_cid_ += setup_.clients;
            continue;
        }
        const std::uint64_t expected = *claim_word_;
        std::uint64_t word = bits_.claimed(expected, next_cid_);
        fabric_.compare_and_swap(timestamps_, claim_at_, expected, word, pending);
        count(OneSided::claim);
        fabric_.wait(pending);
        claimed_ = word == expected;
        claim_word_ = claimed_ ? bits_.claimed(expected, next_cid_) : word;
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

void OneSidedClient::set_bit(RowKind kind) {
    const std::int64_t cid = next_cid_;
    next_cid_ += setup_.clients;
    claimed_ = false;
    log(kind, cid);
    TimestampBits::Bit bit = bit_cid_ == cid ? bit_ : bits_.bit(cid);
    if (lags()) [[unlikely]] {
        // Those of one word together.
        for (; lags(); next_cid_ += setup_.clients) {
            const TimestampBits::Bit more = bits_.bit(next_cid_);
            log(RowKind::rolled_back, next_cid_);
            if (more.at != bit.at) {
                add_bits(bit);
                bit = more;
            } else {
                bit.addend += more.addend;
            }
        }
    }
    add_bits(bit);
}

// Unsignaled, but for the last of each send_queue: its completion vouches for all.
void OneSidedClient::add_bits(const TimestampBits::Bit& bit) {
    auto& addend = addends_[unsignaled_];
    addend = bit.addend;
    fabric_.add(timestamps_, bit.at, addend);
    counters().messages[static_cast<std::size_t>(OneSided::bit)].add();
    if (++unsignaled_ < setup_.send_queue) return;
    unsignaled_ = 0;
    Pending pending;
    fabric_.flush(timestamps_, pending);
    fabric_.wait(pending);
    counters().messages[static_cast<std::size_t>(OneSided::bit_done)].add();
}

// An abort's timestamp is used up only where the run may stand at it (and its bit is not still one
// of the lap before, nor, where timestamps are claimed, unclaimed): else the next transaction takes
// it. Who used up one with each abort would get ahead of a client that waited for a processor as
// fast as that one, which aborts on old snapshots, catches up; and then both abort for ever.
Cause OneSidedClient::abort(Cause cause) {
    if (!claimed_ && next_cid_ > known_ + setup_.clients && !lags()) return cause;
    if (claims() && !claimed_) claim_all(granted);
    if (owns_timestamp() && (!claims() || claimed_)) set_bit(RowKind::rolled_back);
    return cause;
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
