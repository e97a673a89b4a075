// Clients in a closed loop: what both commit protocols share.
#include "systems/commits/kernel/commits.hpp"

#include <algorithm>
#include <stdexcept>

namespace numatwin {
namespace {

std::vector<Place> places_of(const CommitSetup& setup) {
    std::vector<Place> places;
    for (std::size_t c = 0; c < setup.client_machine.size(); ++c)
        places.push_back({setup.client_machine[c], 1, setup.client_factor.at(c)});
    for (std::size_t n = 0; n < setup.node_machine.size(); ++n)
        places.push_back({setup.node_machine[n], setup.node_threads.at(n), 1});
    return places;
}

}  // namespace

Commits::Commits(const CommitSetup& setup, const KeyDraws& keys, const Durations& think,
                 const Durations& compute, std::uint64_t seed, std::uint64_t replication)
    : Cluster(seed, replication, setup.machines, places_of(setup), setup.costs, setup.cost_entries,
              setup.processors, setup.traced),
      compute_(compute),
      setup_(setup),
      faulty_(!setup.stop_ps.empty() || !setup.path_faults.empty()),
      client_(setup.client_machine.size()),
      record_(setup.versions),
      keys_(keys),
      think_(think),
      out_(setup.storage.size()),
      forgot_(setup.storage.size()),
      key_(client_.size() * setup.reads),
      versions_read_(client_.size() * setup.reads) {
    if (setup.checked) check(clients(), setup.records, setup.versions);
    for (std::size_t d = 0; d < setup.death_ps.size(); ++d)
        clock.schedule(setup.death_ps[d], died, static_cast<std::uint32_t>(setup.death_client[d]),
                       static_cast<std::uint64_t>(setup.death_step[d]));
    if (!setup.path_faults.empty())
        set_path_faults(setup.path_faults, Stream(setup.loss_stream[0], setup.loss_stream[1]));
    set_transport(setup.transport);
    for (std::size_t s = 0; s < setup.stop_ps.size(); ++s) {
        clock.schedule(setup.stop_ps[s], node_stops, setup.stop_machine[s]);
        if (setup.return_ps[s] != CommitSetup::none)
            clock.schedule(setup.return_ps[s], node_returns, setup.stop_machine[s],
                           setup.stop_empty[s]);
    }
    for (std::uint32_t c = 0; c < clients(); ++c) {
        const std::uint64_t* words = &setup.streams[4 * c];
        client_[c].keys = Stream(words[0], words[1]);
        client_[c].think = Stream(words[2], words[3]);
        client_[c].created = -static_cast<std::int64_t>(setup.inserts);
        if (setup.start_ps.empty() || setup.start_ps[c] == 0)
            clock.schedule(0, resumed, c, 0, 0);  // before anything else
        else
            clock.schedule(setup.start_ps[c], resumed, c);
    }
}

void Commits::happened(const Event& event) {
    if (event.kind == resumed) return go_on(event.subject);
    if (event.kind == awake) {
        give_way(event.subject);
        if (setup_.processors.awake_ps == 0) return go_on(event.subject);
        return processors_.submit(clock, event.subject, setup_.processors.awake_ps, resumed,
                                  event.subject);
    }
    if (event.kind == asked_again) return ask_again(event.subject);
    if (event.kind == node_fails_over) return fail_over(event);
    if (event.kind == node_stops || event.kind == node_returns) return node_changes(event);
    if (event.kind != died) return happened_to_protocol(event);
    const auto step = static_cast<std::int64_t>(event.data);
    if (step < 0) return die(event.subject);
    client_[event.subject].dies_at = step;
}

std::vector<std::uint32_t> Commits::busy_clients() const {
    std::vector<std::uint32_t> busy;
    for (std::uint32_t c = 0; c < clients(); ++c)
        if (!has_stopped(c) && !client_[c].rests) busy.push_back(c);
    return busy;
}

std::vector<std::uint32_t> Commits::stopped_clients() const {
    std::vector<std::uint32_t> stopped;
    for (std::uint32_t c = 0; c < clients(); ++c)
        if (has_stopped(c)) stopped.push_back(c);
    return stopped;
}

std::vector<std::pair<std::int64_t, std::int64_t>> Commits::locked_records() {
    std::vector<std::pair<std::int64_t, std::int64_t>> locked;
    constexpr std::int64_t bit = std::int64_t{1} << copy_bit;
    for (std::uint32_t record = 0; record < record_.touched(); ++record) {
        const std::int64_t key = record_.key(record) & ~bit, owner = record_.lock(record).owner;
        if (owner != Records::free && !is_out(holder(key, record_.key(record) != key)))
            locked.emplace_back(key, owner);
    }
    return locked;
}

void Commits::die(std::uint32_t client) {
    if (has_stopped(client)) return;
    stop(client);
    log(RowKind::died, client, 0);
}

// All nodes of a machine; then the protocol goes on with what they had begun.
void Commits::node_changes(const Event& event) {
    const bool stops = event.kind == node_stops, empty = event.data != 0;
    for (std::uint32_t n = 0; n < setup_.node_machine.size(); ++n) {
        if (setup_.node_machine[n] != event.subject) continue;
        const std::uint32_t server = server_at(node(n));
        const bool replicated = setup_.replicas > 0 && server != none;
        if (stops) {
            stop(node(n));
            drop_work(node(n));
        } else {
            // With replicas nobody waits for an empty server: it does not come back.
            if (replicated && (empty || is_out(server))) continue;
            start(node(n));
            if (empty && server != none) forget(server);
        }
        Cluster::log(stops ? RowKind::stopped : RowKind::returned, node(n), 0, 0);
        if (stops && replicated) look_after(server);
    }
    if (!stops) returned(event.subject);
}

// Whether it is still stopped after the time that others wait for it.
void Commits::look_after(std::uint32_t server) {
    clock.schedule(clock.now() + setup_.failover_ps, node_fails_over, server,
                   life(storage(server)));
}

// Out for good, if those that have its records and whose records it has are there.
void Commits::fail_over(const Event& event) {
    const std::uint32_t server = event.subject;
    const auto servers = static_cast<std::uint32_t>(setup_.storage.size());
    if (life(storage(server)) != event.data) return;
    if (has_stopped(storage((server + 1) % servers)) ||
        has_stopped(storage((server + servers - 1) % servers)))
        return look_after(server);
    out_[server] = any_out_ = true;
    Cluster::log(RowKind::failed_over, storage(server), 0, 0);
}

void Commits::forget(std::uint32_t server) {
    forgot_[server] = any_forgot_ = true;
    for (std::uint32_t record = 0; record < record_.touched(); ++record)
        if (server_of(record_.key(record)) == server) record_.forget(record);
}

std::uint32_t Commits::server_at(std::uint32_t place) const {
    for (std::uint32_t s = 0; s < setup_.storage.size(); ++s)
        if (storage(s) == place) return s;
    return none;
}

// A place stopped that had the message. Who asked asks again, unless the other one is a client.
void Commits::lost(std::uint32_t message) {
    Message& f = messages_[message];
    const std::uint32_t by = asker(f), to = by == f.sender ? f.receiver : f.sender;
    if (!faulty_ || !wanted(f) || stopped_client(to)) return drop(message);
    if (answers(f.type)) direct(message, f.type - 1, by, to);
    f.tries = 0;
    clock.schedule(clock.now() + wait_ps(f.again), asked_again, message);
}

void Commits::ask_again(std::uint32_t message) {
    Message& f = messages_[message];
    if (!wanted(f) || stopped_client(f.receiver)) return drop(message);
    if (any_out_)
        if (const std::uint32_t server = server_at(f.receiver); server != none && out_[server])
            return instead(message);
    if (has_stopped(f.receiver) || has_stopped(f.sender))
        return clock.schedule(clock.now() + wait_ps(f.again), asked_again, message);
    renew(message);
    send_message(message);
}

void Commits::go_on(std::uint32_t client) {
    if (has_stopped(client)) return;
    switch (client_[client].phase) {
        case next_transaction:
            return begin_transaction(client);
        case next_try:
            return begin_try(client);
        default:
            return resume(client);
    }
}

void Commits::pause(std::uint32_t client, Time ps, std::uint32_t phase) {
    client_[client].phase = phase;
    if (ps == 0) {
        if (!processors_.gives_way(client)) return go_on(client);
        // Others run first: what comes next begins when the client runs again.
        return processors_.submit(clock, client, 0, resumed, client);
    }
    ps *= places_[client].factor;
    if (!processors_.shared(client)) return clock.schedule(clock.now() + ps, resumed, client);
    if (ps > 2 * setup_.processors.awake_ps)
        return clock.schedule(clock.now() + ps - setup_.processors.awake_ps, awake, client);
    give_way(client);
    processors_.submit(clock, client, ps, resumed, client);
}

void Commits::compute(std::uint32_t client, Time ps, std::uint32_t phase) {
    if (!processors_.shared(client)) return pause(client, ps, phase);
    client_[client].phase = phase;
    if (ps == 0) return go_on(client);
    work(client, ps, resumed, client);
}

void Commits::give_way(std::uint32_t client) {
    if (processors_.shared(client) && setup_.processors.gives_way) processors_.give_way(client);
}

void Commits::begin_transaction(std::uint32_t client) {
    Client& self = client_[client];
    if (setup_.rest_ps != CommitSetup::none && clock.now() >= setup_.rest_ps) [[unlikely]] {
        self.rests = true;
        return;
    }
    self.created += setup_.inserts;
    const auto first = &read_key(client, 0);
    for (auto end = first; end < first + setup_.reads;) {
        const std::int64_t key = keys_.draw(self.keys.uniform());
        if (std::find(first, end, key) == end) *end++ = key;
    }
    self.began = clock.now();
    self.tries = 0;
    begin_try(client);
}

void Commits::begin_try(std::uint32_t client) {
    ++client_[client].transaction;
    if (client_[client].copy_uses == 0) return fetch_snapshot(client);
    begun(client, false);
}

void Commits::begun(std::uint32_t client, bool fetched) {
    Client& self = client_[client];
    if (fetched) self.copy_uses = setup_.snapshot_every;
    --self.copy_uses;
    log(RowKind::begin, client, self.snapshot);
    transact(client);
}

bool Commits::log_reads(std::uint32_t client) {
    bool all = true;
    for (std::uint32_t slot = 0; slot < setup_.reads; ++slot) {
        log(RowKind::read, client, read_key(client, slot), version_read(client, slot));
        all = all && version_read(client, slot) != Records::dropped;
    }
    return all;
}

void Commits::end_committed(std::uint32_t client, std::int64_t cid) {
    Client& self = client_[client];
    log(RowKind::outcome, client, cid);
    ++committed_;
    latency_.add(clock.now() - self.began);
    latency_total_ += clock.now() - self.began;
    pause(client, think_.draw(self.think), next_transaction);
}

void Commits::end_aborted(std::uint32_t client, std::int64_t cause) {
    Client& self = client_[client];
    log(RowKind::abort, client, cause);
    ++aborts_[static_cast<std::size_t>(cause)];
    self.copy_uses = 0;
    give_way(client);
    if (self.tries < setup_.retries) {
        ++self.tries;
        return pause(client, setup_.backoff_ps, next_try);
    }
    ++given_up_;
    pause(client, think_.draw(self.think), next_transaction);
}

}  // namespace numatwin
