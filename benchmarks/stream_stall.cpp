// Passes over memory with more and more additions a line, one waiting for the other.
//
//     stream_stall MEBIBYTES ROUNDS
//
// A line each: additions, ns a line in cache, in memory without additions, in memory; the least of
// the rounds.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <vector>

namespace {

constexpr std::size_t words = 8;           // of a line
constexpr std::size_t cached_lines = 256;  // 16 KiB
std::uint64_t kept;

template <int additions>
std::uint64_t pass(const std::vector<std::uint64_t>& data, std::size_t lines, std::uint64_t sum) {
    for (std::size_t line = 0; line < lines; ++line) {
        const std::uint64_t* at = data.data() + line * words;
        std::uint64_t found = 0;
        for (std::size_t word = 0; word < words; ++word) found ^= at[word];
        sum += found;
        for (int k = 0; k < additions; ++k) {
            sum += static_cast<std::uint64_t>(k);
            asm volatile("" : "+r"(sum));
        }
    }
    return sum;
}

template <int additions>
double least_ns(const std::vector<std::uint64_t>& data, std::size_t lines, int rounds) {
    double least = std::numeric_limits<double>::infinity();
    for (int round = 0; round < rounds; ++round) {
        const auto begun = std::chrono::steady_clock::now();
        kept += pass<additions>(data, lines, kept);
        const std::chrono::duration<double, std::nano> took =
            std::chrono::steady_clock::now() - begun;
        least = std::min(least, took.count() / static_cast<double>(lines));
    }
    return least;
}

template <int additions>
void measure(const std::vector<std::uint64_t>& data, int rounds) {
    const std::size_t lines = data.size() / words;
    double cached = std::numeric_limits<double>::infinity(), plain = cached, both = cached;
    for (int round = 0; round < rounds; ++round) {  // in turns
        cached = std::min(cached, least_ns<additions>(data, cached_lines, 300));
        plain = std::min(plain, least_ns<0>(data, lines, 1));
        both = std::min(both, least_ns<additions>(data, lines, 1));
    }
    std::printf("%d %.4f %.4f %.4f\n", additions, cached, plain, both);
}

}  // namespace

int main(int count, char** words_given) {
    if (count != 3) return 2;
    const std::size_t mebibytes = std::strtoul(words_given[1], nullptr, 10);
    const int rounds = std::atoi(words_given[2]);
    std::vector<std::uint64_t> data(mebibytes << 17);
    for (std::size_t k = 0; k < data.size(); ++k) data[k] = k * 7;
    measure<8>(data, rounds);
    measure<12>(data, rounds);
    measure<16>(data, rounds);
    measure<20>(data, rounds);
    measure<24>(data, rounds);
    measure<32>(data, rounds);
    measure<40>(data, rounds);
    std::fprintf(stderr, "sum %llu\n", static_cast<unsigned long long>(kept));
}
