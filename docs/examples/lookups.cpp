// Looks up `rows` random keys in a hash table of 1,000,000.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <unordered_map>

__attribute__((noinline)) std::uint64_t look_up(
    const std::unordered_map<std::uint64_t, std::uint64_t>& table, std::uint64_t rows) {
    std::uint64_t sum = 0, key = 1;
    for (std::uint64_t row = 0; row < rows; ++row) {
        key = key * 6364136223846793005u + 1442695040888963407u;
        sum += table.find((key >> 33) % 1'000'000)->second;
    }
    return sum;
}

int main(int, char** argv) {
    std::unordered_map<std::uint64_t, std::uint64_t> table;
    for (std::uint64_t key = 0; key < 1'000'000; ++key) table[key] = key;
    std::printf("%ju\n", std::uintmax_t(look_up(table, std::strtoull(argv[1], nullptr, 10))));
}
