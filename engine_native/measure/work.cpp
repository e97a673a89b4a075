// The loops of the microbenchmarks that load, exchange and add; streams have a file of their own.
#include "measure/work.hpp"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <stdexcept>
#include <utility>

#include "measure/additions.hpp"

namespace numatwin::native {
namespace {

constexpr std::int64_t kChunkNs = 10'000;  // between two looks at the clock, which takes some 25 ns

/// Calls `chunk(count)`, which does `count` steps, until the window ends; returns the steps done.
/// The count settles at what takes about kChunkNs.
template <class Chunk>
double until(std::int64_t end_ns, std::size_t& count, std::size_t steps_max, const Chunk& chunk) {
    double done = 0.0;
    std::int64_t now = steady_ns();
    do {
        chunk(count);
        done += static_cast<double>(count);
        const std::int64_t then = steady_ns();
        if (then - now < kChunkNs / 2) {
            count = std::min(2 * count, steps_max);
        } else if (then - now > 2 * kChunkNs) {
            count = std::max<std::size_t>(count / 2, 1);
        }
        now = then;
    } while (now < end_ns);
    return done;
}

constexpr std::size_t kStepsMax = std::size_t{1} << 20;

const void* follow(const void* at, std::size_t loads) {
    for (; loads >= 8; loads -= 8) {
        for (int step = 0; step < 8; ++step) at = *static_cast<const void* const*>(at);
    }
    for (; loads > 0; --loads) at = *static_cast<const void* const*>(at);
    asm volatile("" : "+r"(at));  // the loads happen, though nobody uses where they lead
    return at;
}

/// Loads of lines, at random or one after the other, none of which waits for another, each after so
/// many additions that wait for nothing either.
template <std::size_t kAdditions, bool kInOrder = false>
Work reads_after(const Block& block, std::size_t lines) {
    if (lines < 2 || !std::has_single_bit(lines) || lines * kLineBytes > block.bytes()) {
        throw std::invalid_argument(
            "expected a power of two of lines, two or more, within the block");
    }
    const std::byte* data = block.data();
    // The high bits of a linear congruential generator (Knuth's MMIX) choose the line: one multiply
    // and one add lie between two loads, which themselves wait for nothing.
    const int shift = 64 - std::countr_zero(lines);
    return [=, state = std::uint64_t{1}, count = std::size_t{64}](std::int64_t end_ns) mutable {
        return until(end_ns, count, kStepsMax, [&](std::size_t loads) {
            std::uint64_t sum = 0, at = state;  // in registers
            Sums sums;
            asm volatile("" : "+r"(sums.one));
            for (; loads > 0; --loads) {
                at = kInOrder ? at + (std::uint64_t{1} << shift)
                              : at * 6364136223846793005U + 1442695040888963407U;
                const std::size_t line = at >> shift;
                std::uint64_t word;
                std::memcpy(&word, data + line * kLineBytes, sizeof word);
                sum += word;
                add_in_line<kAdditions>(sums);
            }
            asm volatile("" : "+r"(sum));
            state = at;
        });
    };
}

}  // namespace

Work chase(const Block& block, std::size_t start_line, std::size_t warm_loads) {
    if (start_line >= block.bytes() / kLineBytes) {
        throw std::invalid_argument("a line beyond the block");
    }
    const void* start = block.data() + start_line * kLineBytes;
    return [at = start, warm_loads, count = std::size_t{64}](std::int64_t end_ns) mutable {
        at = follow(at, std::exchange(warm_loads, 0));
        return until(end_ns, count, kStepsMax, [&](std::size_t loads) { at = follow(at, loads); });
    };
}

Work random_reads(const Block& block, std::size_t lines) {
    return reads_after<0>(block, lines);
}

Work spaced_reads(const Block& block, std::size_t lines, std::size_t additions) {
    if (additions == kFewAdditions) return reads_after<kFewAdditions>(block, lines);
    if (additions == kManyAdditions) return reads_after<kManyAdditions>(block, lines);
    throw std::invalid_argument("expected few or many additions");
}

Work spaced_stream(const Block& block, std::size_t lines) {
    return reads_after<kManyAdditions, true>(block, lines);
}

Work system_calls() {
    return [count = std::size_t{64}](std::int64_t end_ns) mutable {
        return until(end_ns, count, kStepsMax, [](std::size_t calls) {
            // The C library keeps no answer of its own to this one.
            for (; calls > 0; --calls) getppid();
        });
    };
}

Work copies(const Block& from, const Block& to, std::size_t bytes, bool spread) {
    if (bytes == 0 || bytes > from.bytes() || bytes > to.bytes()) {
        throw std::invalid_argument("expected a copy of something that fits into both blocks");
    }
    // Places lie at whole lines. The next one is a fixed, odd part of all places further on, so
    // that all are visited before one comes again, and no prefetcher foresees it.
    const std::size_t step = (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
    const std::size_t places =
        spread ? std::bit_floor(std::min(from.bytes(), to.bytes()) / step) : std::size_t{1};
    const std::size_t stride = (places / 8 * 5) | 1;
    return [=, source = from.data(), target = to.data(), place = std::size_t{0},
            count = std::size_t{1}](std::int64_t end_ns) mutable {
        return until(end_ns, count, kStepsMax, [&](std::size_t times) {
            for (; times > 0; --times) {
                std::memcpy(target + place * step, source + place * step, bytes);
                asm volatile("" : : "r"(target) : "memory");  // each copy happens
                place = (place + stride) & (places - 1);
            }
        });
    };
}

Counter& counter_on(const Block& block, std::size_t line) {
    if (line >= block.bytes() / kLineBytes) throw std::invalid_argument("a line beyond the block");
    return *new (block.data() + line * kLineBytes) Counter(0);
}

Work fetch_adds(Counter& counter) {
    return [&counter, count = std::size_t{16}](std::int64_t end_ns) mutable {
        return until(end_ns, count, kStepsMax, [&](std::size_t times) {
            // seq_cst, the default: what is measured is the full operation; on x86 all are one.
            for (; times > 0; --times) counter.fetch_add(1);
        });
    };
}

Work cas_increments(Counter& counter) {
    return [&counter, count = std::size_t{16}](std::int64_t end_ns) mutable {
        return until(end_ns, count, kStepsMax, [&](std::size_t times) {
            for (; times > 0; --times) {
                // relaxed: a guess, which the exchange itself checks.
                std::uint64_t seen = counter.load(std::memory_order_relaxed);
                while (!counter.compare_exchange_weak(seen, seen + 1)) {
                }
            }
        });
    };
}

// Who serves writes odd numbers, the other answers each with the even one that follows. 0: nothing
// was said in this window. kOver: the window ends; the other answers 0 and leaves too. release and
// acquire: a message stands for data that it would announce.
Work ping_pong(Counter& counter, bool serve) {
    constexpr std::uint64_t over = ~std::uint64_t{0};
    constexpr int rounds = 64;  // between two looks at the clock
    if (serve) {
        return [&counter](std::int64_t end_ns) {
            std::uint64_t word = 1;
            do {
                for (int round = 0; round < rounds; ++round, word += 2) {
                    counter.store(word, std::memory_order_release);
                    while (counter.load(std::memory_order_acquire) != word + 1) {
                    }
                }
            } while (steady_ns() < end_ns);
            counter.store(over, std::memory_order_release);
            while (counter.load(std::memory_order_acquire) != 0) {
            }
            return static_cast<double>(word - 1);
        };
    }
    return [&counter](std::int64_t) {
        for (std::uint64_t word = 1;; word += 2) {
            std::uint64_t seen = 0;
            while ((seen = counter.load(std::memory_order_acquire)) != word && seen != over) {
            }
            counter.store(seen == over ? 0 : word + 1, std::memory_order_release);
            if (seen == over) return 0.0;
        }
    };
}

Work additions() {
    return [count = std::size_t{1024}](std::int64_t end_ns) mutable {
        return until(end_ns, count, kStepsMax, [](std::size_t times) { add_in_a_row(times); });
    };
}

}  // namespace numatwin::native
