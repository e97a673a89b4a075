// Clients and servers on a network: what commits' messages hold, and the trace of what happens.
//
// The way of the messages is that of machine/kernel/message_path.hpp; clients come first among the
// places, then nodes. The same, in plain SimPy, row for row: ../reference/cluster.py.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "machine/kernel/message_path.hpp"
#include "systems/commits/kernel/history_checker.hpp"
#include "systems/commits/kernel/history_row.hpp"
#include "systems/commits/kernel/protocol.hpp"

namespace numatwin {

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

}  // namespace numatwin
