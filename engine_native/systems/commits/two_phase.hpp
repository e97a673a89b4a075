// A server under 2PC: timestamp service, transaction manager (TM), resource manager (RM) of its
// records, or several of them. One thread serves one message after another.
//
//     client → TM         commit request                                      (1)
//     TM ↔ timestamps     the commit timestamp CID                            (2)
//     TM ↔ every RM       prepare: no record of the write set has a CID
//                         above RID, none is locked; lock them                (3), beside (2)
//     TM ↔ every RM       commit: install and unlock                          (4)
//     TM → client         outcome                                             (6), beside (4)
//     TM → timestamps     installed                                           (5)
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

// The simulator's: a counter that knows up to where all its timestamps are done with.
#include "memory/mapping.hpp"
#include "systems/commits/board.hpp"
#include "systems/commits/commit_client.hpp"
#include "systems/commits/kernel/timestamps.hpp"
#include "systems/commits/record_block.hpp"

namespace numatwin::native {

// Messages of snapshot isolation by 2PC: a head, keys of records, then payloads.

struct TwoPhaseHead {
    TwoPhase::Type type{};
    std::uint32_t from = 0;  // role
    std::uint32_t client = 0;
    std::uint32_t updates = 0;  // of the keys aboard, the first ones; the others are inserts
    std::uint32_t inserts = 0;
    std::uint32_t slot = 0;  // a read's place among its transaction's
    std::int64_t transaction = 0;
    std::int64_t rid = 0;
    std::int64_t cid = 0;
    std::int64_t vote = granted;  // or a cause
};

// Builds one message at a time in a buffer that it keeps.
class TwoPhaseMessage {
  public:
    TwoPhaseMessage& start(const TwoPhaseHead& head) {
        bytes_.resize(sizeof head);
        std::memcpy(bytes_.data(), &head, sizeof head);
        return *this;
    }
    TwoPhaseMessage& add(const void* from, std::size_t bytes) {
        const std::size_t at = bytes_.size();
        bytes_.resize(at + bytes);
        std::memcpy(&bytes_[at], from, bytes);
        return *this;
    }
    TwoPhaseMessage& add_key(std::int64_t key) { return add(&key, sizeof key); }
    std::span<const std::byte> bytes() const { return bytes_; }

  private:
    std::vector<std::byte> bytes_;
};

// What came.
class TwoPhaseView {
  public:
    explicit TwoPhaseView(std::span<const std::byte> message) : message_(message) {
        std::memcpy(&head_, message.data(), sizeof head_);
    }
    const TwoPhaseHead& head() const { return head_; }
    std::uint32_t keys() const { return head_.updates + head_.inserts; }
    std::int64_t key(std::uint32_t at) const {
        std::int64_t found;
        std::memcpy(&found, &message_[sizeof head_ + at * sizeof found], sizeof found);
        return found;
    }
    std::span<const std::byte> rest() const {
        return message_.subspan(sizeof head_ + keys() * sizeof(std::int64_t));
    }

  private:
    std::span<const std::byte> message_;
    TwoPhaseHead head_;
};

// A client under 2PC: reads its records from their servers, and asks a transaction manager.

class TwoPhaseClient final : public CommitClient {
  public:
    using CommitClient::CommitClient;
    void connect() override;

  protected:
    std::int64_t fetch_snapshot() override;
    Cause transact() override;

  private:
    void post(std::uint32_t role, const TwoPhaseMessage& message);
    // The next message of that type about this transaction.
    TwoPhaseView await(TwoPhase::Type type);
    TwoPhaseHead head(TwoPhase::Type type) const;

    std::vector<Fabric::Peer> peers_;  // by node
    TwoPhaseMessage message_;
    std::vector<std::byte> answer_;
    std::vector<std::int64_t> seen_;
    std::vector<std::int64_t> stock_;
    std::vector<std::byte> payload_;
};

class TwoPhaseNode final : public CommitNode {
  public:
    using CommitNode::CommitNode;
    void load() override;

  protected:
    void handle(std::span<const std::byte> message) override;
    void greet() override;
    bool connected() const override { return greeted_ == 0; }

  private:
    // A transaction at its manager; what it writes is kept as it came.
    struct Managed {
        std::vector<std::byte> request;
        std::vector<std::vector<std::uint32_t>> at;  // by storage server: places among the keys
        std::uint32_t left = 0;                      // answers that are to come
        std::int64_t cid = 0;
        std::int64_t vote = granted;
        bool decided = false;
        std::vector<std::int64_t> votes;  // by storage server
    };

    void deliver(std::span<const std::byte> message);
    void post(std::uint32_t role, const TwoPhaseMessage& message);
    // What goes back to who sent `head`; without keys.
    TwoPhaseHead answer_to(const TwoPhaseHead& head, TwoPhase::Type type) const;
    // As timestamp service.
    void serve_timestamps(const TwoPhaseHead& head);
    // As resource manager.
    void read(const TwoPhaseView& view);
    void prepare(const TwoPhaseView& view);
    void install(const TwoPhaseView& view);
    void roll_back(const TwoPhaseView& view);
    std::int64_t vote_on(const TwoPhaseView& view);
    RecordBlock record(std::int64_t key);
    // As transaction manager.
    void manage(std::span<const std::byte> message);
    void answered(const TwoPhaseHead& head);
    void decide(std::uint64_t id, Managed& managed);
    void send_install(Managed& managed, std::size_t server);
    // Of that type, with the keys that the server is to update.
    void send_updates(const Managed& managed, std::size_t server, TwoPhase::Type type);
    void finish(std::uint64_t id, Managed& managed, RowKind kind);
    bool takes_part(const Managed& managed, std::size_t server) const {
        return setup_.every_rm || !managed.at[server].empty();
    }
    TwoPhaseHead head_for(const Managed& managed, TwoPhase::Type type) const;
    static std::uint64_t id_of(const TwoPhaseHead& head) {
        return static_cast<std::uint64_t>(head.transaction) * LockWord::owners_max * 8 +
               head.client;
    }

    std::uint32_t greeted_ = 0;
    TimestampCounter counter_;
    std::optional<Mapping> records_;  // blocks, whose words are locked as RSI's are
    std::unordered_map<std::uint64_t, Managed> managed_;
    TwoPhaseMessage message_;
    std::deque<std::vector<std::byte>> own_;  // messages to itself
};

}  // namespace numatwin::native
