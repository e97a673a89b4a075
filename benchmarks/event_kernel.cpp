// Two models on the kernel. Hold: each event schedules the next of its process. M/M/1: customers
// come, wait for a server, and leave; how long they stayed is counted.
//
// Usage: event_kernel REPEAT hold PROCESSES EVENTS KEY0 KEY1
//        event_kernel REPEAT mm1 CUSTOMERS UTILISATION KEY0 KEY1 KEY0 KEY1
// Prints CPU seconds of the best run and how many events or customers; of hold the clock at the end
// and a sum over the trace, of M/M/1 mean and 99% quantile of their times.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

#include "kernel/durations.hpp"
#include "kernel/fifo_server.hpp"
#include "kernel/simulation.hpp"
#include "kernel/statistics.hpp"

using namespace numatwin;

namespace {

constexpr double mean_ps = 1e6;

// Draws a few ahead: a processor works on all of them at once, and an event need not wait for a
// logarithm.
class DurationDraws {
  public:
    DurationDraws(Durations durations, Stream stream) : durations_(durations), stream_(stream) {}
    Time next() {
        if (used_ == ahead_.size()) {
            for (Time& time : ahead_) time = durations_.draw(stream_);
            used_ = 0;
        }
        return ahead_[used_++];
    }

  private:
    Durations durations_;
    Stream stream_;
    std::array<Time, 4> ahead_{};
    std::size_t used_ = 4;
};

struct Hold {
    Hold(std::uint32_t processes, Stream stream) : times(Durations::exponential(mean_ps), stream) {
        for (std::uint32_t p = 0; p < processes; ++p) clock.schedule(times.next(), 0, p);
    }
    void handle(const Event& event) {
        sum = sum * 31 + static_cast<std::uint64_t>(event.time) + event.subject;
        clock.schedule(event.time + times.next(), 0, event.subject);
    }
    void print() const {
        std::printf("%llu %lld %llu\n", static_cast<unsigned long long>(clock.events()),
                    static_cast<long long>(clock.now()), static_cast<unsigned long long>(sum));
    }

    DurationDraws times;
    Simulation clock;
    std::uint64_t sum = 0;
};

struct Queue {
    enum Kind : std::uint32_t { come, served };

    Queue(double utilisation, Stream arrivals, Stream services)
        : between(Durations::exponential(mean_ps), arrivals),
          service(Durations::exponential(utilisation * mean_ps), services) {
        clock.schedule(between.next(), come);
    }
    void handle(const Event& event) {
        if (event.kind == served) return stayed.add(event.time - static_cast<Time>(event.data));
        clock.schedule(event.time + between.next(), come);
        const auto came = static_cast<std::uint64_t>(event.time);
        clock.schedule(server.admit(event.time, service.next()), served, 0, came);
    }
    void print() const {
        std::printf("%llu %.17g %lld\n", static_cast<unsigned long long>(stayed.count()),
                    stayed.total() / static_cast<double>(stayed.count()),
                    static_cast<long long>(stayed.quantile(0.99)));
    }

    DurationDraws between, service;
    FifoServer server;
    Histogram stayed;
    Simulation clock;
};

template <class Make>
void best_of(int repeat, Time until, const Make& make) {
    double best = 1e9;
    for (int run = 0; run < repeat; ++run) {
        auto model = make();
        const std::clock_t start = std::clock();
        model.clock.run(model, until);
        best = std::min(best, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
        if (run + 1 < repeat) continue;
        std::printf("%.9f ", best);
        model.print();
    }
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 7) return 2;
    const auto number = [&](int k) { return std::strtoull(arguments[k], nullptr, 10); };
    const auto stream = [&](int k) { return Stream(number(k), number(k + 1)); };
    const int repeat = std::atoi(arguments[1]);
    if (std::strcmp(arguments[2], "hold") == 0) {
        const auto processes = static_cast<std::uint32_t>(number(3));
        const auto until = static_cast<Time>(static_cast<double>(number(4)) / processes * mean_ps);
        best_of(repeat, until, [&] { return Hold(processes, stream(5)); });
    } else if (count == 9) {
        const auto until = static_cast<Time>(static_cast<double>(number(3)) * mean_ps);
        const double utilisation = std::atof(arguments[4]);
        best_of(repeat, until, [&] { return Queue(utilisation, stream(5), stream(7)); });
    } else {
        return 2;
    }
}
