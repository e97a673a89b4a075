// Raw routing of 16-byte commands by the native engine, and memcpy of the same bytes.
//
//   native_routing TARGETS COMMANDS_PER_BUFFER STREAM_COMMANDS REPEAT THREADS
//
// A stream of commands (random key, value) lies in memory. Routing finds each one's owner, splits
// by owner, gathers so many commands per buffer, writes full buffers into the owner's incoming
// buffer, and takes all out there again, every word looked at. With one thread, it does it all, in
// turns; with two, one routes and the other takes. What is timed is CPU time of the routing thread.
//
// In turns with it, in the same process: memcpy of the stream to a destination of the same size; to
// one window that stays in the cache; and from cache to cache, the same number of bytes.
// Prints a line a repeat: bytes a second of routing and of the three copies; and last a sum of all
// that arrived.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "memory/memory.hpp"
#include "systems/eris/router.hpp"

using namespace numatwin::native;

namespace {

constexpr std::size_t incoming_commands = 2048;  // of one buffer: 32 KiB, or two outgoing ones
constexpr std::size_t window_bytes = 64 << 10;
constexpr std::size_t batch = 4096;

double cpu_s() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <class Work>
double rate_Bps(std::size_t bytes, Work&& work) {
    const double start = cpu_s();
    work();
    return static_cast<double>(bytes) / (cpu_s() - start);
}

struct Taken {
    std::uint64_t commands = 0, sum = 0;
    void take(IncomingBuffers& incoming) {
        for (const Command command : Commands(incoming.swap())) {
            std::uint64_t words = 0;
            for (const std::uint64_t word : command.words) {
                words += word;
            }
            sum += words;
            commands += command.header.count;
        }
    }
};

struct Bench {
    Bench(std::size_t targets, std::size_t per_buffer, std::size_t stream_commands)
        : stream(stream_commands) {
        std::uint64_t state = 1;
        for (Pair& pair : stream) {  // splitmix64
            std::uint64_t key = state += 0x9e3779b97f4a7c15;
            key = (key ^ key >> 30) * 0xbf58476d1ce4e5b9;
            key = (key ^ key >> 27) * 0x94d049bb133111eb;
            pair = {key ^ key >> 31, state};
        }
        std::vector<Partition> partitions;
        std::vector<IncomingBuffers*> pointers;
        const OutgoingSizes sizes{sizeof(CommandHeader) + sizeof(Pair) * per_buffer, 4096};
        for (std::uint32_t target = 0; target < targets; ++target) {
            partitions.push_back({~std::uint64_t{0} / targets * target, target});
            incoming.push_back(std::make_unique<IncomingBuffers>(
                heap, std::max(sizeof(Pair) * incoming_commands,
                               2 * sizes.unicast_bytes + sizes.multicast_bytes)));
            pointers.push_back(incoming.back().get());
        }
        table = std::make_unique<PartitionTree>(heap, partitions, 0);
        outgoing = std::make_unique<OutgoingBuffers>(heap, pointers, sizes);
    }

    // `refused()` is called when a target has no room.
    template <class Refused>
    void route(Refused&& refused) {
        Router router(*outgoing);
        CommandHeader header;
        header.operation = 1;
        for (std::span<const Pair> left = stream; !left.empty();) {
            const std::size_t some = std::min(batch, left.size());
            const std::size_t taken = router.route_pairs(*table, header, left.first(some));
            left = left.subspan(taken);
            if (taken < some) {
                refused();
            }
        }
        while (!outgoing->flush_all()) {
            refused();
        }
    }

    void route_and_take() {
        const auto take_all = [&] {
            const double start = cpu_s();
            for (auto& one : incoming) {
                taken.take(*one);
            }
            taking_s += cpu_s() - start;
        };
        route(take_all);
        take_all();
    }

    void route_while_another_takes() {
        route([] { std::this_thread::yield(); });
    }

    HeapMemory heap;
    std::vector<Pair> stream;
    std::vector<std::unique_ptr<IncomingBuffers>> incoming;
    std::unique_ptr<PartitionTree> table;
    std::unique_ptr<OutgoingBuffers> outgoing;
    Taken taken;
    double taking_s = 0;  // of the routing thread
};

}  // namespace

int main(int count, char** arguments) {
    if (count != 6) {
        std::fprintf(stderr, "native_routing TARGETS COMMANDS_PER_BUFFER STREAM REPEAT THREADS\n");
        return 2;
    }
    const auto number = [&](int i) { return std::strtoull(arguments[i], nullptr, 10); };
    const std::size_t stream_commands = number(3), repeat = number(4), threads = number(5);
    Bench bench(number(1), number(2), stream_commands);
    const std::size_t bytes = sizeof(Pair) * stream_commands;
    std::vector<std::byte> copy(bytes), window(2 * window_bytes);
    const auto* stream = reinterpret_cast<const std::byte*>(bench.stream.data());

    for (std::size_t i = 0; i < repeat; ++i) {
        std::thread taker;
        if (threads == 2) {
            taker = std::thread([&] {
                while (bench.taken.commands < (i + 1) * stream_commands) {
                    const std::uint64_t before = bench.taken.commands;
                    for (auto& one : bench.incoming) {
                        bench.taken.take(*one);
                    }
                    if (bench.taken.commands == before) {
                        std::this_thread::yield();
                    }
                }
            });
        }
        bench.taking_s = 0;
        const double both = rate_Bps(bytes, [&] {
            threads == 2 ? bench.route_while_another_takes() : bench.route_and_take();
        });
        if (taker.joinable()) {
            taker.join();
        }
        const double routed =
            static_cast<double>(bytes) / (static_cast<double>(bytes) / both - bench.taking_s);
        const double copied = rate_Bps(bytes, [&] { std::memcpy(copy.data(), stream, bytes); });
        const double into_cache = rate_Bps(bytes, [&] {
            for (std::size_t at = 0; at < bytes; at += window_bytes) {
                std::memcpy(window.data(), stream + at, std::min(window_bytes, bytes - at));
                asm volatile("" ::"r"(window.data()) : "memory");
            }
        });
        const double in_cache = rate_Bps(bytes, [&] {
            for (std::size_t at = 0; at < bytes; at += window_bytes) {
                std::memcpy(window.data(), window.data() + window_bytes,
                            std::min(window_bytes, bytes - at));
                asm volatile("" ::"r"(window.data()) : "memory");
            }
        });
        std::printf("%.0f %.0f %.0f %.0f %.0f\n", routed, both, copied, into_cache, in_cache);
    }
    if (bench.taken.commands != repeat * stream_commands) {
        std::fprintf(stderr, "commands were lost\n");
        return 1;
    }
    std::printf("%llx\n", static_cast<unsigned long long>(bench.taken.sum));
    return 0;
}
