// Snapshot isolation by 2PC as a state machine; the protocol: ../reference/two_phase.py.
#include <algorithm>

#include "systems/commits/kernel/commits.hpp"

namespace numatwin {

TwoPhaseCommits::TwoPhaseCommits(const CommitSetup& setup, const KeyDraws& keys,
                                 const Durations& think, const Durations& compute,
                                 std::uint64_t seed, std::uint64_t replication)
    : Commits(setup, keys, think, compute, seed, replication), outcome_(2 * client_.size()) {
    if (setup.managers.empty()) throw std::invalid_argument("commit setup: no managers");
    if (sent().size() != outcome + 1) throw std::invalid_argument("commit setup: wrong costs");
}

// The client's side.

void TwoPhaseCommits::fetch_snapshot(std::uint32_t client) {
    const std::uint32_t message = new_message(snapshot_request, client, timestamps());
    messages_[message].client = client;
    send_message(message);
}

void TwoPhaseCommits::transact(std::uint32_t client) {
    client_[client].left = setup_.reads;
    for (std::uint32_t slot = 0; slot < setup_.reads; ++slot) {
        const std::int64_t key = read_key(client, slot);
        const std::uint32_t message = new_message(read, client, storage(server_of(key), client));
        Message& f = messages_[message];
        f.work = setup_.work.read_ps;
        f.client = client;
        f.slot = slot;
        f.key = key;
        send_message(message);
    }
}

void TwoPhaseCommits::resume(std::uint32_t client) {
    switch (client_[client].phase) {
        case have_read:
            if (!log_reads(client)) return end_aborted(client, cause_snapshot);
            return compute(client, compute_.draw(client_[client].think), have_computed);
        case have_computed: {
            std::size_t turn = client;
            if (!setup_.own_managers) turn += static_cast<std::size_t>(client_[client].transaction);
            const std::uint32_t manager = node(setup_.managers[turn % setup_.managers.size()]);
            const std::uint32_t message = new_message(commit_request, client, manager);
            messages_[message].client = client;
            messages_[message].items = writes();
            return send_message(message);
        }
        case have_outcome: {
            const std::int64_t vote = outcome_[2 * client + 1];
            if (vote == granted) return end_committed(client, outcome_[2 * client]);
            return end_aborted(client, vote);
        }
        default:
            throw std::logic_error("a client in no phase");
    }
}

// The manager's side.

void TwoPhaseCommits::manage(std::uint32_t client, std::uint32_t manager) {
    const std::size_t servers = setup_.storage.size();
    if (free_managed_.empty()) {
        free_managed_.push_back(static_cast<std::uint32_t>(managed_.size()));
        managed_.emplace_back();
        written_.resize(managed_.size() * writes());
        server_.resize(managed_.size() * writes());
        voted_.resize(managed_.size() * servers);
    }
    const std::uint32_t managed = free_managed_.back();
    free_managed_.pop_back();
    Managed& m = managed_[managed];
    m = {};
    m.client = client;
    m.manager = manager;
    m.messages = 1;  // the manager itself
    m.number = client_[client].transaction;
    m.rid = client_[client].snapshot;
    for (std::uint32_t slot = 0; slot < writes(); ++slot) {
        const std::int64_t key = written_key(client, slot);
        written_[managed * writes() + slot] = key;
        server_[managed * writes() + slot] = server_of(key);
    }
    m.left = 1;
    for (std::uint32_t s = 0; s < servers; ++s) m.left += takes_part(managed, s);
    send(managed, timestamp_request, timestamps());  // (2)
    for (std::uint32_t s = 0; s < servers; ++s) {
        if (!takes_part(managed, s)) continue;
        send(managed, prepare, storage(s, client), s, count_at(managed, s, 0, setup_.updates),
             setup_.work.check_ps);  // (3)
    }
}

void TwoPhaseCommits::manager_goes_on(std::uint32_t managed) {
    const auto servers = static_cast<std::uint32_t>(setup_.storage.size());
    const std::uint32_t client = managed_[managed].client;
    if (managed_[managed].decided) {
        send(managed, finished, timestamps());  // (5)
        return drop_reference(managed);
    }
    managed_[managed].decided = true;
    std::int64_t vote = granted;
    std::uint32_t taking_part = 0;
    for (std::uint32_t s = 0; s < servers; ++s) {
        if (!takes_part(managed, s)) continue;
        ++taking_part;
        vote = std::max<std::int64_t>(vote, voted_[managed * servers + s]);
    }
    managed_[managed].vote = vote;
    if (vote == granted) {
        for (std::uint32_t s = 0; s < servers; ++s)
            for (std::uint32_t slot = 0; slot < writes(); ++slot)
                if (server_[managed * writes() + slot] == s)
                    Cluster::log(RowKind::write, client, managed_[managed].number,
                                 key_of(managed, slot), managed_[managed].cid);
        managed_[managed].left = taking_part;
        send(managed, outcome, client);  // (6)
        for (std::uint32_t s = 0; s < servers; ++s) {
            if (!takes_part(managed, s)) continue;
            send(managed, install, storage(s, client), s, count_at(managed, s, 0, writes()),
                 setup_.work.install_ps);  // (4)
        }
        return;
    }
    send(managed, outcome, client);  // (6)
    for (std::uint32_t s = 0; s < servers; ++s) {
        const std::uint32_t locked = count_at(managed, s, 0, setup_.updates);
        if (locked > 0 && voted_[managed * servers + s] == granted)
            send(managed, rollback, storage(s, client), s, locked, setup_.work.check_ps);
    }
    send(managed, finished, timestamps());  // (5)
    drop_reference(managed);
}

void TwoPhaseCommits::send(std::uint32_t managed, std::uint32_t type, std::uint32_t to,
                           std::uint32_t server, std::uint32_t records, Time work_per_record) {
    Managed& m = managed_[managed];
    ++m.messages;
    const std::uint32_t message = new_message(type, m.manager, to);
    Message& f = messages_[message];
    f.items = records;
    f.work = records * work_per_record;
    f.context = managed;
    f.slot = server;
    send_message(message);
}

bool TwoPhaseCommits::takes_part(std::uint32_t managed, std::uint32_t server) const {
    return setup_.every_rm || count_at(managed, server, 0, writes()) > 0;
}

std::uint32_t TwoPhaseCommits::count_at(std::uint32_t managed, std::uint32_t server,
                                        std::uint32_t from, std::uint32_t to) const {
    const auto first = server_.begin() + static_cast<std::ptrdiff_t>(managed * writes());
    return static_cast<std::uint32_t>(std::count(first + from, first + to, server));
}

void TwoPhaseCommits::answered(std::uint32_t managed) {
    if (--managed_[managed].left == 0) clock.schedule(clock.now(), manager_resumed, managed);
}

void TwoPhaseCommits::release(std::uint32_t message) {
    const std::uint32_t managed = messages_[message].context;
    free_message(message);
    if (managed != none) drop_reference(managed);
}

void TwoPhaseCommits::drop_reference(std::uint32_t managed) {
    if (--managed_[managed].messages == 0) free_managed_.push_back(managed);
}

// The RMs' side.

std::int64_t TwoPhaseCommits::check(std::uint32_t managed, std::uint32_t server) {
    const Managed& m = managed_[managed];
    for (const bool locks : {false, true}) {
        for (std::uint32_t slot = 0; slot < setup_.updates; ++slot) {
            if (server_[managed * writes() + slot] != server) continue;
            const std::uint32_t record = record_.find(key_of(managed, slot));
            if (locks) {
                record_.lock(record).owner = m.client;
                continue;
            }
            if (record_.lock(record).owner != Records::free) return cause_locked;
            if (record_.newest(record) > m.rid) return cause_conflict;
        }
    }
    return granted;
}

void TwoPhaseCommits::install_at(std::uint32_t managed, std::uint32_t server) {
    const Managed& m = managed_[managed];
    for (std::uint32_t slot = 0; slot < writes(); ++slot) {
        if (server_[managed * writes() + slot] != server) continue;
        const std::int64_t key = key_of(managed, slot);
        if (slot < setup_.updates) record_.install(record_.find(key), m.cid);
        Cluster::log(RowKind::install, m.client, m.number, key, m.cid);
    }
}

void TwoPhaseCommits::roll_back(std::uint32_t managed, std::uint32_t server) {
    for (std::uint32_t slot = 0; slot < setup_.updates; ++slot)
        if (server_[managed * writes() + slot] == server)
            record_.lock(record_.find(key_of(managed, slot))).owner = Records::free;
}

// Messages.

void TwoPhaseCommits::lost(std::uint32_t message) {
    release(message);
}

void TwoPhaseCommits::happened_to_protocol(const Event& event) {
    manager_goes_on(event.subject);
}

void TwoPhaseCommits::delivered(std::uint32_t message) {
    Message& f = messages_[message];
    const std::uint32_t managed = f.context, client = f.client;
    switch (f.type) {
        case snapshot_request:
            f.cid = counter_.highest();
            return send_message(answer(message, snapshot));
        case snapshot:
            client_[client].snapshot = f.cid;
            free_message(message);
            return begun(client, true);
        case read:
            f.cid = record_.visible(record_.find(f.key), client_[client].snapshot);
            return send_message(answer(message, record));
        case record:
            version_read(client, f.slot) = f.cid;
            free_message(message);
            if (--client_[client].left == 0) wake(client, have_read);
            return;
        case commit_request: {  // (1)
            const std::uint32_t manager = f.receiver;
            free_message(message);
            return manage(client, manager);
        }
        case timestamp_request:
            f.cid = counter_.next();
            return send_message(answer(message, timestamp));
        case timestamp:
            managed_[managed].cid = f.cid;
            release(message);
            return answered(managed);
        case prepare:
            f.status = static_cast<std::int8_t>(check(managed, f.slot));
            return send_message(answer(message, vote));
        case vote:
            voted_[managed * setup_.storage.size() + f.slot] = f.status;
            release(message);
            return answered(managed);
        case install:
            install_at(managed, f.slot);
            return send_message(answer(message, installed));
        case installed:
            release(message);
            return answered(managed);
        case rollback:
            roll_back(managed, f.slot);
            return release(message);
        case finished: {
            const Managed& m = managed_[managed];
            counter_.finish(m.cid);
            Cluster::log(m.vote == granted ? RowKind::commit : RowKind::rolled_back, m.client,
                         m.number, m.cid);
            return release(message);
        }
        case outcome: {
            const Managed& m = managed_[managed];
            const std::uint32_t receiver = m.client;
            outcome_[2 * receiver] = m.cid;
            outcome_[2 * receiver + 1] = m.vote;
            release(message);
            return wake(receiver, have_outcome);
        }
        default:
            throw std::logic_error("a message of no type");
    }
}

}  // namespace numatwin
