// Snapshot isolation by 2PC: ../reference/two_phase.py.
#pragma once

#include <cstdint>
#include <vector>

#include "systems/commits/kernel/commits.hpp"

namespace numatwin {

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
    void renew(std::uint32_t message) override { fill(messages_[message]); }
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
    // The manager forgets what is over, where it may have to resolve it.
    void close(std::uint32_t managed) {
        if (faulty_) [[unlikely]]
            forget_if_over(managed);
    }
    void forget_if_over(std::uint32_t managed);
    bool has_ended(const Managed& m) const {
        return m.over && m.rollbacks == 0 && (m.reported || has_stopped(m.client));
    }
    Share& share(std::uint32_t managed, std::uint32_t server) {
        return share_[managed * setup_.storage.size() + server];
    }
    // Items and work of a request, as it was at first.
    [[gnu::always_inline]] void fill(Message& f) const {
        switch (f.type) {
            case read:
                f.work = setup_.work.read_ps;
                return;
            case commit_request:
                f.items = writes();
                return;
            case prepare:
            case rollback:
                f.items = count_at(f.context, f.slot, 0, setup_.updates);
                f.work = f.items * setup_.work.check_ps;
                return;
            case install:
                f.items = count_at(f.context, f.slot, 0, writes());
                f.work = f.items * setup_.work.install_ps;
                return;
            default:
                return;
        }
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

extern template bool Simulation::run(TwoPhaseCommits&, Time, Interrupt*);

}  // namespace numatwin
