// The directory of all homes: which domains hold a line, and whether one has it for itself.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <thread>

#include "cache_sets.hpp"

namespace numatwin {

// A lock for a few dozen instructions; who waits long gives up its processor.

// One who waits: the holder may itself wait for a processor, as the guest has more than the host.
class Waiting {
  public:
    void once_more() {
        if (++tries_ % 128 == 0) std::this_thread::yield();
    }

  private:
    unsigned tries_ = 0;
};

class alignas(64) SpinLock {
  public:
    void lock() {
        Waiting waiting;
        while (held_.exchange(true, std::memory_order_acquire))
            while (held_.load(std::memory_order_relaxed)) waiting.once_more();
    }
    void unlock() { held_.store(false, std::memory_order_release); }

  private:
    std::atomic<bool> held_{false};
};

// A row of bits per line of memory: a lock and the state, then one per domain. Memory of the host
// is taken only for lines that were used.
class Directory {
  public:
    // OWNED: shared, and one of the holders answers for what it has modified.
    enum State : std::uint64_t { NOBODY = 0, SHARED = 2, EXCLUSIVE = 4, MODIFIED = 6, OWNED = 8 };

    Directory(std::size_t lines, std::size_t domains)
        : words_((domains + FIRST_DOMAIN + 63) / 64),
          bytes_(lines * words_ * sizeof(std::uint64_t)) {
        if (bytes_ == 0) return;
        void* found = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (found == MAP_FAILED) throw std::bad_alloc();
        rows_ = static_cast<std::uint64_t*>(found);
    }
    ~Directory() {
        if (rows_) munmap(rows_, bytes_);
    }
    Directory(const Directory&) = delete;
    Directory& operator=(const Directory&) = delete;

    // What the line's row is about to be looked at for.
    void prefetch(Line line) const { __builtin_prefetch(rows_ + line * words_, 1); }

    // A line's row, which nobody else sees or changes while this lives.
    class Row {
      public:
        Row(Directory& directory, Line line)
            : row_(directory.rows_ + line * directory.words_), words_(directory.words_) {
            Waiting waiting;
            std::uint64_t seen = word().load(std::memory_order_relaxed);
            while ((seen & LOCKED) ||
                   !word().compare_exchange_weak(seen, seen | LOCKED, std::memory_order_acquire)) {
                if (seen & LOCKED) {
                    waiting.once_more();
                    seen = word().load(std::memory_order_relaxed);
                }
            }
            first_ = seen;
        }
        ~Row() { word().store(first_, std::memory_order_release); }
        Row(const Row&) = delete;
        Row& operator=(const Row&) = delete;

        State state() const { return static_cast<State>(first_ & STATE); }
        // Calls `see(domain)` for each holder, by number; it may change the row.
        template <typename See>
        void each_holder(See see) const {
            for (std::size_t w = 0; w < words_; ++w)
                for (std::uint64_t left = bits(w); left; left &= left - 1)
                    see(static_cast<unsigned>(64 * w + std::countr_zero(left)) - FIRST_DOMAIN);
        }

        void set_only(unsigned domain, State state) {
            first_ = 0;
            std::fill(row_ + 1, row_ + words_, 0);
            set_state(state);
            add(domain);
        }
        void set_state(State state) { first_ = (first_ & ~STATE) | state; }
        void add(unsigned domain) { at(domain) |= bit(domain); }
        // Of the last holder, its state goes too.
        void remove(unsigned domain) {
            at(domain) &= ~bit(domain);
            for (std::size_t w = 0; w < words_; ++w)
                if (bits(w)) return;
            set_state(NOBODY);
        }

      private:
        std::atomic_ref<std::uint64_t> word() const { return std::atomic_ref(*row_); }
        std::uint64_t bits(std::size_t w) const { return w == 0 ? first_ & ~STATE : row_[w]; }
        std::uint64_t& at(unsigned domain) {
            const std::size_t w = (domain + FIRST_DOMAIN) / 64;
            return w == 0 ? first_ : row_[w];
        }
        static std::uint64_t bit(unsigned domain) {
            return std::uint64_t{1} << ((domain + FIRST_DOMAIN) % 64);
        }

        std::uint64_t* row_;
        std::size_t words_;
        std::uint64_t first_;  // the row's first word, written back, unlocked, in the end
    };

  private:
    static constexpr std::uint64_t LOCKED = 1, STATE = 14;
    static constexpr unsigned FIRST_DOMAIN = 4;  // its bit

    std::size_t words_, bytes_;
    std::uint64_t* rows_ = nullptr;
};

}  // namespace numatwin
