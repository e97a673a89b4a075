// Commands from outside: what is asked, and where the answers go.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <stdexcept>

namespace numatwin::native {

enum class AskKind : std::uint8_t { lookup, upsert, scan, append };

/// One command. Lookup: `key`. Upsert: `key`, `value`. Scan: entries from `key` to `value`, both
/// included. Append: `value` to a column.
struct Ask {
    AskKind kind = AskKind::lookup;
    std::uint16_t object = 0;
    std::uint64_t key = 0, value = 0;
};

/// Lookup: whether the key is there, and its value (else 0). Scan: matches, and their sum modulo
/// 2^64. `answers`: how often it was answered.
struct Answer {
    std::uint64_t value = 0, found = 0;
    std::uint32_t answers = 0;
};

/// Some commands of one kind on their way, with a place for the answer of each.
class Request {
  public:
    Request(Answer* answers, std::size_t count) : answers_(answers), left_(count) {}

    /// Any worker, for the commands that it has done. After the call the request may be gone.
    void answer(const std::uint64_t* slots, const std::uint64_t* values, const std::uint8_t* found,
                std::size_t count) {
        for (std::size_t k = 0; k < count; ++k) {
            Answer& to = answers_[slots[k]];
            to.value = values != nullptr ? values[k] : 0;
            to.found = found != nullptr ? found[k] : 1;
            // Atomic, so that a second answer, which must not be, is seen and not lost.
            std::atomic_ref(to.answers).fetch_add(1, std::memory_order_relaxed);
        }
        left_.fetch_sub(count, std::memory_order_acq_rel);
    }
    /// Who asked: whether all are answered; sees the answers then.
    bool done() const { return left_.load(std::memory_order_acquire) == 0; }

  private:
    Answer* answers_;
    std::atomic<std::size_t> left_;
};

/// Requests by the number that travels with their commands.
class Requests {
  public:
    static constexpr std::size_t most = 256;

    /// Throws std::runtime_error where there are too many at a time.
    std::uint32_t add(Request& request) {
        for (std::uint32_t k = 0; k < most; ++k) {
            Request* none = nullptr;
            // Released to workers by the write into an incoming buffer.
            if (slots_[k].compare_exchange_strong(none, &request)) return k;
        }
        throw std::runtime_error("too many calls at a time");
    }
    void remove(std::uint32_t number) { slots_[number].store(nullptr); }
    Request& operator[](std::uint32_t number) {
        return *slots_[number].load(std::memory_order_relaxed);
    }

  private:
    std::array<std::atomic<Request*>, most> slots_{};
};

}  // namespace numatwin::native
