// RSI as a state machine; the protocol and its remedies: ../reference/one_sided.py.
#include <algorithm>

#include "systems/commits/kernel/commits.hpp"

namespace numatwin {

OneSidedCommits::OneSidedCommits(const CommitSetup& setup, const KeyDraws& keys,
                                 const Durations& think, const Durations& compute,
                                 std::uint64_t seed, std::uint64_t replication)
    : Commits(setup, keys, think, compute, seed, replication),
      vector_(clients(), setup.timestamp_bits),
      own_(clients()),
      newest_(static_cast<std::size_t>(clients()) * setup.reads),
      word_(static_cast<std::size_t>(clients()) * setup.updates),
      fenced_(setup.node_machine.size()),
      fence_of_(clients(), none) {
    if (vector_.lap() == 0) throw std::invalid_argument("commit setup: too few timestamp bits");
    const bool remedies =
        setup.lease_ps != CommitSetup::none || setup.skip_after_ps != CommitSetup::none;
    if (sent().size() != (remedies ? revoked : bit_done) + 1)
        throw std::invalid_argument("commit setup: wrong costs");
    for (std::uint32_t c = 0; c < clients(); ++c) own_[c].next_cid = c + 1;
}

// Verbs: a client's thread posts a phase's requests, and the client goes on when all are complete.

void OneSidedCommits::post(std::uint32_t client, Time send, std::uint32_t phase) {
    client_[client].phase = phase;
    if (!setup_.doorbell && phase != setting_bit) {
        own_[client].batch.clear();
        own_[client].posted = 0;
        own_[client].answered = own_[client].all_posted = false;
        ring(client);
        // Else its lease was over.
        if (client_[client].phase == phase) post_next(client);
        return;
    }
    if (send > 0) return work(client, send, batch_posted, client);
    if (!has_stopped(client)) ring(client);
}

// Without a doorbell each request is on its way before the next one is posted.
void OneSidedCommits::post_next(std::uint32_t client) {
    OwnClient& own = own_[client];
    if (own.posted == own.batch.size()) {
        own.all_posted = true;
        return own.answered ? go_on(client) : void();
    }
    const std::uint32_t type = messages_[own.batch[own.posted]].type;
    if (const Time send = send_ps(type); send > 0) return work(client, send, one_posted, client);
    was_posted(client);
}

void OneSidedCommits::was_posted(std::uint32_t client) {
    if (has_stopped(client)) return;
    const std::uint32_t at = own_[client].batch[own_[client].posted++];
    clock.schedule(clock.now(), posting_goes_on, client);
    carry(at);
}

void OneSidedCommits::hand(std::uint32_t client, std::uint32_t at) {
    if (setup_.doorbell) return carry(at);
    own_[client].batch.push_back(at);
}

std::uint32_t OneSidedCommits::request(std::uint32_t client, std::uint32_t type, std::uint32_t to) {
    const std::uint32_t at = new_message(type, client, to);
    messages_[at].client = client;
    messages_[at].number = client_[client].transaction;
    return at;
}

// The requests of the phase: the card has them all at once, or one after the other.
void OneSidedCommits::ring(std::uint32_t client) {
    Client& self = client_[client];
    OwnClient& own = own_[client];
    switch (self.phase) {
        case fetching:
            self.left = 1;
            return hand(client, request(client, snapshot_read, timestamps()));
        case reading:
            self.left = setup_.reads;
            for (std::uint32_t slot = 0; slot < setup_.reads; ++slot) {
                const std::int64_t key = read_key(client, slot);
                const std::uint32_t at = request(client, read, storage(server_of(key)));
                messages_[at].slot = slot;
                messages_[at].key = key;
                hand(client, at);
            }
            return;
        case locking:
            self.left = setup_.updates + own.claim_requested;
            for (std::uint32_t slot = 0; slot < setup_.updates; ++slot) {
                const std::int64_t key = read_key(client, slot);
                const std::uint32_t at = request(client, cas, storage(server_of(key)));
                messages_[at].slot = slot;
                messages_[at].key = key;
                messages_[at].cid = version_read(client, slot);
                messages_[at].since = own.locking_since;
                hand(client, at);
            }
            if (!own.claim_requested) return;
            [[fallthrough]];
        case claiming: {
            if (self.phase == claiming) self.left = 1;
            const std::uint32_t at = request(client, claim, timestamps());
            messages_[at].cid = own.next_cid;
            return hand(client, at);
        }
        case writing: {
            if (setup_.lease_ps != CommitSetup::none &&
                clock.now() - own.locking_since > setup_.lease_ps / 2) {
                own.cause = cause_lease;
                return undo(client);
            }
            self.left = writes();
            const std::int64_t cid = own.next_cid;
            for (std::uint32_t slot = 0; slot < writes(); ++slot)
                log(RowKind::write, client, written_key(client, slot), cid);
            for (std::uint32_t slot = 0; slot < writes(); ++slot) {
                const std::int64_t key = written_key(client, slot);
                const std::uint32_t at = request(client, write, storage(server_of(key)));
                messages_[at].key = key;
                messages_[at].cid = cid;
                hand(client, at);
            }
            return;
        }
        case unlocking:
        case breaking: {
            const bool breaks = self.phase == breaking;
            const auto concerns = [&](const Word& w) {
                return breaks ? w.expired : w.status == granted;
            };
            self.left = 0;
            for (std::uint32_t slot = 0; slot < setup_.updates; ++slot)
                self.left += concerns(word(client, slot));
            for (std::uint32_t slot = 0; slot < setup_.updates; ++slot) {
                if (!concerns(word(client, slot))) continue;
                const std::int64_t key = read_key(client, slot);
                const std::uint32_t at =
                    request(client, breaks ? break_lock : unlock, storage(server_of(key)));
                messages_[at].key = key;
                messages_[at].owner = breaks ? word(client, slot).owner : client;
                hand(client, at);
            }
            return;
        }
        case setting_bit:
            return bit_posted(client);
        default:
            throw std::logic_error("a client in no phase");
    }
}

// What a signaled request does to memory; its answer goes back at once.
void OneSidedCommits::at_memory(std::uint32_t at) {
    Message& f = messages_[at];
    f.refused = is_fenced(f.receiver, f.client);
    if (!f.refused) {
        switch (f.type) {
            case snapshot_read:
                f.cid = vector_.highest();
                f.newest = vector_.top();
                break;
            case read: {
                const std::uint32_t record = record_.find(f.key);
                f.cid = record_.visible(record, client_[f.client].snapshot);
                f.newest = record_.newest(record);
                break;
            }
            case cas: {
                const std::uint32_t record = record_.find(f.key);
                Records::Lock& lock = record_.lock(record);
                if (lock.owner != Records::free) {
                    f.status = cause_locked;
                } else if (record_.newest(record) != f.cid) {
                    f.status = cause_conflict;
                } else {
                    f.status = granted;
                    lock = {f.client, f.since};
                }
                f.owner = lock.owner;
                f.since = lock.since;
                break;
            }
            case write:
                if (f.key < setup_.records) record_.install(record_.find(f.key), f.cid);
                Cluster::log(RowKind::install, f.client, f.number, f.key, f.cid);
                break;
            case unlock:
                record_.unlock(record_.find(f.key), f.owner);
                break;
            case break_lock:
                if (record_.unlock(record_.find(f.key), f.owner))
                    Cluster::log(RowKind::broken, f.client, f.number, f.key, f.owner);
                break;
            default:  // claim
                f.status =
                    static_cast<std::int8_t>(vector_.claim(f.cid) ? granted : cause_timestamps);
                f.newest = vector_.top();
        }
    }
    send_message(answer(at, f.type + 1));
}

// An answer has come; with the last one, the client goes on.
void OneSidedCommits::complete(std::uint32_t at) {
    const Message& f = messages_[at];
    const std::uint32_t client = f.client;
    if (f.refused) {
        free_message(at);
        return learn_of_fence(client);
    }
    OwnClient& own = own_[client];
    switch (f.type) {
        case snapshot_data:
            own.fetched = f.cid;
            own.top = f.newest;
            break;
        case record:
            version_read(client, f.slot) = f.cid;
            newest_[client * setup_.reads + f.slot] = f.newest;
            break;
        case cas_result:
            word(client, f.slot) = {f.status, f.owner, f.since, false};
            break;
        case claim_result:
            own.claimed = f.status == granted;
            own.top = f.newest;
            break;
        default:
            break;
    }
    free_message(at);
    if (--client_[client].left > 0) return;
    if (setup_.doorbell) return wake(client, client_[client].phase);
    clock.schedule(clock.now(), all_answered, client);
}

// A transaction.

void OneSidedCommits::fetch_snapshot(std::uint32_t client) {
    post(client, send_ps(snapshot_read), fetching);
}

void OneSidedCommits::fetched(std::uint32_t client) {
    OwnClient& own = own_[client];
    own.unsignaled = 0;
    if (own.fetched != own.known) {
        own.known = own.fetched;
        own.since = clock.now();
    } else if (setup_.skip_after_ps != CommitSetup::none &&
               clock.now() - own.since >= setup_.skip_after_ps) {
        return complain(client, -1);
    }
    fetch_ended(client);
}

void OneSidedCommits::fetch_ended(std::uint32_t client) {
    if (own_[client].polls) {
        own_[client].polls = false;
        return computed(client);
    }
    client_[client].snapshot = own_[client].known;
    begun(client, true);
}

void OneSidedCommits::transact(std::uint32_t client) {
    post(client, setup_.reads * send_ps(read), reading);
}

void OneSidedCommits::resume(std::uint32_t client) {
    OwnClient& own = own_[client];
    switch (client_[client].phase) {
        case fetching:
            return fetched(client);
        case reading:
            own.cause = granted;
            if (!log_reads(client)) own.cause = cause_snapshot;
            for (std::uint32_t slot = 0; own.cause == granted && slot < setup_.updates; ++slot)
                if (newest_[client * setup_.reads + slot] > client_[client].snapshot)
                    own.cause = cause_conflict;
            if (own.cause != granted) return give_up(client);
            return compute(client, compute_.draw(client_[client].think), computing);
        case computing:
            return computed(client);
        case polling:
            own.polls = true;
            return fetch_snapshot(client);
        case locking:
            return locked(client);
        case claiming:
            note_claim(client);
            return claim_or_write(client);
        case writing:
            own.claimed = false;
            return set_bit(client, RowKind::commit);
        case unlocking:
            own.reported = 0;
            for (std::uint32_t slot = 0; slot < setup_.updates; ++slot)
                word(client, slot).expired = has_expired(client, slot);
            return complain_about_locks(client);
        case breaking:
            return give_up(client);
        case setting_bit:
            return after_bit(client);
        default:
            throw std::logic_error("a client in no phase");
    }
}

void OneSidedCommits::computed(std::uint32_t client) {
    if (own_[client].next_cid > own_[client].known + reach())
        return pause(client, setup_.poll_ps, polling);
    lock_all(client);
}

void OneSidedCommits::lock_all(std::uint32_t client) {
    OwnClient& own = own_[client];
    own.locking_since = clock.now();
    own.claim_requested = setup_.skip_after_ps != CommitSetup::none;
    if (setup_.updates == 0 && !own.claim_requested) return claim_or_write(client);
    post(client, setup_.updates * send_ps(cas) + (own.claim_requested ? send_ps(claim) : 0),
         locking);
}

void OneSidedCommits::locked(std::uint32_t client) {
    OwnClient& own = own_[client];
    if (own.claim_requested) note_claim(client);
    for (std::uint32_t slot = 0; slot < setup_.updates; ++slot)
        own.cause = std::max(own.cause, word(client, slot).status);
    claim_or_write(client);
}

void OneSidedCommits::note_claim(std::uint32_t client) {
    OwnClient& own = own_[client];
    own.unsignaled = 0;
    if (!own.claimed) own.next_cid = vector_.next_of(client, own.top);
}

void OneSidedCommits::claim_or_write(std::uint32_t client) {
    OwnClient& own = own_[client];
    if (own.cause == granted && own.claim_requested && !own.claimed) {
        if (own.next_cid <= own.known + reach()) return post(client, send_ps(claim), claiming);
        own.cause = cause_timestamps;
    }
    if (own.cause == granted) return post(client, writes() * send_ps(write), writing);
    undo(client);
}

void OneSidedCommits::undo(std::uint32_t client) {
    std::uint32_t held = 0;
    for (std::uint32_t slot = 0; slot < setup_.updates; ++slot)
        held += word(client, slot).status == granted;
    if (held > 0) return post(client, held * send_ps(unlock), unlocking);
    client_[client].phase = unlocking;
    resume(client);
}

void OneSidedCommits::give_up(std::uint32_t client) {
    OwnClient& own = own_[client];
    own.claimed = false;
    const bool keeps = setup_.in_step && own.next_cid > own.known + clients() && !lags(own);
    if (own.next_cid <= own.known + reach() && !keeps) return set_bit(client, RowKind::rolled_back);
    end_aborted(client, own.cause);
}

// The bit.

void OneSidedCommits::set_bit(std::uint32_t client, RowKind row) {
    OwnClient& own = own_[client];
    own.bit_row = row;
    own.bit_cid = own.next_cid;
    own.next_cid += clients();
    while (lags(own)) own.next_cid += clients();
    own.bit_end = own.next_cid;
    post(client, send_ps(bit), setting_bit);
}

void OneSidedCommits::bit_posted(std::uint32_t client) {
    OwnClient& own = own_[client];
    const bool signaled = ++own.unsignaled == setup_.send_queue;
    if (signaled) own.unsignaled = 0;
    const std::uint32_t at = request(client, bit, timestamps());
    messages_[at].cid = own.bit_cid;
    messages_[at].row = own.bit_row;
    messages_[at].signaled = signaled;
    messages_[at].cid_end = own.bit_end;
    // The client goes on before what comes of the message at the same time, as in the reference.
    if (!signaled) wake(client, setting_bit);
    carry(at);
}

void OneSidedCommits::after_bit(std::uint32_t client) {
    const OwnClient& own = own_[client];
    if (own.bit_row == RowKind::commit) return end_committed(client, own.bit_cid);
    end_aborted(client, own.cause);
}

// Events and messages.

void OneSidedCommits::happened_to_protocol(const Event& event) {
    if (event.kind == batch_posted) {
        if (!has_stopped(event.subject)) ring(event.subject);
        return;
    }
    if (event.kind == one_posted) return was_posted(event.subject);
    if (event.kind == posting_goes_on) return post_next(event.subject);
    if (event.kind == all_answered) {
        own_[event.subject].answered = true;
        return own_[event.subject].all_posted ? go_on(event.subject) : void();
    }
    Fence& fence = fence_[fence_of_[event.subject]];
    if (event.kind == fence_done) {
        fence.known = true;
        for (const std::int64_t cid : vector_.retire(event.subject))
            Cluster::log(RowKind::commit, event.subject, -1, cid);
        if (!fence.waiting.empty()) clock.schedule(clock.now(), fence_known, event.subject);
        return end_complaint(fence.complaint);
    }
    for (const std::uint32_t at : fence.waiting) end_complaint(at);
    fence.waiting.clear();
}

void OneSidedCommits::delivered(std::uint32_t at) {
    Message& f = messages_[at];
    const std::uint32_t client = f.client;
    switch (f.type) {
        case snapshot_read:
        case read:
        case cas:
        case write:
        case unlock:
        case claim:
        case break_lock:
            return at_memory(at);
        case bit:
            f.refused = is_fenced(f.receiver, client);
            for (std::int64_t cid = f.cid; !f.refused && cid < f.cid_end; cid += clients())
                if (vector_.set(cid))
                    Cluster::log(cid == f.cid ? f.row : RowKind::rolled_back, client, f.number,
                                 cid);
            if (!f.signaled) return free_message(at);
            return send_message(answer(at, bit_done));
        case bit_done: {
            const bool refused = f.refused;
            free_message(at);
            return refused ? learn_of_fence(client) : after_bit(client);
        }
        case complaint:
            return handle_complaint(at);
        case complaint_done: {
            const bool refused = f.refused, about_snapshot = f.owner < 0;
            free_message(at);
            if (refused) return learn_of_fence(client);
            if (!about_snapshot) return complain_about_locks(client);
            own_[client].since = clock.now();
            return fetch_ended(client);
        }
        case revoke:
            if (f.receiver != timestamps()) fenced_[f.receiver - clients()].push_back(client);
            return send_message(answer(at, revoked));
        case revoked:
            free_message(at);
            if (--fence_[fence_of_[client]].left == 0)
                clock.schedule(clock.now(), fence_done, client);
            return;
        default:
            return complete(at);
    }
}

}  // namespace numatwin
