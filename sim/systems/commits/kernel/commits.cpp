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

// parameters.py has checked the values, and told the user; this is the last line.
const CommitSetup& checked(const CommitSetup& setup) {
    const auto expect = [](bool fine, const char* what) {
        if (!fine) throw std::invalid_argument(std::string("commit setup: wrong ") + what);
    };
    const auto below = [](const auto& values, std::size_t end) {
        return std::ranges::all_of(values, [end](auto v) { return v < end; });
    };
    const std::size_t clients = setup.client_machine.size(), nodes = setup.node_machine.size();
    expect(clients > 0 && below(setup.client_machine, setup.machines), "machines of clients");
    expect(setup.client_factor.size() == clients, "factors of clients");
    expect(nodes > 0 && below(setup.node_machine, setup.machines), "machines of nodes");
    expect(setup.node_threads.size() == nodes, "threads of nodes");
    expect(!setup.storage.empty() && below(setup.storage, nodes), "storage servers");
    expect(below(setup.own_storage, nodes) &&
               (setup.own_storage.empty() ||
                setup.own_storage.size() == setup.storage.size() * clients),
           "storage servers of clients");
    expect(below(setup.managers, nodes) && setup.timestamps < nodes, "managers or timestamps");
    expect(setup.cost_entries > 0 && setup.costs.size() % setup.cost_entries == 0, "costs");
    expect(std::ranges::all_of(setup.costs,
                               [](const MessageCost& cost) {
                                   return std::min({cost.send_ps, cost.receive_ps, cost.out_ps,
                                                    cost.wire_ps, cost.in_ps}) >= 0 &&
                                          cost.parts >= 1 && cost.parts <= 1'000'000;
                               }),
           "costs");
    expect(setup.reads > 0 && setup.reads <= setup.records && setup.updates <= setup.reads &&
               setup.updates + setup.inserts > 0,
           "numbers of records");
    expect(setup.versions > 0 && setup.send_queue > 0 && setup.snapshot_every > 0, "counts");
    expect(setup.streams.size() == 4 * clients, "streams");
    expect(setup.start_ps.empty() || setup.start_ps.size() == clients, "starts");
    expect(setup.death_client.size() == setup.death_ps.size() &&
               std::ranges::all_of(
                   setup.death_client,
                   [clients](auto c) { return c >= 0 && c < static_cast<std::int64_t>(clients); }),
           "deaths");
    expect(setup.death_step.size() == setup.death_ps.size(), "steps of deaths");
    expect(setup.stop_ps.size() == setup.stop_machine.size() &&
               setup.return_ps.size() == setup.stop_machine.size() &&
               below(setup.stop_machine, setup.machines),
           "stops");
    expect(std::ranges::all_of(setup.path_faults,
                               [&](const PathFault& fault) {
                                   return fault.side.size() == setup.machines &&
                                          fault.factor >= 1 && fault.from_ps < fault.until_ps;
                               }),
           "faults of paths");
    expect(setup.path_faults.empty() || setup.loss_stream.size() == 2, "stream of losses");
    expect(setup.transport.timeout_ps > 0, "timeout");
    return setup;
}

}  // namespace

Commits::Commits(const CommitSetup& setup, const KeyDraws& keys, const Durations& think,
                 const Durations& compute, std::uint64_t seed, std::uint64_t replication)
    : Cluster(seed, replication, checked(setup).machines, places_of(setup), setup.costs,
              setup.cost_entries, setup.processors, setup.traced),
      compute_(compute),
      setup_(setup),
      faulty_(!setup.stop_ps.empty() || !setup.path_faults.empty()),
      client_(setup.client_machine.size()),
      record_(setup.versions),
      keys_(keys),
      think_(think),
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
            clock.schedule(setup.return_ps[s], node_returns, setup.stop_machine[s]);
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
    for (std::uint32_t record = 0; record < record_.touched(); ++record)
        if (record_.lock(record).owner != Records::free)
            locked.emplace_back(record_.key(record), record_.lock(record).owner);
    return locked;
}

void Commits::die(std::uint32_t client) {
    if (has_stopped(client)) return;
    stop(client);
    log(RowKind::died, client, 0);
}

// All nodes of a machine; then the protocol goes on with what they had begun.
void Commits::node_changes(const Event& event) {
    const bool stops = event.kind == node_stops;
    for (std::uint32_t n = 0; n < setup_.node_machine.size(); ++n) {
        if (setup_.node_machine[n] != event.subject) continue;
        if (stops) {
            stop(node(n));
            drop_work(node(n));
        } else {
            start(node(n));
        }
        Cluster::log(stops ? RowKind::stopped : RowKind::returned, node(n), 0, 0);
    }
    if (!stops) returned(event.subject);
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
