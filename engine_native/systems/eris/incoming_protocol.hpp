// The latch-free protocol of a double incoming buffer, on real atomics or on a model's.
//
// After Kissinger et al., ERIS (ADMS 2014), section on command routing. `writable` names the buffer
// into which others may write; each buffer has a descriptor.
//
// A writer
//   W1  at   <- writable                            relaxed: a hint; the CAS decides
//   W2  word <- descriptor[at]                      relaxed: a hint; the CAS decides
//       not active: reads both again; if `writable` has not changed, it gives up for now
//       no room:    gives up for now
//   W3  CAS descriptor[at]: word -> reserved(word)  acquire on success: whoever reads what A or
//       another writer left sees the owner's S1 and all that the owner had read before A, so that
//       the copy overwrites nothing that is still read and the next W1 is not older than S1;
//       relaxed on failure: it tries again with what it has seen
//   W4  copies to the place reserved                plain: nobody else has it
//   W5  descriptor[at] -= one writer                release: who sees the writer gone (S4) sees its
//       bytes. Later changes of the word are read-modify-writes and carry this on (release
//       sequence), so that one acquire in S4 serves for all writers
//
// The owner, to swap
//   S1  writable <- other                           relaxed: S2 releases it
//   S2  descriptor[other] <- active, empty          release: see W3. A plain store will do, since
//   an
//       inactive descriptor is changed by nobody else
//   S3  descriptor[old] -= active bit               relaxed: of the two orders of S3 and a W3 one
//       happens, and who comes second sees the first, as both are read-modify-writes. From then on
//       no CAS on it succeeds: the offset is final
//   S4  waits until descriptor[old] has no writers  acquire: see W5
//       processes [0, offset) of old
//
// Why S1 stands before S2: a writer that had read `writable` long ago may still hold `other`. Could
// it write there while others are sent to `old`, its next commands would go to `old` and be
// processed before. Since S1 comes first, whoever finds `other` active finds `writable` = other
// from then on. So commands of one writer are processed in the order in which they were written;
// also those of two writers, where one was told of the other's write.
//
// A word read at W2 may come round again (ABA) before W3: it then says what is true again, as the
// whole state of the buffer is in the word.
//
// Never in the way of each other: a CAS fails only because another writer's succeeded or the owner
// swapped; a writer that meets a swap half done returns. The owner alone waits, for a copy that has
// begun. test_protocol_model.cpp runs this very code through all interleavings, weak memory
// included.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "systems/eris/pause_points.hpp"
#include "systems/eris/spinning.hpp"

namespace numatwin::native {

// The 64-bit descriptor of an incoming buffer: 1 bit active, 32 bits offset, 31 bits writers.

namespace descriptor {

using Word = std::uint64_t;

inline constexpr Word active_bit = Word{1} << 63;
inline constexpr Word one_writer = 1;
inline constexpr int offset_shift = 31;
inline constexpr Word writers_mask = (Word{1} << offset_shift) - 1;
inline constexpr std::uint64_t offset_max = ~std::uint32_t{0};

constexpr bool is_active(Word word) {
    return (word & active_bit) != 0;
}
/// Bytes reserved so far.
constexpr std::uint64_t offset(Word word) {
    return (word & ~active_bit) >> offset_shift;
}
/// Writers that have reserved room and still copy.
constexpr std::uint64_t writers(Word word) {
    return word & writers_mask;
}
/// What a writer that reserves `bytes` leaves. `offset(word) + bytes` is at most `offset_max`.
constexpr Word reserved(Word word, std::uint64_t bytes) {
    return word + (bytes << offset_shift) + one_writer;
}

}  // namespace descriptor

/// What the protocol stands on: the processor's atomics and true waiting.
struct RealPlatform {
    template <class T>
    using Atomic = std::atomic<T>;

    static bool is_open(descriptor::Word word) { return descriptor::is_active(word); }
    /// Waits until `done(value)`; sees what was released with that value.
    template <class T, class Done>
    static void wait_acquire(const Atomic<T>& atomic, Done&& done) {
        Spinning spinning;
        while (!done(atomic.load(std::memory_order_acquire))) {
            spinning.wait();
        }
    }
    static void pause([[maybe_unused]] const char* point) { NUMATWIN_PAUSE_AT(point); }
    /// Fetches the line to be changed: a load that comes first would fetch it to be read, and the
    /// exchange behind it ask for it again.
    template <class T>
    static void prefetch_to_write(const Atomic<T>& atomic) {
#if defined(__x86_64__)
        // Not in the baseline, for which GCC would fetch to read; no operation where unknown.
        asm volatile("prefetchw %0" : : "m"(atomic));
#else
        __builtin_prefetch(&atomic, 1);
#endif
    }
};

template <class Platform>
class IncomingProtocol {
  public:
    using Word = descriptor::Word;
    struct Taken {
        std::uint32_t buffer;
        std::uint64_t bytes;
    };

    explicit IncomingProtocol(std::uint64_t capacity) : capacity_(capacity) {}

    /// Reserves `bytes`, calls `copy(buffer, offset)`, releases. False: no room, or a swap is half
    /// done. Adds to `retries` how often another was quicker.
    template <class Copy>
    bool write(std::uint64_t bytes, Copy&& copy, std::uint64_t& retries) {
        Platform::prefetch_to_write(writable_);
        std::uint32_t at = writable_.load(std::memory_order_relaxed);      // W1
        Word word = descriptor_[at].word.load(std::memory_order_relaxed);  // W2
        for (;; ++retries) {
            Platform::pause("write: descriptor read");
            if (!Platform::is_open(word)) {
                const std::uint32_t now = writable_.load(std::memory_order_relaxed);
                if (now == at) {
                    return false;
                }
                at = now;
                word = descriptor_[at].word.load(std::memory_order_relaxed);
                continue;
            }
            if (bytes > capacity_ - descriptor::offset(word)) {
                return false;
            }
            if (descriptor_[at].word.compare_exchange_weak(  // W3
                    word, descriptor::reserved(word, bytes), std::memory_order_acquire,
                    std::memory_order_relaxed)) {
                break;
            }
        }
        Platform::pause("write: reserved");
        copy(at, descriptor::offset(word));  // W4
        Platform::pause("write: copied");
        descriptor_[at].word.fetch_sub(descriptor::one_writer, std::memory_order_release);  // W5
        return true;
    }

    /// The owner: takes what was written since. Nothing written: takes nothing, swaps nothing.
    Taken swap() {
        if (is_empty()) {
            return {owned_, 0};
        }
        const std::uint32_t old = owned_, other = 1 - old;
        publish(other);
        Platform::pause("swap: published");
        activate(other);
        Platform::pause("swap: activated");
        const Word word = deactivate(old);
        Platform::pause("swap: deactivated");
        await_writers(old);
        owned_ = other;
        return {old, descriptor::offset(word)};
    }

    /// The owner: whether nobody has reserved anything since the last swap. A glance: relaxed, as
    /// what is not seen now is seen the next time.
    bool is_empty() const {
        return descriptor::offset(descriptor_[owned_].word.load(std::memory_order_relaxed)) == 0;
    }

    /// The owner: bytes reserved since the last swap. A glance.
    std::uint64_t waiting_bytes() const {
        return descriptor::offset(descriptor_[owned_].word.load(std::memory_order_relaxed));
    }

    std::uint64_t capacity() const { return capacity_; }
    /// The owner: which buffer the others write into.
    std::uint32_t owned() const { return owned_; }

  protected:
    void publish(std::uint32_t buffer) {  // S1
        writable_.store(buffer, std::memory_order_relaxed);
    }
    void activate(std::uint32_t buffer) {  // S2
        descriptor_[buffer].word.store(descriptor::active_bit, std::memory_order_release);
    }
    Word deactivate(std::uint32_t buffer) {  // S3
        return descriptor_[buffer].word.fetch_sub(descriptor::active_bit,
                                                  std::memory_order_relaxed);
    }
    void await_writers(std::uint32_t buffer) {  // S4
        Platform::wait_acquire(descriptor_[buffer].word,
                               [](Word word) { return descriptor::writers(word) == 0; });
    }

    // Lines are fetched in pairs: at a distance of 128 bytes, writes of one thread slow no other
    // down that reads or writes something else. Who writes needs to know which buffer is open, and
    // its descriptor; who swaps changes all three: they share a line, which then travels once.
    static constexpr std::size_t line_pair_bytes = 128;
    template <class T>
    using Atomic = typename Platform::template Atomic<T>;
    struct Descriptor {
        Atomic<Word> word;
    };

    alignas(line_pair_bytes) Atomic<std::uint32_t> writable_{0};  // changed once a swap
    Descriptor descriptor_[2] = {{descriptor::active_bit}, {0}};
    alignas(line_pair_bytes) std::uint32_t owned_ =
        0;  // the owner's: equals writable_ between swaps
    alignas(line_pair_bytes) const std::uint64_t capacity_;
};

}  // namespace numatwin::native
