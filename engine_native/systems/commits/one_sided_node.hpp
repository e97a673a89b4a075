// A server under RSI: memory that clients reach by themselves; and, with remedies, who hears their
// complaints at the timestamp server.
#pragma once

#include <deque>
#include <vector>

#include "systems/commits/commit_node.hpp"
#include "systems/commits/one_sided_client.hpp"
#include "systems/commits/timestamp_bits.hpp"

namespace numatwin::native {

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
    void fence(std::uint32_t owner);
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
