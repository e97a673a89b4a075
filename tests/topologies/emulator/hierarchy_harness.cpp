// The caches of the counting plugin without QEMU, for Python's tests.
#include <thread>
#include <vector>

#include "hierarchy.hpp"
#include "processors.hpp"
#include "settings.hpp"
#include "spans.hpp"

using namespace numatwin;

extern "C" {

struct Played {
    Settings settings;
    MemoryMap map;
    Processors processors;
};

// Nothing where the settings cannot be had.
void* play(const char* settings) try {
    const Settings read = read_settings(settings);
    return new Played{read, MemoryMap(read), Processors(read)};
} catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return nullptr;
}

void forget(void* played) {
    delete static_cast<Played*>(played);
}

bool interacts(void* played) {
    return static_cast<Played*>(played)->settings.shape.interacts();
}

// Addresses are physical, and of user programs.
void access_once(void* played, unsigned cpu, std::uint64_t address, unsigned bytes, bool write) {
    Processors& processors = static_cast<Played*>(played)->processors;
    processors.access<USER>(cpu, {address, bytes, write, false},
                            [](std::uint64_t at) { return at; });
}

// Accesses of 8 B, `stride` bytes from one to the next.
void stream(void* played, unsigned cpu, std::uint64_t address, std::uint64_t count,
            std::uint64_t stride, bool write) {
    for (std::uint64_t at = 0; at < count; ++at)
        access_once(played, cpu, address + at * stride, 8, write);
}

// A block of so many instructions begins; `ending` and `fused` as in Block.
void begin_block(void* played, unsigned cpu, std::uint64_t begin, std::uint64_t end,
                 unsigned instructions, unsigned ending, bool fused) {
    static_cast<Played*>(played)->processors.executed(
        cpu, {begin, end, instructions, static_cast<Block::Ending>(ending), fused}, 1);
}

// All processors at once, each on a thread of its own: `count` accesses to the first `lines` lines
// of all nodes, every third a write, in an order that `seed` tells.
void storm(void* played, std::uint64_t count, std::uint64_t lines, std::uint64_t seed) {
    Played& all = *static_cast<Played*>(played);
    std::vector<std::thread> threads;
    for (unsigned cpu = 0; cpu < all.processors.size(); ++cpu)
        threads.emplace_back([&all, played, cpu, count, lines, seed] {
            std::uint64_t state = seed + cpu;
            for (std::uint64_t left = count; left > 0; --left) {
                state = state * 6364136223846793005U + 1442695040888963407U;
                const std::uint64_t drawn = state >> 33;
                const std::uint64_t node = drawn % all.settings.shape.nodes;
                access_once(played, cpu, (node << MemoryMap::BLOCK_SHIFT) + drawn / 64 % lines * 64,
                            8, drawn / 16 % 3 == 0);
            }
        });
    for (std::thread& thread : threads) thread.join();
}

#ifdef STORM
// A program instead of a library, for the thread sanitizer.
int main(int, char** arguments) {
    void* const played = play(arguments[1]);
    for (std::uint64_t seed = 0; seed < 2; ++seed) storm(played, 10'000, 24, seed);
    forget(played);
}
#endif

void write_totals(void* played, const char* path) {
    const Played& all = *static_cast<Played*>(played);
    const Totals zero(all.settings.shape.nodes, all.settings.shape.levels.size(),
                      all.processors.size());
    Totals sums = zero;
    sums.add(zero, Totals::now(all.processors, all.settings.shape));
    std::FILE* file = std::fopen(path, "w");
    sums.write(file);
    std::fclose(file);
}
}
