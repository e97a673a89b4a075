// Transactions on a cluster: snapshot isolation by 2PC, and by one-sided verbs (RSI).
//
// The protocols are written out in ../reference/two_phase.py and one_sided.py; these models are
// the same as state machines, and give the same trace, row for row. Where several things happen at
// one time, they happen in the order in which SimPy's processes would do them: a client that has
// waited for several answers goes on in an event of its own.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernel/durations.hpp"
#include "kernel/key_draws.hpp"
#include "kernel/philox.hpp"
#include "kernel/statistics.hpp"
#include "systems/commits/kernel/cluster.hpp"
#include "systems/commits/kernel/commit_setup.hpp"
#include "systems/commits/kernel/protocol.hpp"
#include "systems/commits/kernel/records.hpp"
#include "systems/commits/kernel/timestamps.hpp"

namespace numatwin {

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
    enum Step : std::int64_t { at_snapshot, at_read, at_lock, at_write, at_bit, at_commit };

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
        clock.schedule(clock.now(), resumed, client);
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

// Snapshot isolation by 2PC; a transaction manager runs each transaction's end.
class TwoPhaseCommits final : public Commits, private TwoPhase {
  public:
    TwoPhaseCommits(const CommitSetup& setup, const KeyDraws& keys, const Durations& think,
                    const Durations& compute, std::uint64_t seed, std::uint64_t replication);

  private:
    enum OwnPhase : std::uint32_t { have_read = first_own_phase, have_computed, have_outcome };
    enum OwnEvent : std::uint32_t { manager_resumed = first_own_of_protocol };

    // A transaction at its manager; it lives as long as messages about it.
    struct Managed {
        std::uint32_t client, manager;
        std::uint32_t left;  // answers that the manager waits for
        bool decided;
        std::uint32_t messages;  // that refer to it
        std::int64_t number, rid, cid, vote;
        // The manager's log, for when it comes back.
        std::uint32_t life;       // the manager's, when it began or resolved it
        std::uint32_t rollbacks;  // under way
        bool open, reported, over, resolves;
        std::uint64_t order;
    };
    // What a storage server knows of it.
    struct Share {
        std::int8_t vote;
        bool locked, installed;
        bool takes_part;
    };

    void delivered(std::uint32_t message) override;
    void drop(std::uint32_t message) override { release(message); }
    void instead(std::uint32_t message) override;
    void renew(std::uint32_t message) override;
    void came_late(std::uint32_t message) override;
    bool answers(std::uint32_t type) const override { return TwoPhase::answers(type); }
    bool wanted(const Message& message) const override;
    void returned(std::uint32_t machine) override;
    bool quiet() override;
    void happened_to_protocol(const Event& event) override;
    void fetch_snapshot(std::uint32_t client) override;
    void transact(std::uint32_t client) override;
    void resume(std::uint32_t client) override;

    void manage(std::uint32_t client, std::uint32_t manager);
    void manager_goes_on(std::uint32_t managed);
    void answered(std::uint32_t managed);
    std::int64_t check(std::uint32_t managed, std::uint32_t server);
    void roll_back(std::uint32_t managed, std::uint32_t server);
    void install_at(std::uint32_t managed, std::uint32_t server);
    void send(std::uint32_t managed, std::uint32_t type, std::uint32_t to,
              std::uint32_t server = none);
    void send_to_share(std::uint32_t managed, std::uint32_t type, std::uint32_t server) {
        send(managed, type, storage(server, managed_[managed].client), server);
    }
    void decide(std::uint32_t managed, std::int64_t vote);
    void resolve(std::uint32_t managed);
    void finish(std::uint32_t managed);
    void close(std::uint32_t managed);
    bool has_ended(const Managed& m) const {
        return m.over && m.rollbacks == 0 && (m.reported || has_stopped(m.client));
    }
    Share& share(std::uint32_t managed, std::uint32_t server) {
        return share_[managed * setup_.storage.size() + server];
    }
    void release(std::uint32_t message);
    void drop_reference(std::uint32_t managed);
    bool takes_part(std::uint32_t managed, std::uint32_t server) {
        return share(managed, server).takes_part;
    }
    // Whether a server has a copy of what is written there, its own or another's.
    bool lies_at(std::uint32_t managed, std::uint32_t slot, std::uint32_t server) const {
        const std::uint32_t own = server_[managed * writes() + slot];
        return own == server || (setup_.replicas > 0 && holder(key_of(managed, slot), 1) == server);
    }
    std::uint32_t find_at(std::uint32_t managed, std::uint32_t slot, std::uint32_t server) {
        return find_copy(key_of(managed, slot), server_[managed * writes() + slot] != server);
    }
    // How many of the written keys from slot `from` to `to` lie at a server.
    std::uint32_t count_at(std::uint32_t managed, std::uint32_t server, std::uint32_t from,
                           std::uint32_t to) const;
    std::int64_t key_of(std::uint32_t managed, std::uint32_t slot) const {
        return written_[managed * writes() + slot];
    }

    TimestampCounter counter_;
    std::vector<Managed> managed_;
    std::vector<std::uint32_t> free_managed_;
    std::vector<std::int64_t> written_;  // (managed, writes)
    std::vector<std::uint32_t> server_;  // (managed, writes)
    std::vector<Share> share_;           // (managed, servers)
    std::uint64_t begun_ = 0;            // managed ones
    std::vector<std::int64_t> spare_;    // timestamps (a Plant)
    std::vector<std::int64_t> outcome_;  // (clients, 2): CID, vote
};

// RSI: clients commit with READ, CAS and WRITE.
class OneSidedCommits final : public Commits, private OneSided {
  public:
    OneSidedCommits(const CommitSetup& setup, const KeyDraws& keys, const Durations& think,
                    const Durations& compute, std::uint64_t seed, std::uint64_t replication);

  private:
    // What a client is about: it posts a phase's requests, and goes on when all are complete.
    enum OwnPhase : std::uint32_t {
        fetching = first_own_phase,
        reading,
        computing,
        polling,
        locking,
        claiming,
        writing,
        unlocking,
        breaking,
        setting_bit
    };
    enum OwnEvent : std::uint32_t {
        batch_posted = first_own_of_protocol,
        fence_done,   // subject: the owner
        fence_known,  // to those who wait for it
        one_posted,
        posting_goes_on,
        all_answered
    };

    struct OwnClient {
        std::int64_t next_cid = 0;
        std::int64_t known = 0;  // the highest committed timestamp when it last looked
        Time since = 0;          // when that last changed
        Time locking_since = 0;
        std::int64_t cause = granted;
        RowKind bit_row = RowKind::commit;
        std::int64_t bit_cid = 0, bit_end = 0;  // from there, each of its own before the end
        std::int64_t fetched = 0;
        std::int64_t top = 0;  // the highest timestamp used, as a claim or a fetch found it
        std::uint32_t unsignaled = 0;
        std::uint32_t reported = 0;  // locks checked for an expired lease
        bool claimed = false;
        bool claim_requested = false;
        bool polls = false;  // a fetch that begins no transaction
        // Without a doorbell: the phase's requests, and how many of them are posted.
        std::vector<std::uint32_t> batch;
        std::size_t posted = 0;
        bool all_posted = false, answered = false;
    };
    struct Word {  // a lock's, as a CAS found it
        std::int64_t status = granted, owner = 0;
        Time since = 0;
        bool expired = false;
    };
    struct Fence {
        std::uint32_t left = 0;
        std::uint32_t complaint = none;
        bool known = false;
        std::vector<std::uint32_t> waiting;  // complaints
    };

    void delivered(std::uint32_t message) override;
    void drop(std::uint32_t message) override { free_message(message); }
    void instead(std::uint32_t message) override;
    bool answers(std::uint32_t type) const override { return OneSided::answers(type); }
    bool quiet() override;
    void happened_to_protocol(const Event& event) override;
    void fetch_snapshot(std::uint32_t client) override;
    void transact(std::uint32_t client) override;
    void resume(std::uint32_t client) override;

    void install(const Message& f);
    void undo_at(std::uint32_t server, std::uint32_t owner, std::int64_t from_cid);
    std::int64_t skip_stalled(std::uint32_t client);
    void note_claim(std::uint32_t client);
    void post(std::uint32_t client, Time send, std::uint32_t phase);
    void post_next(std::uint32_t client);
    void was_posted(std::uint32_t client);
    void hand(std::uint32_t client, std::uint32_t message);
    void ring(std::uint32_t client);
    std::uint32_t request(std::uint32_t client, std::uint32_t type, std::uint32_t to);
    void at_memory(std::uint32_t message);
    void apply(Message& f);
    void shut_out(Message& f);
    void complete(std::uint32_t message);
    void fetched(std::uint32_t client);
    void fetch_ended(std::uint32_t client);
    void computed(std::uint32_t client);
    void lock_all(std::uint32_t client);
    void locked(std::uint32_t client);
    void claim_or_write(std::uint32_t client);
    void undo(std::uint32_t client);
    void complain_about_locks(std::uint32_t client);
    void give_up(std::uint32_t client);
    void set_bit(std::uint32_t client, RowKind row);
    void bit_posted(std::uint32_t client);
    void after_bit(std::uint32_t client);
    void complain(std::uint32_t client, std::int64_t owner);
    void handle_complaint(std::uint32_t message);
    void end_complaint(std::uint32_t message);
    void fence(std::int64_t owner, std::uint32_t complaint);
    void learn_of_fence(std::uint32_t client);
    bool is_fenced(std::uint32_t node_place, std::uint32_t client) const;
    bool has_expired(std::uint32_t client, std::uint32_t slot);
    // Of each copy of the records to be written.
    std::uint32_t words() const { return setup_.updates * copies(); }
    Word& word(std::uint32_t client, std::uint32_t index) {
        return word_[client * words() + index];
    }
    static constexpr std::int8_t gone = -2;  // of a CAS: its server is out

    // Whether it has seen another one set a timestamp a round or more above its next.
    bool lags(const OwnClient& own) const {
        return setup_.in_step && own.next_cid + clients() <= std::min(own.top, own.known + reach());
    }
    // How far above the run that it has seen a client may go.
    std::int64_t reach() const {
        const std::int64_t lap = vector_.lap();
        return setup_.timestamp_reach == 0 ? lap : std::min(lap, setup_.timestamp_reach);
    }

    TimestampVector vector_;
    std::vector<OwnClient> own_;
    std::vector<std::int64_t> newest_;                // (clients, reads)
    std::vector<Word> word_;                          // (clients, words())
    std::vector<std::vector<std::uint32_t>> fenced_;  // by node: clients
    std::vector<std::uint32_t> fence_of_;             // by client: index into fence_, or none
    std::vector<Fence> fence_;
    // By (storage server, client), where fencing undoes: the records of its newest version there.
    struct Installed {
        std::int64_t cid = 0;
        std::vector<std::int64_t> keys;
    };
    std::vector<Installed> installed_;
    std::int64_t suspect_ = 0;
    Time suspect_since_ = 0;
};

}  // namespace numatwin
