// RSI's one-sided verbs: how clients post them, what they do to memory, and their answers.
#include <stdexcept>

#include "systems/commits/kernel/one_sided.hpp"

namespace numatwin {

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
    const std::uint32_t message = own_[client].batch[own_[client].posted++];
    clock.schedule(clock.now(), posting_goes_on, client);
    carry(message);
}

void OneSidedCommits::hand(std::uint32_t client, std::uint32_t message) {
    if (setup_.doorbell) return carry(message);
    own_[client].batch.push_back(message);
}

std::uint32_t OneSidedCommits::request(std::uint32_t client, std::uint32_t type, std::uint32_t to) {
    const std::uint32_t message = new_message(type, client, to);
    messages_[message].client = client;
    messages_[message].number = client_[client].transaction;
    return message;
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
                const std::uint32_t message = request(client, read, storage(reader(key)));
                messages_[message].slot = slot;
                messages_[message].key = key;
                hand(client, message);
            }
            return;
        case locking:
            self.left = held(client, setup_.updates) + own.claim_requested;
            if (setup_.replicas > 0)
                for (std::uint32_t w = 0; w < words(); ++w) word(client, w).status = gone;
            at_holders(client, setup_.updates, [&](std::uint32_t slot, std::uint32_t copy) {
                const std::int64_t key = read_key(client, slot);
                const std::uint32_t message = request(client, cas, storage(holder(key, copy)));
                messages_[message].slot = slot * copies() + copy;
                messages_[message].key = key;
                messages_[message].cid = version_read(client, slot);
                messages_[message].since = own.locking_since;
                hand(client, message);
            });
            if (!own.claim_requested) return;
            [[fallthrough]];
        case claiming: {
            if (self.phase == claiming) self.left = 1;
            const std::uint32_t message = request(client, claim, timestamps());
            messages_[message].cid = own.next_cid;
            return hand(client, message);
        }
        case writing: {
            if (setup_.lease_ps != CommitSetup::none &&
                time_at(client) - own.locking_since > setup_.lease_ps / 2) {
                own.cause = cause_lease;
                return undo(client);
            }
            self.left = setup_.plant == early_acknowledged ? 1 : held(client, writes());
            const std::int64_t cid = own.next_cid;
            at_holders(client, writes(), [&](std::uint32_t slot, std::uint32_t) {
                log(RowKind::write, client, written_key(client, slot), cid);
            });
            std::uint32_t number = 0;
            at_holders(client, writes(), [&](std::uint32_t slot, std::uint32_t copy) {
                const std::int64_t key = written_key(client, slot);
                const std::uint32_t message = request(client, write, storage(holder(key, copy)));
                messages_[message].slot = number++;
                messages_[message].key = key;
                messages_[message].cid = cid;
                hand(client, message);
            });
            return;
        }
        case unlocking:
        case breaking: {
            const bool breaks = self.phase == breaking;
            const auto concerns = [&](const Word& w) {
                return breaks ? w.expired : w.status == granted;
            };
            self.left = 0;
            for (std::uint32_t slot = 0; slot < words(); ++slot)
                self.left += concerns(word(client, slot));
            for (std::uint32_t slot = 0; slot < words(); ++slot) {
                if (!concerns(word(client, slot))) continue;
                const std::int64_t key = read_key(client, slot / copies());
                const std::uint32_t message = request(client, breaks ? break_lock : unlock,
                                                      storage(holder(key, slot % copies())));
                messages_[message].key = key;
                messages_[message].owner = breaks ? word(client, slot).owner : client;
                hand(client, message);
            }
            return;
        }
        case setting_bit:
            return bit_posted(client);
        default:
            throw std::logic_error("a client in no phase");
    }
}

void OneSidedCommits::install(const Message& f) {
    if (f.key < setup_.records) record_.install(find(f.key, f.receiver), f.cid);
    Cluster::log(RowKind::install, f.client, f.number, f.key, f.cid);
    if (!setup_.undoes) return;
    const std::uint32_t own = server_of(f.key);
    const std::uint32_t server = f.receiver == storage(own) ? own : holder(f.key, 1);
    Installed& last = installed_[server * clients() + f.client];
    if (last.cid != f.cid) last = {f.cid, {}};
    last.keys.push_back(f.key);
}

// What a signaled request does to memory.
void OneSidedCommits::apply(Message& f) {
    f.applied = true;
    f.refused = is_fenced(f.receiver, f.client);
    if (!f.refused) {
        switch (f.type) {
            case snapshot_read:
                f.cid = vector_.highest();
                f.newest = vector_.top();
                break;
            case read: {
                const std::uint32_t record = find(f.key, f.receiver);
                f.cid = record_.visible(record, client_[f.client].snapshot);
                f.newest = record_.newest(record);
                break;
            }
            case cas: {
                const std::uint32_t record = find(f.key, f.receiver);
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
                install(f);
                break;
            case unlock:
                if (setup_.plant == lock_kept) break;
                record_.unlock(find(f.key, f.receiver), f.owner);
                break;
            case break_lock:
                if (record_.unlock(find(f.key, f.receiver), f.owner))
                    Cluster::log(RowKind::broken, f.client, f.number, f.key, f.owner);
                break;
            default:  // claim
                f.status =
                    static_cast<std::int8_t>(vector_.claim(f.cid) ? granted : cause_timestamps);
                f.newest = vector_.top();
        }
    }
}

// A signaled request; its answer goes back at once.
void OneSidedCommits::at_memory(std::uint32_t message) {
    Message& f = messages_[message];
    if (!f.applied) apply(f);
    send_message(answer(message, f.type + 1));
}

// Of a server that is out nobody reads what its memory holds.
void OneSidedCommits::instead(std::uint32_t message) {
    Message& f = messages_[message];
    if (f.type == read) {
        f.applied = false;
        f.again = 0;
        return send_message(direct(message, read, f.sender, storage(reader(f.key))));
    }
    if (f.type == cas) {
        f.status = gone;
        f.refused = false;
    } else if (f.type == revoke) {
        shut_out(f);
    } else if (!f.applied) {
        apply(f);
    }
    delivered(answer(message, f.type + 1));
}

// An answer has come; with the last one, the client goes on.
void OneSidedCommits::complete(std::uint32_t message) {
    const Message& f = messages_[message];
    const std::uint32_t client = f.client;
    if (f.refused) {
        free_message(message);
        return learn_of_fence(client);
    }
    if (f.type == write_done && f.slot > 0 && setup_.plant == early_acknowledged)
        return free_message(message);
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
    free_message(message);
    if (--client_[client].left > 0) return;
    if (setup_.doorbell) return wake(client, client_[client].phase);
    clock.schedule(clock.now(), all_answered, client);
}

}  // namespace numatwin
