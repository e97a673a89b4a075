// Records of a storage with several versions and a lock each; those never touched take no room.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernel/event_queue.hpp"

namespace numatwin {

// By key: open addressing, linear probing, at most half full. A record is found by an index, which
// stays its own; its versions are `keep` timestamps, the newest first, and at first only 0.
class Records {
  public:
    static constexpr std::int64_t free = -1;
    static constexpr std::int64_t dropped = -1;  // a version that is no longer kept

    struct Lock {
        std::int64_t owner = free;
        Time since = 0;
    };

    explicit Records(std::uint32_t keep) : keep_(keep), slot_(1024, 0) {}

    // `first`: the version of a record that was not touched before.
    std::uint32_t find(std::int64_t key, std::int64_t first = 0) {
        std::size_t at = place(key);
        while (slot_[at] != 0) {
            if (key_[slot_[at] - 1] == key) return slot_[at] - 1;
            at = (at + 1) & (slot_.size() - 1);
        }
        key_.push_back(key);
        lock_.emplace_back();
        version_.insert(version_.end(), keep_, dropped);
        version_[version_.size() - keep_] = first;
        slot_[at] = static_cast<std::uint32_t>(key_.size());
        if (2 * key_.size() > slot_.size()) grow();
        return static_cast<std::uint32_t>(key_.size() - 1);
    }

    Lock& lock(std::uint32_t record) { return lock_[record]; }
    std::int64_t newest(std::uint32_t record) const { return version_[first(record)]; }

    // The newest version that a snapshot sees, or `dropped`.
    std::int64_t visible(std::uint32_t record, std::int64_t rid) const {
        for (std::size_t at = first(record); at < first(record) + keep_; ++at)
            if (version_[at] <= rid) return version_[at];
        return dropped;
    }

    // A new version in front, which unlocks; the oldest goes where there are too many.
    void install(std::uint32_t record, std::int64_t cid) {
        const auto begin = version_.begin() + static_cast<std::ptrdiff_t>(first(record));
        std::copy_backward(begin, begin + keep_ - 1, begin + keep_);
        *begin = cid;
        lock_[record].owner = free;
    }

    // All versions of another one, unlocked.
    void copy(std::uint32_t from, std::uint32_t to) {
        std::copy_n(version_.begin() + static_cast<std::ptrdiff_t>(first(from)), keep_,
                    version_.begin() + static_cast<std::ptrdiff_t>(first(to)));
        lock_[to] = {};
    }

    // The newest version goes.
    void undo(std::uint32_t record) {
        const auto begin = version_.begin() + static_cast<std::ptrdiff_t>(first(record));
        std::copy(begin + 1, begin + keep_, begin);
        *(begin + keep_ - 1) = dropped;
    }

    // All versions go, and the lock.
    void forget(std::uint32_t record) {
        std::fill_n(version_.begin() + static_cast<std::ptrdiff_t>(first(record)), keep_, dropped);
        lock_[record] = {};
    }

    // Unlocks if that owner holds it; whether it did.
    bool unlock(std::uint32_t record, std::int64_t owner) {
        if (lock_[record].owner != owner) return false;
        lock_[record].owner = free;
        return true;
    }

    std::size_t touched() const { return key_.size(); }
    std::int64_t key(std::uint32_t record) const { return key_[record]; }

  private:
    std::size_t first(std::uint32_t record) const {
        return static_cast<std::size_t>(record) * keep_;
    }
    std::size_t place(std::int64_t key) const {
        return (static_cast<std::uint64_t>(key) * 0x9E3779B97F4A7C15u >> 20) & (slot_.size() - 1);
    }
    void grow() {
        slot_.assign(2 * slot_.size(), 0);
        for (std::size_t record = 0; record < key_.size(); ++record) {
            std::size_t at = place(key_[record]);
            while (slot_[at] != 0) at = (at + 1) & (slot_.size() - 1);
            slot_[at] = static_cast<std::uint32_t>(record + 1);
        }
    }

    std::uint32_t keep_;
    std::vector<std::uint32_t> slot_;  // record + 1, or 0
    std::vector<std::int64_t> key_;
    std::vector<Lock> lock_;
    std::vector<std::int64_t> version_;
};

}  // namespace numatwin
