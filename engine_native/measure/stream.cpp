// Streams through memory: one loop a kind of traffic, compiled for each width of vector.
#include <algorithm>
#include <stdexcept>

#include "measure/additions.hpp"
#include "measure/work.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace numatwin::native {
namespace {

constexpr std::size_t kPieceBytes = 4096;
// Arrays begin at different places of their pages: a load that has the low twelve bits of a store
// before it waits for it on many processors.
constexpr std::size_t kSkewBytes = 10 * kLineBytes;

// A line as a vector; the compiler makes it of whatever registers the function may use.
typedef std::uint64_t Line __attribute__((vector_size(kLineBytes), aligned(kLineBytes)));

using Sweep = void (*)(std::byte* a, const std::byte* b, const std::byte* c, std::size_t bytes);

#define NUMATWIN_INLINE inline __attribute__((always_inline))

NUMATWIN_INLINE void read_lines(std::byte*, const std::byte* b, const std::byte*,
                                std::size_t bytes) {
    const Line* line = reinterpret_cast<const Line*>(b);
    Line sums[4] = {};
    for (std::size_t at = 0; at + 4 <= bytes / kLineBytes; at += 4) {
        for (std::size_t k = 0; k < 4; ++k) sums[k] += line[at + k];
    }
    // One word is wanted of them: whole sums would have to lie in memory, where each addition would
    // store and load them (an eighth of a core's bandwidth).
    const Line sum = sums[0] + sums[1] + sums[2] + sums[3];
    std::uint64_t word = 0;
    for (std::size_t k = 0; k < kLineBytes / sizeof word; ++k) word ^= sum[k];
    asm volatile("" : : "r"(word));
}

NUMATWIN_INLINE void update_lines(std::byte* a, const std::byte*, const std::byte*,
                                  std::size_t bytes) {
    Line* line = reinterpret_cast<Line*>(a);
    for (std::size_t at = 0; at < bytes / kLineBytes; ++at) line[at] += 1;
    asm volatile("" : : "r"(a) : "memory");
}

NUMATWIN_INLINE void copy_lines(std::byte* a, const std::byte* b, const std::byte*,
                                std::size_t bytes) {
    // Adding keeps the compiler from calling memcpy, which may store past the caches.
    Line* to = reinterpret_cast<Line*>(a);
    const Line* from = reinterpret_cast<const Line*>(b);
    for (std::size_t at = 0; at < bytes / kLineBytes; ++at) to[at] = from[at] + 1;
    asm volatile("" : : "r"(a) : "memory");
}

NUMATWIN_INLINE void triad_lines(std::byte* a, const std::byte* b, const std::byte* c,
                                 std::size_t bytes) {
    Line* to = reinterpret_cast<Line*>(a);
    const Line *one = reinterpret_cast<const Line*>(b), *other = reinterpret_cast<const Line*>(c);
    for (std::size_t at = 0; at < bytes / kLineBytes; ++at) to[at] = one[at] + other[at];
    asm volatile("" : : "r"(a) : "memory");
}

#if defined(__x86_64__)
// 16 bytes at a time, which any x86-64 processor has: the write-combining buffers gather whole
// lines. Where one instruction stores a whole line, none has to be gathered.
void store_past(std::byte* a, const std::byte*, const std::byte*, std::size_t bytes) {
    const __m128i ones = _mm_set1_epi64x(1);
    for (std::size_t at = 0; at < bytes; at += sizeof ones) {
        _mm_stream_si128(reinterpret_cast<__m128i*>(a + at), ones);
    }
}

void copy_past(std::byte* a, const std::byte* b, const std::byte*, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += sizeof(__m128i)) {
        const __m128i part = _mm_load_si128(reinterpret_cast<const __m128i*>(b + at));
        _mm_stream_si128(reinterpret_cast<__m128i*>(a + at), part);
    }
}

__attribute__((target("avx512f"))) void store_lines_past(std::byte* a, const std::byte*,
                                                         const std::byte*, std::size_t bytes) {
    const __m512i ones = _mm512_set1_epi64(1);
    for (std::size_t at = 0; at < bytes; at += sizeof ones) {
        _mm512_stream_si512(reinterpret_cast<__m512i*>(a + at), ones);
    }
}

__attribute__((target("avx512f"))) void copy_lines_past(std::byte* a, const std::byte* b,
                                                        const std::byte*, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += sizeof(__m512i)) {
        const __m512i part = _mm512_load_si512(b + at);
        _mm512_stream_si512(reinterpret_cast<__m512i*>(a + at), part);
    }
}

// What was stored past the caches is on its way.
void drain() {
    _mm_sfence();
}

#define NUMATWIN_WIDTH(name, features)                                                            \
    __attribute__((target(features))) void read_##name(std::byte* a, const std::byte* b,          \
                                                       const std::byte* c, std::size_t bytes) {   \
        read_lines(a, b, c, bytes);                                                               \
    }                                                                                             \
    __attribute__((target(features))) void update_##name(std::byte* a, const std::byte* b,        \
                                                         const std::byte* c, std::size_t bytes) { \
        update_lines(a, b, c, bytes);                                                             \
    }                                                                                             \
    __attribute__((target(features))) void copy_##name(std::byte* a, const std::byte* b,          \
                                                       const std::byte* c, std::size_t bytes) {   \
        copy_lines(a, b, c, bytes);                                                               \
    }                                                                                             \
    __attribute__((target(features))) void triad_##name(std::byte* a, const std::byte* b,         \
                                                        const std::byte* c, std::size_t bytes) {  \
        triad_lines(a, b, c, bytes);                                                              \
    }
NUMATWIN_WIDTH(avx512, "avx512f")
NUMATWIN_WIDTH(avx2, "avx2")
#undef NUMATWIN_WIDTH
#else
void drain() {}
#endif

struct Sweeps {
    Sweep read, update, copy, triad, store_past, copy_past;
};

Sweeps widest() {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        return {read_avx512,  update_avx512,    copy_avx512,
                triad_avx512, store_lines_past, copy_lines_past};
    }
    if (__builtin_cpu_supports("avx2")) {
        return {read_avx2, update_avx2, copy_avx2, triad_avx2, store_past, copy_past};
    }
    return {read_lines, update_lines, copy_lines, triad_lines, store_past, copy_past};
#else
    return {read_lines, update_lines, copy_lines, triad_lines, nullptr, nullptr};
#endif
}

Sweep sweep_of(Traffic traffic) {
    static const Sweeps sweeps = widest();
    switch (traffic) {
        case Traffic::kRead:
            return sweeps.read;
        case Traffic::kUpdate:
            return sweeps.update;
        case Traffic::kCopy:
            return sweeps.copy;
        case Traffic::kTriad:
            return sweeps.triad;
        case Traffic::kNonTemporal:
            if (sweeps.store_past) return sweeps.store_past;
            break;
        case Traffic::kNonTemporalCopy:
            if (sweeps.copy_past) return sweeps.copy_past;
            break;
    }
    throw std::invalid_argument("this processor has no such stream");
}

/// Lines that the program loads and stores in each step, and parts that the block is cut into.
struct Shape {
    double touched;
    std::size_t arrays;
};

Shape shape_of(Traffic traffic) {
    switch (traffic) {
        case Traffic::kRead:
        case Traffic::kNonTemporal:
            return {1.0, 1};
        case Traffic::kUpdate:
            return {2.0, 1};
        case Traffic::kCopy:
        case Traffic::kNonTemporalCopy:
            return {2.0, 2};
        case Traffic::kTriad:
            return {3.0, 3};
    }
    throw std::invalid_argument("unknown traffic");
}

}  // namespace

bool has_non_temporal_stores() {
#if defined(__x86_64__)
    return true;
#else
    return false;
#endif
}

Work stream(const Block& block, std::size_t offset, std::size_t bytes, Traffic traffic,
            std::uint64_t delay) {
    if (offset % kLineBytes != 0 || offset > block.bytes() || bytes > block.bytes() - offset) {
        throw std::invalid_argument("expected whole lines within the block");
    }
    const Sweep sweep = sweep_of(traffic);
    const bool past = traffic >= Traffic::kNonTemporal;
    const auto [touched, arrays] = shape_of(traffic);
    const std::size_t skews = (arrays - 1) * kSkewBytes;
    const std::size_t room = bytes > skews ? bytes - skews : 0;
    const std::size_t part = room / arrays / kPieceBytes * kPieceBytes;
    const std::size_t stride = part + kSkewBytes;
    if (part == 0) throw std::invalid_argument("expected a block of at least 4 KiB for each array");
    // The clock is looked at after some 50 µs, less on a slow machine or with a long delay.
    const std::size_t pieces_max = std::clamp<std::size_t>(65'536 / (256 + delay), 1, 64);
    return [=, data = block.data() + offset, at = std::size_t{0}](std::int64_t end_ns) mutable {
        return turns_until(end_ns, [&] {
            for (std::size_t piece = 0; piece < pieces_max; ++piece) {
                std::byte* here = data + at;
                sweep(here, here + (arrays - 1) * stride, here + (arrays / 2) * stride,
                      kPieceBytes);
                at = at + kPieceBytes < part ? at + kPieceBytes : 0;
                if (delay > 0) add_in_a_row(delay);
            }
            if (past) drain();
            return touched * static_cast<double>(pieces_max * kPieceBytes);
        });
    };
}

}  // namespace numatwin::native
