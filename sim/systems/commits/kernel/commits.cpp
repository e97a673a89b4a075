// Clients in a closed loop: what both commit protocols share.
#include "systems/commits/kernel/commits.hpp"

#include <algorithm>

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
      faulty_(!setup.stop_ps.empty() || !setup.path_faults.empty() || !setup.clock_faults.empty()),
      client_(setup.client_machine.size()),
      record_(setup.versions),
      keys_(keys),
      think_(think),
      out_(setup.storage.size()),
      forgot_(setup.storage.size()),
      return_(setup.storage.size()),
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
    if (event.kind >= first_own_of_protocol) return happened_to_protocol(event);
    if (event.kind == awake) {
        give_way(event.subject);
        if (setup_.processors.awake_ps == 0) return go_on(event.subject);
        return processors_.submit(clock, event.subject, setup_.processors.awake_ps, resumed,
                                  event.subject);
    }
    if (event.kind == asked_again) return ask_again(event.subject);
    if (event.kind == node_fails_over) return fail_over(event);
    if (event.kind == node_rejoins) return rejoin(event);
    if (event.kind == node_stops || event.kind == node_returns) return node_changes(event);
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
    look_whether_quiet();
}

// All nodes of a machine; then the protocol goes on with what they had begun.
void Commits::node_changes(const Event& event) {
    const bool stops = event.kind == node_stops, empty = event.data != 0;
    for (std::uint32_t n = 0; n < setup_.node_machine.size(); ++n) {
        if (setup_.node_machine[n] != event.subject) continue;
        const std::uint32_t server = server_at(node(n));
        const bool replicated = setup_.replicas > 0 && server != none;
        if (replicated) {
            Return& back = return_[server];
            back.is_back = !stops;
            ++back.turn;
            back.empty = back.empty || empty;
            // Nobody waits for it, or nobody would if it came back empty: it is copied to first.
            if (!stops && is_out(server)) begin_copy(server);
            if (drains_ == server) end_drain();
            if (has_stopped(node(n)) && (stops || back.empty || is_out(server))) continue;
            count_degraded(stops ? 1 : -1);
        }
        if (stops) {
            stop(node(n));
            drop_work(node(n));
        } else {
            start(node(n));
            if (empty && server != none) forget(server);
        }
        Cluster::log(stops ? RowKind::stopped : RowKind::returned, node(n), 0, 0);
        if (stops && replicated) look_after(server);
    }
    if (stops) return;
    returned(event.subject);
    look_whether_quiet();
}

// Whether it is still stopped after the time that others wait for it.
void Commits::look_after(std::uint32_t server) {
    clock.schedule(clock.now() + setup_.failover_ps, node_fails_over, server,
                   life(storage(server)));
}

// Out, if those that have its records and whose records it has are there.
void Commits::fail_over(const Event& event) {
    const std::uint32_t server = event.subject;
    if (life(storage(server)) != event.data) return;
    for (const std::uint32_t other : neighbours(server))
        if (has_stopped(storage(other))) return look_after(server);
    out_[server] = any_out_ = true;
    Cluster::log(RowKind::failed_over, storage(server), 0, 0);
    if (return_[server].is_back) begin_copy(server);
}

void Commits::begin_copy(std::uint32_t server) {
    clock.schedule(clock.now() + missed(server) * setup_.copy_ps, node_rejoins, server,
                   return_[server].turn);
}

// How many of its records changed while it was out; all, where it has none of them.
std::int64_t Commits::missed(std::uint32_t server) {
    if (return_[server].empty) {
        const std::int64_t servers = static_cast<std::int64_t>(setup_.storage.size());
        std::int64_t count = 0;
        for (const std::int64_t own : {std::int64_t{server}, (server + servers - 1) % servers})
            count += (setup_.records - own + servers - 1) / servers;
        return count;
    }
    constexpr std::int64_t bit = std::int64_t{1} << copy_bit;
    std::int64_t count = 0;
    for (std::uint32_t from = 0, end = static_cast<std::uint32_t>(touched_records()); from < end;
         ++from) {
        const std::int64_t key = record_.key(from) & ~bit;
        const bool copy = record_.key(from) != key;
        if (holder(key, !copy) == server)
            count += record_.newest(from) != record_.newest(find_copy(key, !copy));
    }
    return count;
}

// It has its records: once all that is under way has ended it answers with the others.
void Commits::rejoin(const Event& event) {
    if (return_[event.subject].turn != event.data) return;
    if (drains_ != none)
        return clock.schedule(clock.now() + setup_.failover_ps, node_rejoins, event.subject,
                              event.data);
    drains_ = event.subject;
    look_whether_quiet();
}

void Commits::look_whether_quiet() {
    const std::uint32_t server = drains_;
    if (server == none || !quiet()) return;
    for (std::uint32_t c = 0; c < clients(); ++c)
        if (!has_stopped(c) && client_[c].ended < client_[c].transaction) return;
    for (const std::uint32_t other : neighbours(server))
        if (has_stopped(storage(other))) return;
    if (setup_.plant != nothing_copied) copy_records(server);
    return_[server].empty = out_[server] = false;
    any_out_ = std::ranges::find(out_, true) != out_.end();
    start(storage(server));
    Cluster::log(RowKind::rejoined, storage(server), 0, 0);
    rejoins_.emplace_back(clock.now(), places_[storage(server)].machine);
    count_degraded(-1);
    end_drain();
}

void Commits::end_drain() {
    drains_ = none;
    for (const std::uint32_t client : waiting_) wake(client, next_try);
    waiting_.clear();
}

// What the others have.
void Commits::copy_records(std::uint32_t server) {
    constexpr std::int64_t bit = std::int64_t{1} << copy_bit;
    for (std::uint32_t record = 0, end = static_cast<std::uint32_t>(touched_records());
         record < end; ++record) {
        const std::int64_t key = record_.key(record) & ~bit;
        const bool copy = holder(key, 0) != server;
        if (!copy || holder(key, 1) == server)
            record_.copy(find_copy(key, !copy), find_copy(key, copy));
    }
}

// A storage server is gone, or back.
void Commits::count_degraded(int change) {
    if (absent_ > 0) degraded_ += clock.now() - degraded_since_;
    degraded_since_ = clock.now();
    absent_ += change;
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
    if (drains_ != none) [[unlikely]]
        return waiting_.push_back(client);
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
    self.ended = self.transaction;
    if (drains_ != none) [[unlikely]]
        look_whether_quiet();
    ++committed_;
    latency_.add(clock.now() - self.began);
    latency_total_ += clock.now() - self.began;
    pause(client, think_.draw(self.think), next_transaction);
}

void Commits::end_aborted(std::uint32_t client, std::int64_t cause) {
    Client& self = client_[client];
    log(RowKind::abort, client, cause);
    self.ended = self.transaction;
    if (drains_ != none) [[unlikely]]
        look_whether_quiet();
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
