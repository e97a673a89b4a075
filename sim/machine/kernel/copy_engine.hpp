// A copy engine's contexts, and a thread for which it copies ahead: ../reference/copy_engine.py.
//
// How long a copy takes is the service's affair, of which the engine is a core
// (../copy_engines.py).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <stdexcept>

namespace numatwin {

// So many copies at a time; further requests wait, first come first served.
class CopyEngine {
  public:
    explicit CopyEngine(std::size_t contexts) : contexts_(contexts) {
        if (contexts == 0) throw std::invalid_argument("contexts: expected at least one");
    }

    // Whether the copy begins now; else it waits.
    bool request(std::uint64_t job) {
        if (under_way_ == contexts_) {
            waiting_.push_back(job);
            return false;
        }
        ++under_way_;
        return true;
    }

    // A copy has ended. Whether one that waited begins now: `next`.
    bool end(std::uint64_t& next) {
        if (under_way_ == 0) throw std::logic_error("no copy is under way");
        if (waiting_.empty()) {
            --under_way_;
            return false;
        }
        next = waiting_.front();
        waiting_.pop_front();
        return true;
    }

    std::size_t under_way() const { return under_way_; }
    std::size_t waiting() const { return waiting_.size(); }

  private:
    std::size_t contexts_, under_way_ = 0;
    std::deque<std::uint64_t> waiting_;
};

// Two buffers of a thread: while it works on the chunk in one, the next is copied into the other.
class DoubleBuffer {
  public:
    explicit DoubleBuffer(std::uint64_t chunks = 0) : chunks_(chunks) {}

    // True once for each copy that is due: one at a time, where a buffer is free.
    bool take_copy() {
        if (copying_ || copied_ == chunks_ || copied_ - worked_ == buffers) return false;
        return copying_ = true;
    }
    // True once for each chunk to work on.
    bool take_work() {
        if (working_ || copied_ == worked_) return false;
        return working_ = true;
    }
    void end_copy() {
        copying_ = false;
        ++copied_;
    }
    void end_work() {
        working_ = false;
        ++worked_;
    }
    bool done() const { return worked_ == chunks_; }
    // The chunk that is copied, or worked on, now or next; from 0 on.
    std::uint64_t copied() const { return copied_; }
    std::uint64_t worked() const { return worked_; }
    std::uint64_t chunks() const { return chunks_; }

  private:
    static constexpr std::uint64_t buffers = 2;
    std::uint64_t chunks_, copied_ = 0, worked_ = 0;
    bool copying_ = false, working_ = false;
};

}  // namespace numatwin
