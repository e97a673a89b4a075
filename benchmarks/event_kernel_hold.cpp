// The hold model as a model on the kernel: each event schedules the next of its process.
//
// Usage: event_kernel_hold PROCESSES EVENTS REPEAT KEY0 KEY1
// Prints CPU seconds of the best run, events handled, the clock at the end and a sum over the
// trace.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "kernel/durations.hpp"
#include "kernel/simulation.hpp"

using namespace numatwin;

namespace {

constexpr double mean_ps = 1e6;

struct Hold {
    Hold(std::uint32_t processes, Stream stream) : times(Durations::exponential(mean_ps), stream) {
        for (std::uint32_t p = 0; p < processes; ++p) clock.schedule(times.next(), 0, p);
    }
    void handle(const Event& event) {
        sum = sum * 31 + static_cast<std::uint64_t>(event.time) + event.subject;
        clock.schedule(event.time + times.next(), 0, event.subject);
    }

    DurationDraws times;
    Simulation clock;
    std::uint64_t sum = 0;
};

}  // namespace

int main(int count, char** arguments) {
    if (count != 6) return 2;
    const auto number = [&](int k) { return std::strtoull(arguments[k], nullptr, 10); };
    const auto processes = static_cast<std::uint32_t>(number(1));
    const auto until = static_cast<Time>(static_cast<double>(number(2)) / processes * mean_ps);
    double best = 1e9;
    for (std::uint64_t run = 0; run < number(3); ++run) {
        Hold model(processes, Stream(number(4), number(5)));
        const std::clock_t start = std::clock();
        model.clock.run(model, until);
        const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
        if (seconds < best) best = seconds;
        if (run + 1 == number(3)) {
            std::printf("%.9f %llu %lld %llu\n", best,
                        static_cast<unsigned long long>(model.clock.events()),
                        static_cast<long long>(model.clock.now()),
                        static_cast<unsigned long long>(model.sum));
        }
    }
}
