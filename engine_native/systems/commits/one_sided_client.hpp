// RSI: snapshot isolation by one-sided verbs; a client is its own transaction manager.
//
//     READ  the timestamps' bits: their leading run ends at the snapshot RID
//     READ  a block per record: its newest versions; the one that the snapshot sees is v
//     CAS   a block's first word, per record of the write set: (unlocked, v) → (locked, v)
//     WRITE a block per record written or created: new version in front, unlocked; wait for them
//     add   the timestamp's bit, unsignaled: committed
//
// Where a CAS fails: unlock what was locked, and abort; the timestamp's bit is set all the same
// where the leading run may wait for it. Who sees that others are a round ahead, having waited for
// a processor, sets its own up to theirs together with its next bit: the run would stand at each of
// them, and all would abort on old snapshots meanwhile. The protocol with its two remedies stands
// in sim/systems/commits/reference/one_sided.py; how it differs on real memory, in README.md of
// this folder.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "systems/commits/commit_client.hpp"
#include "systems/commits/record_block.hpp"
#include "systems/commits/timestamp_bits.hpp"

namespace numatwin::native {

// To the timestamp server: about the owner of a lock that outlived its lease, or about a snapshot
// that stands still. Answered, by any message, when something has been done about it.
struct Complaint {
    static constexpr std::int64_t about_snapshot = -1, about_nothing = -2;

    std::uint32_t type;
    std::uint32_t from;
    std::int64_t owner;
};

class OneSidedClient final : public CommitClient {
  public:
    OneSidedClient(const RunSetup& setup, Board& board, std::uint32_t client, Fabric& fabric);

    void connect() override;

    // A transaction in two steps, for benchmarks: reads and makes the new blocks; then locks,
    // installs and sets the bit.
    Cause prepare();
    Cause commit();
    void begin_next() {
        draw_.next();
        snapshot_ = fetch_snapshot();
    }

  protected:
    std::int64_t fetch_snapshot() override;
    Cause transact() override;

  private:
    struct Lock {
        Cause status = granted;
        std::uint64_t word = 0;  // as the CAS, or the READ, found it
    };
    struct Address {
        Fabric::Peer server;
        std::uint64_t at;
    };

    Address address_of(std::int64_t key) const {
        return {servers_[setup_.server_of(key)], setup_.block_of(key) * setup_.block_bytes()};
    }
    const Address& written_at(std::size_t slot) const {
        return address_[slot < setup_.updates ? slot : setup_.reads + slot - setup_.updates];
    }
    RecordBlock block(std::byte* memory) const {
        return {memory, setup_.versions, setup_.record_bytes};
    }
    RecordBlock seen(std::size_t read) { return block(&seen_[read * setup_.block_bytes()]); }
    bool leases() const { return setup_.lease_ns > 0; }
    bool claims() const { return setup_.skip_after_ns > 0; }
    bool remedied() const { return leases() || claims(); }
    // The request's type; the answer's is the next one.
    void count(OneSided::Type type, std::uint64_t by = 1) {
        counters().messages[static_cast<std::size_t>(type)].add(by);
        counters().messages[static_cast<std::size_t>(type) + 1].add(by);
    }

    std::int64_t look_at_vector();
    std::int64_t look_at_words();
    std::uint64_t vector_word(std::size_t at) const;
    std::uint64_t read_word(Fabric::Peer peer, std::uint64_t at);
    Cause read_all();
    bool look(std::size_t read, std::uint64_t second_word);
    Cause check_reads();
    void wait_for_timestamps();
    Cause lock_all();
    void want_what_stands();
    Cause cause_of_refusal();
    Cause claim_all(Cause cause);
    Cause install();
    void make_blocks();
    void trace_writes();
    void write_blocks();
    void set_bit(RowKind kind);
    void add_bits(const TimestampBits::Bit& bit);
    Cause abort(Cause cause);
    void unlock_all();
    void break_expired();
    void complain(std::int64_t owner);
    void raise_floor();
    // Whether its bit is no longer one of the lap before, for anybody who looks at it.
    bool owns_timestamp() const {
        return next_cid_ <= (remedied() ? floor_ + bits_.lap() : known_ + bits_.reach());
    }

    // Whether another one has set a timestamp a round or more above its next; without remedies.
    bool lags() const { return next_cid_ <= lags_below_; }

    static constexpr int looks_max = 16;

    const TimestampBits bits_;
    std::vector<Fabric::Peer> servers_;
    Fabric::Peer timestamps_ = 0;
    std::vector<std::byte> vector_;   // floor, padding, bits
    std::vector<std::byte> seen_;     // a block for each read
    std::vector<std::byte> written_;  // a block for each write
    std::vector<Address> address_;    // of each read, then of each record that is created
    std::vector<std::uint64_t> second_, wanted_, words_;
    std::vector<Lock> locks_;
    std::vector<std::uint64_t> addends_;  // of adds that may be under way
    std::vector<std::byte> message_;

    std::int64_t next_cid_;
    std::int64_t top_ = 0;         // without remedies, the highest set one that it has seen
    std::int64_t lags_below_ = 0;  // a round below that, as far as it may go
    std::int64_t floor_ = 0;       // with remedies, as it was last seen
    std::int64_t known_ = 0;       // the end of the leading run when it last looked
    std::int64_t since_ns_ = 0;    // since when it saw the same
    std::int64_t locking_ns_ = 0;
    std::uint32_t unsignaled_ = 0;  // adds since the last that was waited for
    TimestampBits::Bit bit_{};      // of the timestamp bit_cid_, known beforehand
    std::int64_t bit_cid_ = 0;
    bool claimed_ = false;
    std::optional<std::uint64_t> claim_word_;  // as it was last seen
    std::uint64_t claim_at_ = 0;
};

// A server under RSI: memory that clients reach by themselves; and, with remedies, who hears their
// complaints at the timestamp server.

class OneSidedNode final : public CommitNode {
  public:
    OneSidedNode(const RunSetup& setup, Board& board, std::uint32_t node, Fabric& fabric);

    void load() override;

  protected:
    void handle(std::span<const std::byte> message) override;
    void tick() override;
    bool busy() const override { return !fencing_.empty() || any_retired_; }

  private:
    std::byte* at(std::uint64_t offset) { return region_.data() + offset; }
    std::int64_t floor();
    void raise_floor();
    std::int64_t top();
    bool is_set(std::int64_t cid);
    bool is_claimed(std::int64_t cid);
    bool claim(std::int64_t cid);
    void set(std::int64_t cid);
    void answer(std::uint32_t client);
    void retire(std::uint32_t owner);
    // Sets what nobody claimed below the highest used; an owner to fence, or below 0.
    std::int64_t skip_stalled();

    struct Fencing {
        std::uint32_t owner, complainant;
    };

    const bool is_timestamps_;
    const TimestampBits bits_;
    std::span<std::byte> region_;
    std::vector<Fencing> fencing_;
    std::vector<std::uint8_t> retired_;
    bool any_retired_ = false;
    std::int64_t suspect_ = 0, suspect_since_ns_ = 0;
};

}  // namespace numatwin::native
