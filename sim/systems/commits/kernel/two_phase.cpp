// Snapshot isolation by 2PC as a state machine; the protocol: ../reference/two_phase.py.
#include "systems/commits/kernel/two_phase.hpp"

#include <algorithm>

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
    reaches(client, at_snapshot);
    const std::uint32_t message = new_message(snapshot_request, client, timestamps());
    messages_[message].client = client;
    send_message(message);
}

void TwoPhaseCommits::transact(std::uint32_t client) {
    reaches(client, at_read);
    client_[client].left = setup_.reads;
    for (std::uint32_t slot = 0; slot < setup_.reads; ++slot) {
        const std::int64_t key = read_key(client, slot);
        const std::uint32_t message = new_message(read, client, storage(reader(key), client));
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
            reaches(client, at_commit);
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
        share_.resize(managed_.size() * servers);
    }
    const std::uint32_t managed = free_managed_.back();
    free_managed_.pop_back();
    Managed& m = managed_[managed];
    m = {};
    m.client = client;
    m.manager = manager;
    m.messages = 1;  // the manager itself
    m.life = life(manager);
    m.open = true;
    m.order = begun_++;
    for (std::uint32_t s = 0; s < servers; ++s) share(managed, s) = {};
    m.number = client_[client].transaction;
    m.rid = client_[client].snapshot;
    for (std::uint32_t slot = 0; slot < writes(); ++slot) {
        const std::int64_t key = written_key(client, slot);
        written_[managed * writes() + slot] = key;
        server_[managed * writes() + slot] = server_of(key);
    }
    m.left = 1;
    for (std::uint32_t s = 0; s < servers; ++s)
        m.left += share(managed, s).takes_part =
            !is_out(s) && (setup_.every_rm || count_at(managed, s, 0, writes()) > 0);
    send(managed, timestamp_request, timestamps());  // (2)
    for (std::uint32_t s = 0; s < servers; ++s) {
        if (takes_part(managed, s)) send_to_share(managed, prepare, s);  // (3)
    }
}

void TwoPhaseCommits::manager_goes_on(std::uint32_t managed) {
    const Managed& m = managed_[managed];
    if (m.decided) return finish(managed);
    if (m.resolves) return decide(managed, cause_stopped);
    std::int64_t vote = granted;
    for (std::uint32_t s = 0; s < setup_.storage.size(); ++s)
        if (takes_part(managed, s)) vote = std::max<std::int64_t>(vote, share(managed, s).vote);
    decide(managed, vote);
}

void TwoPhaseCommits::decide(std::uint32_t managed, std::int64_t vote) {
    const auto servers = static_cast<std::uint32_t>(setup_.storage.size());
    const std::uint32_t client = managed_[managed].client;
    managed_[managed].decided = true;
    managed_[managed].vote = vote;
    if (vote == granted) {
        std::uint32_t taking_part = 0;
        for (std::uint32_t s = 0; s < servers; ++s) {
            if (!takes_part(managed, s)) continue;
            ++taking_part;
            for (std::uint32_t slot = 0; slot < writes(); ++slot)
                if (lies_at(managed, slot, s))
                    Cluster::log(RowKind::write, client, managed_[managed].number,
                                 key_of(managed, slot), managed_[managed].cid);
        }
        managed_[managed].left = taking_part;
        if (setup_.plant == early_acknowledged) send(managed, finished, timestamps());
        send(managed, outcome, client);  // (6)
        for (std::uint32_t s = 0; s < servers; ++s)
            if (takes_part(managed, s)) send_to_share(managed, install, s);  // (4)
        return;
    }
    send(managed, outcome, client);  // (6)
    for (std::uint32_t s = 0; s < servers; ++s) {
        const bool votes_yes = managed_[managed].resolves || share(managed, s).vote == granted;
        if (!takes_part(managed, s) || count_at(managed, s, 0, setup_.updates) == 0 || !votes_yes)
            continue;
        ++managed_[managed].rollbacks;
        send_to_share(managed, rollback, s);
    }
    finish(managed);
}

void TwoPhaseCommits::finish(std::uint32_t managed) {
    if (!managed_[managed].over) send(managed, finished, timestamps());  // (5)
    if (!faulty_) return drop_reference(managed);
    close(managed);
}

void TwoPhaseCommits::forget_if_over(std::uint32_t managed) {
    Managed& m = managed_[managed];
    if (!m.open || !has_ended(m)) return;
    m.open = false;
    drop_reference(managed);
    look_whether_quiet();
}

// Its manager is back, and reads of it in its log.
void TwoPhaseCommits::resolve(std::uint32_t managed) {
    const auto servers = static_cast<std::uint32_t>(setup_.storage.size());
    managed_[managed].life = life(managed_[managed].manager);
    managed_[managed].rollbacks = 0;
    managed_[managed].resolves = true;
    if (!managed_[managed].decided) {
        managed_[managed].left = 1;
        return send(managed, timestamp_request, timestamps());
    }
    ++managed_[managed].messages;  // that is here
    const bool commits = managed_[managed].vote == granted;
    if (!managed_[managed].reported) send(managed, outcome, managed_[managed].client);
    managed_[managed].left = 0;
    for (std::uint32_t s = 0; commits && s < servers; ++s)
        managed_[managed].left += takes_part(managed, s);
    for (std::uint32_t s = 0; s < servers; ++s) {
        if (!takes_part(managed, s)) continue;
        if (!commits && count_at(managed, s, 0, setup_.updates) == 0) continue;
        managed_[managed].rollbacks += !commits;
        send_to_share(managed, commits ? install : rollback, s);
    }
    if (!commits) finish(managed);
    drop_reference(managed);
}

void TwoPhaseCommits::returned(std::uint32_t machine) {
    std::vector<std::uint32_t> open;
    for (std::uint32_t managed = 0; managed < managed_.size(); ++managed)
        if (managed_[managed].open && places_[managed_[managed].manager].machine == machine)
            open.push_back(managed);
    std::ranges::sort(open, {}, [this](std::uint32_t managed) { return managed_[managed].order; });
    for (const std::uint32_t managed : open) {
        close(managed);
        if (managed_[managed].open) resolve(managed);
    }
}

bool TwoPhaseCommits::quiet() {
    return std::ranges::all_of(managed_,
                               [this](const Managed& m) { return !m.open || has_ended(m); });
}

void TwoPhaseCommits::send(std::uint32_t managed, std::uint32_t type, std::uint32_t to,
                           std::uint32_t server) {
    Managed& m = managed_[managed];
    ++m.messages;
    const std::uint32_t message = new_message(type, m.manager, to);
    Message& f = messages_[message];
    f.context = managed;
    f.slot = server;
    f.owner = m.life;
    fill(f);
    send_message(message);
}

// A manager that stopped resolves what it had begun, and asks anew.
bool TwoPhaseCommits::wanted(const Message& message) const {
    const std::uint32_t by = asker(message);
    return by < clients() ? !has_stopped(by) : life(by) == message.owner;
}

std::uint32_t TwoPhaseCommits::count_at(std::uint32_t managed, std::uint32_t server,
                                        std::uint32_t from, std::uint32_t to) const {
    const auto first = server_.begin() + static_cast<std::ptrdiff_t>(managed * writes());
    auto found = std::count(first + from, first + to, server);
    if (setup_.replicas > 0) {
        const auto servers = static_cast<std::uint32_t>(setup_.storage.size());
        found += std::count(first + from, first + to, (server + servers - 1) % servers);
    }
    return static_cast<std::uint32_t>(found);
}

void TwoPhaseCommits::answered(std::uint32_t managed) {
    if (--managed_[managed].left > 0) return;
    clock.schedule(clock.now(), manager_resumed, managed, managed_[managed].life);
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
            if (!lies_at(managed, slot, server)) continue;
            const std::uint32_t record = find_at(managed, slot, server);
            if (locks) {
                record_.lock(record).owner = m.client;
                share(managed, server).locked = true;
                continue;
            }
            if (record_.lock(record).owner != Records::free) return cause_locked;
            if (record_.newest(record) == Records::dropped) return cause_snapshot;  // lost
            if (record_.newest(record) > m.rid) return cause_conflict;
        }
    }
    return granted;
}

void TwoPhaseCommits::install_at(std::uint32_t managed, std::uint32_t server) {
    const Managed& m = managed_[managed];
    if (share(managed, server).installed) return;
    share(managed, server) = {granted, false, true, true};
    for (std::uint32_t slot = 0; slot < writes(); ++slot) {
        if (!lies_at(managed, slot, server)) continue;
        if (slot < setup_.updates) {
            const std::uint32_t record = find_at(managed, slot, server);
            if (record_.newest(record) == Records::dropped)  // what changed does not make it whole
                record_.lock(record).owner = Records::free;
            else
                record_.install(record, m.cid);
        }
        Cluster::log(RowKind::install, m.client, m.number, key_of(managed, slot), m.cid);
    }
}

void TwoPhaseCommits::roll_back(std::uint32_t managed, std::uint32_t server) {
    if (!share(managed, server).locked) return;
    share(managed, server).locked = false;
    if (setup_.plant == lock_kept) return;
    for (std::uint32_t slot = 0; slot < setup_.updates; ++slot)
        if (lies_at(managed, slot, server))
            record_.lock(find_at(managed, slot, server)).owner = Records::free;
}

void TwoPhaseCommits::instead(std::uint32_t message) {
    Message& f = messages_[message];
    switch (f.type) {
        case read:
            f.applied = false;
            f.again = 0;
            direct(message, read, f.sender, storage(reader(f.key), f.client));
            renew(message);
            return send_message(message);
        case prepare:  // its own servers' votes count alone
            f.status = granted;
            return delivered(answer(message, vote));
        case install:
            install_at(f.context, f.slot);
            return delivered(answer(message, installed));
        default:
            return delivered(message);
    }
}

// Messages.

void TwoPhaseCommits::came_late(std::uint32_t message) {
    const Message f = messages_[message];
    free_message(message);
    if (setup_.plant == doubled && f.type == prepare && !has_stopped(f.receiver))
        check(f.context, f.slot);
}

void TwoPhaseCommits::happened_to_protocol(const Event& event) {
    const Managed& m = managed_[event.subject];
    if (life(m.manager) == event.data) manager_goes_on(event.subject);
}

void TwoPhaseCommits::delivered(std::uint32_t message) {
    Message& f = messages_[message];
    const std::uint32_t managed = f.context, client = f.client;
    if (faulty_ && managed != none && life(managed_[managed].manager) != f.owner)
        return release(message);
    const bool fresh = !f.applied;
    f.applied = true;
    switch (f.type) {
        case snapshot_request:
            if (fresh) f.cid = counter_.highest();
            return send_message(answer(message, snapshot));
        case snapshot:
            client_[client].snapshot = f.cid;
            free_message(message);
            return begun(client, true);
        case read:
            if (fresh) f.cid = record_.visible(find(f.key, f.receiver), client_[client].snapshot);
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
            if (managed_[managed].cid == 0 && !spare_.empty()) {
                managed_[managed].cid = spare_.back();
                spare_.pop_back();
            }
            if (managed_[managed].cid == 0) managed_[managed].cid = counter_.next();
            return send_message(answer(message, timestamp));
        case timestamp:
            release(message);
            return answered(managed);
        case prepare:
            if (fresh) f.status = static_cast<std::int8_t>(check(managed, f.slot));
            return send_message(answer(message, vote));
        case vote:
            share(managed, f.slot).vote = f.status;
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
            --managed_[managed].rollbacks;
            close(managed);
            return release(message);
        case finished: {
            Managed& m = managed_[managed];
            m.over = true;
            counter_.finish(m.cid);
            if (setup_.plant == timestamp_reused && m.vote != granted) spare_.push_back(m.cid);
            Cluster::log(m.vote == granted ? RowKind::commit : RowKind::rolled_back, m.client,
                         m.number, m.cid);
            close(managed);
            return release(message);
        }
        case outcome: {
            Managed& m = managed_[managed];
            m.reported = true;
            close(managed);
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

template bool Simulation::run(TwoPhaseCommits&, Time, Interrupt*);

}  // namespace numatwin
