// RSI, snapshot isolation by one-sided verbs: ../reference/one_sided.py.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "systems/commits/kernel/commits.hpp"

namespace numatwin {

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
    bool is_fenced(std::uint32_t node_place, std::uint32_t client) const {
        if (fence_.empty()) [[likely]]
            return false;
        const auto& at_node = fenced_[node_place - clients()];
        return std::find(at_node.begin(), at_node.end(), client) != at_node.end();
    }
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

extern template bool Simulation::run(OneSidedCommits&, Time, Interrupt*);

}  // namespace numatwin
