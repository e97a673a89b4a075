// Data commands: made by a client, grouped by the worker (AEU) that received them.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

using Key = std::uint64_t;

struct Command {
    Key key;
    std::uint32_t value;
    std::uint16_t object;
    std::uint16_t type;
};
static_assert(sizeof(Command) == 16);

constexpr unsigned types = 4;  // lookup, upsert, scan, control

// xoshiro256** (Blackman and Vigna), as load generators use it.
class Random {
  public:
    explicit Random(std::uint64_t seed) {
        for (auto& word : state_) {  // splitmix64
            std::uint64_t z = seed += 0x9e3779b97f4a7c15;
            z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
            z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
            word = z ^ (z >> 31);
        }
    }
    std::uint64_t next() {
        auto& s = state_;
        const std::uint64_t result = std::rotl(s[1] * 5, 7) * 9, t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = std::rotl(s[3], 45);
        return result;
    }
    // Uniform below `bound`, by multiply and shift.
    std::uint64_t below(std::uint64_t bound) {
        __extension__ using Product = unsigned __int128;
        return static_cast<std::uint64_t>((static_cast<Product>(next()) * bound) >> 64);
    }

  private:
    std::uint64_t state_[4];
};

[[gnu::noinline]] inline void generate(Random& random, Key domain, std::span<Command> commands) {
    for (Command& command : commands) command = {random.below(domain), 1, 0, 0};
}

// The commands of one object and type that an AEU executes together.
struct Batch {
    Command* commands;
    std::uint32_t count, capacity;
};

[[gnu::noinline]] inline void execute(Batch& batch) {
    batch.count = 0;
}

// Groups the commands of an incoming buffer by object and type.
[[gnu::noinline]] inline void receive(std::span<const Command> incoming, std::span<Batch> batches) {
    for (const Command& command : incoming) {
        Batch& batch = batches[command.object * types + command.type];
        batch.commands[batch.count++] = command;
        if (batch.count == batch.capacity) execute(batch);
    }
}
