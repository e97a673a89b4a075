// Timestamp services: a counter for 2PC, a bit vector for RSI; both know the leading run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

namespace numatwin {

// Hands out timestamps from 1 on, and knows up to where all of them are done with.
class TimestampCounter {
  public:
    std::int64_t highest() const { return highest_; }
    std::int64_t next() {
        done_.push_back(0);
        return highest_ + static_cast<std::int64_t>(done_.size());
    }
    void finish(std::int64_t cid) {
        if (cid <= highest_) return;
        done_[static_cast<std::size_t>(cid - highest_ - 1)] = 1;
        for (; !done_.empty() && done_.front(); done_.pop_front()) ++highest_;
    }

  private:
    std::int64_t highest_ = 0;
    std::deque<std::uint8_t> done_;  // of highest_ + 1, highest_ + 2, …
};

// RSI's bits, a claim beside each. Client i of n owns 1 + i, 1 + i + n, …; a bit is used again once
// the leading run has passed it. The protocol: ../reference/one_sided.py.
class TimestampVector {
  public:
    TimestampVector(std::int64_t clients, std::int64_t bits)
        : clients_(clients),
          lap_(bits / clients * clients),
          state_(static_cast<std::size_t>(lap_), unset),
          retired_(static_cast<std::size_t>(clients), 0) {}

    std::int64_t lap() const { return lap_; }
    std::int64_t highest() const { return highest_; }
    std::int64_t top() const { return top_; }  // the highest that was claimed or set
    std::int64_t owner(std::int64_t cid) const { return (cid - 1) % clients_; }

    // The client's first timestamp above that one.
    std::int64_t next_of(std::int64_t client, std::int64_t above) const {
        return client + 1 +
               (above <= client ? 0 : ((above - client - 1) / clients_ + 1) * clients_);
    }

    // False where it was set in the client's stead.
    bool claim(std::int64_t cid) {
        if (cid <= highest_ || at(cid) != unset) return false;
        at(cid) = claimed;
        top_ = std::max(top_, cid);
        return true;
    }

    // False where it was set before.
    bool set(std::int64_t cid) {
        if (cid <= highest_ || at(cid) == done) return false;
        at(cid) = done;
        top_ = std::max(top_, cid);
        advance();
        return true;
    }

    // Sets what nobody claimed below the highest used; how many these were.
    std::int64_t skip() {
        std::int64_t count = 0;
        for (std::int64_t cid = std::max(highest_, skipped_to_) + 1; cid <= top_; ++cid) {
            if (at(cid) != unset) continue;
            at(cid) = done;
            ++count;
        }
        skipped_to_ = top_;
        advance();
        return count;
    }

    // The client's first timestamp that it has claimed and not set; where clients do not claim, the
    // first that is not set. What others set in its stead may lie above and below.
    std::int64_t first_open(std::int64_t client, bool claims) {
        std::int64_t cid = next_of(client, highest_);
        while (cid <= top_ && (claims ? at(cid) != claimed : at(cid) == done)) cid += clients_;
        return cid;
    }

    // From now on the client's timestamps count as set; those that this set.
    std::vector<std::int64_t> retire(std::int64_t client) {
        std::vector<std::int64_t> fresh;
        for (std::int64_t cid = next_of(client, highest_); cid <= top_; cid += clients_)
            if (std::exchange(at(cid), done) != done) fresh.push_back(cid);
        retired_[static_cast<std::size_t>(client)] = 1;
        advance();
        return fresh;
    }

  private:
    enum State : std::uint8_t { unset, claimed, done };

    std::uint8_t& at(std::int64_t cid) { return state_[static_cast<std::size_t>(cid % lap_)]; }

    void advance() {
        while (highest_ < top_) {
            const std::int64_t following = highest_ + 1;
            if (at(following) != done && !retired_[static_cast<std::size_t>(owner(following))])
                return;
            at(following) = unset;
            highest_ = following;
        }
    }

    std::int64_t clients_;
    std::int64_t lap_;
    std::int64_t highest_ = 0;
    std::int64_t top_ = 0;
    std::int64_t skipped_to_ = 0;
    std::vector<std::uint8_t> state_;
    std::vector<std::uint8_t> retired_;
};

}  // namespace numatwin
