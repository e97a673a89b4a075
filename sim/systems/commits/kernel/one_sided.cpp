// RSI as a state machine; the protocol and its remedies: ../reference/one_sided.py.
#include "systems/commits/kernel/one_sided.hpp"

namespace numatwin {

OneSidedCommits::OneSidedCommits(const CommitSetup& setup, const KeyDraws& keys,
                                 const Durations& think, const Durations& compute,
                                 std::uint64_t seed, std::uint64_t replication)
    : Commits(setup, keys, think, compute, seed, replication),
      vector_(clients(), setup.timestamp_bits),
      own_(clients()),
      newest_(static_cast<std::size_t>(clients()) * setup.reads),
      word_(static_cast<std::size_t>(clients()) * words()),
      fenced_(setup.node_machine.size()),
      fence_of_(clients(), none),
      installed_(setup.undoes ? setup.storage.size() * clients() : 0) {
    if (vector_.lap() == 0) throw std::invalid_argument("commit setup: too few timestamp bits");
    const bool remedies =
        setup.lease_ps != CommitSetup::none || setup.skip_after_ps != CommitSetup::none;
    if (sent().size() != (remedies ? revoked : bit_done) + 1)
        throw std::invalid_argument("commit setup: wrong costs");
    for (std::uint32_t c = 0; c < clients(); ++c) own_[c].next_cid = c + 1;
}

// A transaction.

void OneSidedCommits::fetch_snapshot(std::uint32_t client) {
    reaches(client, at_snapshot);
    post(client, send_ps(snapshot_read), fetching);
}

void OneSidedCommits::fetched(std::uint32_t client) {
    OwnClient& own = own_[client];
    own.unsignaled = 0;
    if (own.fetched != own.known) {
        own.known = own.fetched;
        own.since = time_at(client);
    } else if (setup_.skip_after_ps != CommitSetup::none &&
               time_at(client) - own.since >= setup_.skip_after_ps) {
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
    reaches(client, at_read);
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
            for (std::uint32_t slot = 0; slot < words(); ++slot)
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
    reaches(client, at_lock);
    own.locking_since = time_at(client);
    own.claim_requested = setup_.skip_after_ps != CommitSetup::none;
    if (setup_.updates == 0 && !own.claim_requested) return claim_or_write(client);
    post(client,
         held(client, setup_.updates) * send_ps(cas) + (own.claim_requested ? send_ps(claim) : 0),
         locking);
}

void OneSidedCommits::locked(std::uint32_t client) {
    OwnClient& own = own_[client];
    if (own.claim_requested) note_claim(client);
    for (std::uint32_t slot = 0; slot < words(); ++slot)
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
    if (own.cause == granted) {
        reaches(client, at_write);
        return post(client, held(client, writes()) * send_ps(write), writing);
    }
    undo(client);
}

void OneSidedCommits::undo(std::uint32_t client) {
    std::uint32_t locks = 0;
    for (std::uint32_t slot = 0; slot < words(); ++slot)
        locks += word(client, slot).status == granted;
    if (locks > 0) return post(client, locks * send_ps(unlock), unlocking);
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
    reaches(client, at_bit);
    OwnClient& own = own_[client];
    own.bit_row = row;
    own.bit_cid = own.next_cid;
    if (setup_.plant != timestamp_reused || row == RowKind::commit) own.next_cid += clients();
    while (lags(own)) own.next_cid += clients();
    own.bit_end = own.next_cid;
    post(client, send_ps(bit), setting_bit);
}

void OneSidedCommits::bit_posted(std::uint32_t client) {
    OwnClient& own = own_[client];
    const bool signaled = ++own.unsignaled == setup_.send_queue;
    if (signaled) own.unsignaled = 0;
    const std::uint32_t message = request(client, bit, timestamps());
    messages_[message].cid = own.bit_cid;
    messages_[message].row = own.bit_row;
    messages_[message].signaled = signaled;
    messages_[message].context =
        static_cast<std::uint32_t>((own.bit_end - own.bit_cid) / clients());
    // The client goes on before what comes of the message at the same time, as in the reference.
    if (!signaled) wake(client, setting_bit);
    carry(message);
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
        const RowKind row = setup_.undoes ? RowKind::rolled_back : RowKind::commit;
        for (const std::int64_t cid : vector_.retire(event.subject))
            Cluster::log(row, event.subject, -1, cid);
        if (!fence.waiting.empty()) clock.schedule(clock.now(), fence_known, event.subject);
        look_whether_quiet();
        return end_complaint(fence.complaint);
    }
    for (const std::uint32_t complaint : fence.waiting) end_complaint(complaint);
    fence.waiting.clear();
}

void OneSidedCommits::delivered(std::uint32_t message) {
    Message& f = messages_[message];
    const std::uint32_t client = f.client;
    switch (f.type) {
        case snapshot_read:
        case read:
        case cas:
        case write:
        case unlock:
        case claim:
        case break_lock:
            return at_memory(message);
        case bit:
            if (!f.applied) f.refused = is_fenced(f.receiver, client);
            for (std::uint32_t k = 0; !f.refused && !f.applied && k < f.context; ++k)
                if (const std::int64_t cid = f.cid + k * clients(); vector_.set(cid))
                    Cluster::log(k == 0 ? f.row : RowKind::rolled_back, client, f.number, cid);
            f.applied = true;
            if (!f.signaled) return free_message(message);
            return send_message(answer(message, bit_done));
        case bit_done: {
            const bool refused = f.refused;
            free_message(message);
            return refused ? learn_of_fence(client) : after_bit(client);
        }
        case complaint:
            return handle_complaint(message);
        case complaint_done: {
            const bool refused = f.refused, about_snapshot = f.owner < 0;
            free_message(message);
            if (refused) return learn_of_fence(client);
            if (!about_snapshot) return complain_about_locks(client);
            own_[client].since = time_at(client);
            return fetch_ended(client);
        }
        case revoke:
            shut_out(f);
            return send_message(answer(message, revoked));
        case revoked:
            free_message(message);
            if (--fence_[fence_of_[client]].left == 0)
                clock.schedule(clock.now(), fence_done, client);
            return;
        default:
            return complete(message);
    }
}

template bool Simulation::run(OneSidedCommits&, Time, Interrupt*);

}  // namespace numatwin
