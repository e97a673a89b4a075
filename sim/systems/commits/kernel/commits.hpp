// Transactions on a cluster: what both protocols of snapshot isolation share.
//
// The protocols are written out in ../reference; these models (two_phase.hpp, one_sided.hpp) are
// the same as state machines, and give the same trace, row for row. Where several things happen at
// one time, they happen in the order in which SimPy's processes would do them: a client that has
// waited for several answers goes on in an event of its own.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "kernel/durations.hpp"
#include "kernel/key_draws.hpp"
#include "kernel/philox.hpp"
#include "kernel/statistics.hpp"
#include "machine/kernel/message_path.hpp"
#include "systems/commits/kernel/commit_setup.hpp"
#include "systems/commits/kernel/history_checker.hpp"
#include "systems/commits/kernel/protocol.hpp"
#include "systems/commits/kernel/records.hpp"
#include "systems/commits/kernel/timestamps.hpp"

namespace numatwin {

// Clients and servers on a network: what commits' messages hold, and the trace of what happens.
//
// The way of the messages is that of machine/kernel/message_path.hpp; clients come first among the
// places, then nodes. The same, in plain SimPy, row for row: ../reference/cluster.py.

// What the protocols put into a message; each type uses some of these fields. An answer reuses the
// message that it answers. Items of a message are records.
struct Message : MessageHead {
    std::uint32_t client;
    std::uint32_t slot;
    // Of what a manager asks: for whom; of timestamps that are set: how many.
    std::uint32_t context = ~std::uint32_t{0};
    bool refused : 1;
    bool applied : 1;     // the receiver has done it
    bool signaled : 1;    // whether an answer is wanted
    std::int8_t status;   // granted, or the cause of an abort
    RowKind row;          // that a timestamp is traced as
    std::int64_t number;  // of the transaction
    std::int64_t key;     // of the record
    std::int64_t cid;     // a commit timestamp, or the version of a record
    std::int64_t newest;  // version of the record, or timestamp used
    std::int64_t owner;   // of a lock (RSI); the asking manager's life (2PC)
    Time since;           // when the lock was taken
};

class Cluster : public MessagePath<Message> {
  public:
    Cluster(std::uint64_t seed, std::uint64_t replication, std::uint32_t machines,
            std::vector<Place> places, std::vector<MessageCost> costs, std::uint32_t entries,
            const ProcessorSetup& processors, bool traced)
        : MessagePath(seed, replication, machines, std::move(places), std::move(costs), entries,
                      processors),
          traced_(traced),
          logs_(traced) {}

    static const char* event_name(std::uint32_t kind) {
        if (kind < first_own) return event_names[kind];
        constexpr std::array own{"a client dies",       "a client goes on",    "a client is awake",
                                 "a server stops",      "a server comes back", "asked again",
                                 "a server fails over", "a server rejoins"};
        return kind - first_own < own.size() ? own[kind - first_own] : "the protocol's own";
    }

    const std::vector<Row>& trace() const { return trace_; }
    std::vector<std::string> findings() const {
        return checker_ ? checker_->findings() : std::vector<std::string>();
    }

  protected:
    void log(RowKind kind, std::int64_t client, std::int64_t number, std::int64_t a,
             std::int64_t b = 0) {
        if (!logs_) return;
        const Row row{clock.now(), static_cast<std::int64_t>(kind), client, number, a, b};
        if (traced_) trace_.push_back(row);
        if (checker_) checker_->add(row);
    }
    void check(std::size_t clients, std::int64_t records, std::size_t versions) {
        checker_.emplace(clients, records, versions);
        logs_ = true;
    }
    std::optional<HistoryChecker> checker_;  // of runs that are checked as they go

  private:
    void note(const Message& received) final {
        log(RowKind::message, received.sender, received.receiver, received.type);
    }

    std::vector<Row> trace_;
    bool traced_;
    bool logs_;
};

// Clients in a closed loop, and what both protocols share.
class Commits : public Cluster {
  public:
    Commits(const CommitSetup& setup, const KeyDraws& keys, const Durations& think,
            const Durations& compute, std::uint64_t seed, std::uint64_t replication);

    std::uint64_t committed() const { return committed_; }
    std::uint64_t given_up() const { return given_up_; }
    const std::array<std::uint64_t, causes>& aborts() const { return aborts_; }
    const Histogram& latency_ps() const { return latency_; }
    Wide latency_total_ps() const { return latency_total_; }
    std::uint32_t clients() const { return static_cast<std::uint32_t>(client_.size()); }
    std::size_t touched_records() const { return record_.touched(); }
    // Of clients that live: those that have begun a transaction and not ended it.
    std::vector<std::uint32_t> busy_clients() const;
    std::vector<std::uint32_t> stopped_clients() const;  // dead or fenced
    // Records that are locked, and by whom.
    std::vector<std::pair<std::int64_t, std::int64_t>> locked_records();
    // Storage servers that were out and have their records again: when, and on which machine.
    const std::vector<std::pair<Time, std::uint32_t>>& rejoins() const { return rejoins_; }
    // For how long a storage server was stopped or out.
    Time degraded_ps() const {
        return degraded_ + (absent_ > 0 ? clock.now() - degraded_since_ : 0);
    }
    // Nothing is under way any more.
    void end_check() {
        if (checker_) checker_->end();
    }

  protected:
    enum EventKind : std::uint32_t {
        died = first_own,
        resumed,
        awake,
        node_stops,
        node_returns,
        asked_again,
        node_fails_over,
        node_rejoins,
        first_own_of_protocol
    };
    enum Plant : std::uint32_t {
        no_plant,
        lock_kept,           // an abort does not unlock
        timestamp_reused,    // that of an abort
        early_acknowledged,  // before all is installed
        not_fenced,          // locks are broken, and their owner goes on
        doubled,             // a prepare that is late is taken for another one
        clocks_trusted,      // a fenced owner's WRITEs are not undone: within its lease all landed
        nothing_copied       // a server that rejoins answers without what it missed
    };

    struct Client {
        Stream keys, think;
        std::int64_t transaction = -1, ended = -1;
        std::int64_t created = 0;
        std::int64_t snapshot = 0;
        Time began = 0;
        std::uint32_t tries = 0;
        std::uint32_t copy_uses = 0;
        std::uint32_t phase = 0;    // what it does when it goes on; the protocol's own from 2 on
        std::uint32_t left = 0;     // answers that it waits for
        std::int64_t dies_at = -1;  // a Step
        bool rests = false;         // begins no transaction any more
    };
    enum Phase : std::uint32_t { next_transaction, next_try, first_own_phase };

    void happened(const Event& event) override;
    virtual void happened_to_protocol(const Event& event) = 0;
    // Asks for the highest committed timestamp; then calls begun().
    virtual void fetch_snapshot(std::uint32_t client) = 0;
    // Reads and commits on the client's snapshot; then calls end_committed() or end_aborted().
    virtual void transact(std::uint32_t client) = 0;
    virtual void resume(std::uint32_t client) = 0;
    // Of types of messages: whether one answers another, which then has the number before.
    virtual bool answers(std::uint32_t type) const = 0;
    // A message that was lost is of no more use to its asker.
    virtual void drop(std::uint32_t message) = 0;
    // What comes of a request to a storage server that is out.
    virtual void instead(std::uint32_t message) = 0;
    // Is to be sent again, as it was at first.
    virtual void renew(std::uint32_t) {}
    // Whether the asker still waits for it.
    virtual bool wanted(const Message& message) const { return !stopped_client(asker(message)); }
    virtual void returned(std::uint32_t /*machine*/) {}
    // Whether nothing is under way but what clients do.
    virtual bool quiet() { return true; }
    void look_whether_quiet();

    void lost(std::uint32_t message) final;
    std::uint32_t asker(const Message& f) const { return answers(f.type) ? f.receiver : f.sender; }
    bool stopped_client(std::uint32_t place) const {
        return place < clients() && has_stopped(place);
    }
    // It dies here where it was to do so.
    void reaches(std::uint32_t client, Step step) {
        if (client_[client].dies_at == step) [[unlikely]]
            die(client);
    }
    void die(std::uint32_t client);

    void begun(std::uint32_t client, bool fetched);
    void end_committed(std::uint32_t client, std::int64_t cid);
    void end_aborted(std::uint32_t client, std::int64_t cause);
    // Logs the versions read; whether none of them was dropped.
    bool log_reads(std::uint32_t client);

    // The client's own time passes, then it goes on in that phase.
    const Durations compute_;  // a client's own work
    void pause(std::uint32_t client, Time ps, std::uint32_t phase);
    // What the clock of its machine says.
    Time time_at(std::uint32_t place) const {
        Time time = clock.now();
        for (const ClockFault& fault : setup_.clock_faults)
            if (fault.machine == places_[place].machine) time += fault.off_ps(clock.now());
        return time;
    }
    // The client works, then it goes on in that phase.
    void compute(std::uint32_t client, Time ps, std::uint32_t phase);
    void give_way(std::uint32_t client);
    // In that phase, in an event of its own at this time.
    void wake(std::uint32_t client, std::uint32_t phase) {
        client_[client].phase = phase;
        schedule(clock.now(), resumed, client);
    }
    void go_on(std::uint32_t client);
    void log(RowKind kind, std::uint32_t client, std::int64_t a, std::int64_t b = 0) {
        Cluster::log(kind, client, client_[client].transaction, a, b);
    }

    std::int64_t& read_key(std::uint32_t client, std::uint32_t slot) {
        return key_[client * setup_.reads + slot];
    }
    std::int64_t& version_read(std::uint32_t client, std::uint32_t slot) {
        return versions_read_[client * setup_.reads + slot];
    }
    // What the present transaction writes: updates, then what it creates.
    std::uint32_t writes() const { return setup_.updates + setup_.inserts; }
    std::int64_t written_key(std::uint32_t client, std::uint32_t slot) {
        if (slot < setup_.updates) return read_key(client, slot);
        const std::int64_t number = client_[client].created + slot - setup_.updates;
        return setup_.records + client + static_cast<std::int64_t>(clients()) * number;
    }
    // Indices of storage servers, and the places of nodes.
    std::uint32_t server_of(std::int64_t key) const {
        return server_of_key(key, setup_.records, clients(), setup_.storage.size());
    }
    std::uint32_t node(std::uint32_t index) const { return clients() + index; }
    std::uint32_t storage(std::uint32_t server) const { return node(setup_.storage[server]); }
    // That which takes the messages of one client's transactions.
    std::uint32_t storage(std::uint32_t server, std::uint32_t client) const {
        if (setup_.own_storage.empty()) return storage(server);
        return node(setup_.own_storage[server * clients() + client]);
    }
    // The one at a place, or none.
    std::uint32_t server_at(std::uint32_t place) const;
    std::uint32_t timestamps() const { return node(setup_.timestamps); }

    // Copies of a record: 0 at its own server, 1 at the one after it.
    std::uint32_t copies() const { return 1 + setup_.replicas; }
    std::uint32_t holder(std::int64_t key, std::uint32_t copy) const {
        if (copy == 0) return server_of(key);
        return (server_of(key) + copy) % static_cast<std::uint32_t>(setup_.storage.size());
    }
    std::array<std::uint32_t, 2> neighbours(std::uint32_t server) const {
        const auto servers = static_cast<std::uint32_t>(setup_.storage.size());
        return {(server + 1) % servers, (server + servers - 1) % servers};
    }
    // Failed over, and not back.
    bool is_out(std::uint32_t server) const { return any_out_ && out_[server]; }
    // The one that a record is read from.
    std::uint32_t reader(std::int64_t key) const { return holder(key, is_out(server_of(key))); }
    // Of the copy at a place.
    std::uint32_t find(std::int64_t key, std::uint32_t place) {
        const bool other = setup_.replicas > 0 && place != storage(server_of(key));
        return find_copy(key, other);
    }
    std::uint32_t find_copy(std::int64_t key, std::uint32_t copy) {
        const bool lost = any_forgot_ && forgot_[server_of(key)];
        return record_.find(key | std::int64_t{copy} << copy_bit, lost ? Records::dropped : 0);
    }
    static constexpr int copy_bit = 61;  // of a key
    // Of the first so many records that a transaction writes, calls with the slot and the copy of
    // each server that answers for it.
    template <class Act>
    void at_holders(std::uint32_t client, std::uint32_t slots, const Act& act) {
        if (setup_.replicas == 0) {
            for (std::uint32_t slot = 0; slot < slots; ++slot) act(slot, 0u);
            return;
        }
        for (std::uint32_t slot = 0; slot < slots; ++slot)
            for (std::uint32_t copy = 0; copy < copies(); ++copy)
                if (!any_out_ || !out_[holder(written_key(client, slot), copy)]) act(slot, copy);
    }
    // How many these are.
    std::uint32_t held(std::uint32_t client, std::uint32_t slots) {
        if (!any_out_) return slots * copies();
        std::uint32_t count = 0;
        at_holders(client, slots, [&](std::uint32_t, std::uint32_t) { ++count; });
        return count;
    }

    const CommitSetup setup_;
    const bool faulty_;  // servers stop or paths fail
    std::vector<Client> client_;
    Records record_;

  private:
    void ask_again(std::uint32_t message);
    void node_changes(const Event& event);
    void look_after(std::uint32_t server);
    void fail_over(const Event& event);
    void begin_copy(std::uint32_t server);
    void rejoin(const Event& event);
    void end_drain();
    void copy_records(std::uint32_t server);
    std::int64_t missed(std::uint32_t server);
    void count_degraded(int change);
    void forget(std::uint32_t server);
    void begin_transaction(std::uint32_t client);
    void begin_try(std::uint32_t client);

    const KeyDraws keys_;
    const Durations think_;
    std::vector<bool> out_, forgot_;  // by storage server
    bool any_out_ = false, any_forgot_ = false;
    // Of a server that comes back after its replica took over.
    struct Return {
        bool is_back = false, empty = false;
        std::uint64_t turn = 0;  // how often it stopped or came back
    };
    std::vector<Return> return_;          // by storage server
    std::uint32_t drains_ = none;         // for which nothing begins until all has ended
    std::vector<std::uint32_t> waiting_;  // clients meanwhile
    std::vector<std::pair<Time, std::uint32_t>> rejoins_;
    int absent_ = 0;  // storage servers
    Time degraded_ = 0, degraded_since_ = 0;
    std::vector<std::int64_t> key_;            // (clients, reads)
    std::vector<std::int64_t> versions_read_;  // (clients, reads): versions
    std::uint64_t committed_ = 0;
    std::uint64_t given_up_ = 0;
    std::array<std::uint64_t, causes> aborts_{};
    Histogram latency_;
    Wide latency_total_ = 0;
};

}  // namespace numatwin
