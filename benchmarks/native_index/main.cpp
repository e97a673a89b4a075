// Times the prefix tree and its contenders by turns, in one process and one thread.
//
// Usage: native_index KEYS REPEAT LOOKUPS CONTENDER...
// of art, btree, shared (tree), reads (random keys, then dense ones); those that are built in.
// Prints a line for each figure: name, ours, unit, theirs or -, against what. Rates are of the
// thread's CPU time, of the quickest turn for look-ups and of all turns for insertions, each of
// which finds a larger index.
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "contender.hpp"

namespace {

constexpr std::size_t BATCH = 1024, BLOCK = 64 * BATCH;
constexpr std::uint64_t VALUE = 0x9E37'79B9'7F4A'7C15;

double cpu_s() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// SplitMix64 (Steele et al., OOPSLA 2014): 64-bit keys at random, each once.
std::uint64_t mixed(std::uint64_t x) {
    x += 0x9E37'79B9'7F4A'7C15;
    x = (x ^ x >> 30) * 0xBF58'476D'1CE4'E5B9;
    x = (x ^ x >> 27) * 0x94D0'49BB'1331'11EB;
    return x ^ x >> 31;
}

/// Below `bound`, by multiplication (Lemire, TOMACS 2019).
std::uint64_t below(std::uint64_t bound, std::uint64_t random) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>(Wide{random} * bound >> 64);
}

/// The numbers below `count` in an order at random: a bijection on the next power of two, followed
/// until it comes back below the count.
std::uint64_t shuffled(std::uint64_t i, std::uint64_t count) {
    const int bits = std::max(2, static_cast<int>(std::bit_width(count - 1)));
    const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
    do {
        for (const std::uint64_t odd : {0xBF58'476D'1CE4'E5B9, 0x94D0'49BB'1331'11EB}) {
            i = i * odd & mask;
            i ^= i >> (bits / 2);
        }
    } while (i >= count);
    return i;
}

using KeyOf = std::function<std::uint64_t(std::uint64_t)>;

/// CPU seconds that `work` takes for keys [first, last), drawn block by block outside of that.
double timed(std::size_t first, std::size_t last, const KeyOf& key_of,
             const std::function<void(std::span<const std::uint64_t>)>& work) {
    std::vector<std::uint64_t> keys(BLOCK);
    double taken_s = 0;
    for (std::size_t start = first; start < last; start += BLOCK) {
        const std::size_t count = std::min(BLOCK, last - start);
        for (std::size_t i = 0; i < count; ++i) keys[i] = key_of(start + i);
        const double begin_s = cpu_s();
        for (std::size_t i = 0; i < count; i += BATCH)
            work(std::span(keys).subspan(i, std::min(BATCH, count - i)));
        taken_s += cpu_s() - begin_s;
    }
    return taken_s;
}

double insert(Contender& into, std::size_t first, std::size_t last, const KeyOf& key_of) {
    std::vector<std::uint64_t> values(BATCH);
    std::size_t inserted = 0;
    const double taken_s = timed(first, last, key_of, [&](std::span<const std::uint64_t> keys) {
        for (std::size_t i = 0; i < keys.size(); ++i) values[i] = keys[i] * VALUE;
        inserted += into.insert(keys, std::span(values).first(keys.size()));
    });
    if (inserted != last - first) {
        std::fprintf(stderr, "an index lost keys\n");
        std::exit(1);
    }
    return taken_s;
}

/// Look-ups of keys that are there; each turn looks up others.
double lookup(Contender& in, std::size_t keys, std::size_t count, std::size_t turn,
              const KeyOf& key_of, std::uint64_t& sum) {
    return timed(
        0, count, [&](std::uint64_t i) { return key_of(below(keys, mixed(turn << 40 | i))); },
        [&](std::span<const std::uint64_t> batch) { sum += in.lookup(batch); });
}

void print(const std::string& name, double ours, const char* unit, double theirs,
           const std::string& versus) {
    std::printf("%s\t%.6g\t%s\t%.6g\t%s\n", name.c_str(), ours, unit, theirs, versus.c_str());
    std::fflush(stdout);
}

struct Run {
    std::string label;
    std::size_t keys, repeat, lookups;
    KeyOf key_of;
    /// Of the look-ups that need no contender.
    std::uint64_t sum = 0;

    void against(const std::string& versus, Contender& theirs) {
        const auto ours = make_prefix_tree();
        double our_s = 0, their_s = 0;
        for (std::size_t turn = 0; turn < repeat; ++turn) {
            const std::size_t first = keys * turn / repeat, last = keys * (turn + 1) / repeat;
            our_s += insert(*ours, first, last, key_of);
            their_s += insert(theirs, first, last, key_of);
        }
        const auto rate = [](std::size_t done, double taken_s) {
            return static_cast<double>(done) / taken_s;
        };
        print("upsert/" + label, rate(keys, our_s), "keys/CPU-s", rate(keys, their_s), versus);
        double our_best = 0, their_best = 0;
        std::uint64_t our_sum = 0, their_sum = 0;
        for (std::size_t turn = 0; turn < repeat; ++turn) {
            our_best = std::max(our_best,
                                rate(lookups, lookup(*ours, keys, lookups, turn, key_of, our_sum)));
            their_best = std::max(
                their_best, rate(lookups, lookup(theirs, keys, lookups, turn, key_of, their_sum)));
        }
        if (our_sum != their_sum) {
            std::fprintf(stderr, "two indexes answer differently\n");
            std::exit(1);
        }
        print("lookup/" + label, our_best, "keys/CPU-s", their_best, versus);
        if (theirs.bytes() > 0)
            print("memory/" + label, rate(ours->bytes(), static_cast<double>(keys)), "bytes/key",
                  rate(theirs.bytes(), static_cast<double>(keys)), versus);
    }

    /// Against single, independent reads at random of as many bytes: what the host's memory gives.
    void against_reads() {
        const auto ours = make_prefix_tree();
        const double our_s = insert(*ours, 0, keys, key_of);
        print("upsert/" + label, static_cast<double>(keys) / our_s, "keys/CPU-s", 0, "");
        const double bytes = static_cast<double>(ours->bytes());
        print("memory/" + label, bytes / static_cast<double>(keys), "bytes/key", 0, "");
        const std::size_t words = ours->bytes() / sizeof(std::uint64_t);
        void* mapped =
            mmap(nullptr, 8 * words, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mapped == MAP_FAILED) return std::perror("mmap");
        madvise(mapped, 8 * words, MADV_HUGEPAGE);
        auto* array = static_cast<std::uint64_t*>(mapped);
        std::fill_n(array, words, 1);
        double our_best = 0, read_best = 0;
        std::uint64_t read_sum = 0;
        for (std::size_t turn = 0; turn < repeat; ++turn) {
            our_best = std::max(our_best, static_cast<double>(lookups) /
                                              lookup(*ours, keys, lookups, turn, key_of, sum));
            const double begin_s = cpu_s();
            for (std::size_t i = 0; i < lookups; ++i)
                read_sum += array[below(words, mixed(turn << 40 | i))];
            read_best = std::max(read_best, static_cast<double>(lookups) / (cpu_s() - begin_s));
        }
        munmap(mapped, 8 * words);
        if (read_sum != lookups * repeat) std::exit(1);
        print("lookup/" + label, our_best, "keys/CPU-s", read_best,
              "independent random reads of as many bytes");
    }
};

}  // namespace

int main(int count, char** arguments) {
    if (count < 4) return 2;
    const auto number = [&](int i) {
        return static_cast<std::size_t>(std::strtoull(arguments[i], nullptr, 10));
    };
    const std::vector<std::string> asked(arguments + 4, arguments + count);
    const auto is_asked = [&](const char* name) {
        return std::find(asked.begin(), asked.end(), name) != asked.end();
    };
    const std::size_t keys = number(1);
    const std::string size = arguments[1];
    Run random{size + "_random_keys", keys, number(2), number(3), mixed};
    // One at a time: a large index leaves no room for another one's opponent.
    if (is_asked("art"))
        if (const auto art = make_art()) random.against("unodb ART", *art);
    if (is_asked("btree"))
        if (const auto btree = make_btree()) random.against("absl::btree_map", *btree);
    if (is_asked("shared")) random.against("SharedTree, one thread", *make_shared_tree());
    Run dense{size + "_dense_keys", keys, number(2), number(3),
              [&](std::uint64_t i) { return shuffled(i, keys); }};
    if (is_asked("reads")) {
        random.against_reads();
        dense.against_reads();
    }
    std::printf("result\t%016" PRIx64 "\n", random.sum * 31 + dense.sum);
}
