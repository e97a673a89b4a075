// A client under 2PC: reads its records from their servers, and asks a transaction manager.
#pragma once

#include <vector>

#include "systems/commits/commit_client.hpp"
#include "systems/commits/two_phase_messages.hpp"

namespace numatwin::native {

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

}  // namespace numatwin::native
