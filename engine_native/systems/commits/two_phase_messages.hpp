// Messages of snapshot isolation by 2PC: a head, keys of records, then payloads.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "systems/commits/board.hpp"

namespace numatwin::native {

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
    TwoPhaseMessage& add_zeros(std::size_t bytes) {
        bytes_.resize(bytes_.size() + bytes);
        return *this;
    }
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

}  // namespace numatwin::native
