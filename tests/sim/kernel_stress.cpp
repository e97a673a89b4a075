// Random programs for the event queue, timers and primitives, each against a plain reference.
//
// Usage: kernel_stress SEED PROGRAMS. Prints the number of programs played; a failure prints the
// seed and the program.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <new>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernel/durations.hpp"
#include "kernel/elementary.hpp"
#include "kernel/fifo_server.hpp"
#include "kernel/key_draws.hpp"
#include "kernel/philox.hpp"
#include "kernel/simulation.hpp"
#include "kernel/statistics.hpp"

using namespace numatwin;

namespace {

std::size_t allocations = 0;
std::string program;

void expect(bool holds, const char* what) {
    if (holds) return;
    std::printf("%s: %s\n", program.c_str(), what);
    std::exit(1);
}

// The queue against an ordered set; sizes rise and fall, times are often equal.
void play_queue(Stream& draws) {
    EventQueue queue;
    std::set<std::pair<Time, std::uint64_t>> reference;
    std::uint64_t sequence = 0;
    const std::uint64_t range = 1 + draws.below(draws.below(2) ? 5 : 1000);
    Time now = 0;
    for (int step = 0; step < 400; ++step) {
        const bool rising = step / 100 % 2 == 0;
        if (reference.empty() || draws.below(10) < (rising ? 6u : 4u)) {
            const Time time = now + static_cast<Time>(draws.below(range));
            const std::uint64_t order = draws.below(3) << 56 | sequence++;
            queue.push({time, order, static_cast<std::uint32_t>(order % 7), 3, order});
            reference.insert({time, order});
        } else {
            const auto first = *reference.begin();
            if (draws.below(2)) expect(queue.top().order == first.second, "top");
            const Event event = queue.pop();
            expect(event.time == first.first && event.order == first.second, "pop");
            expect(event.data == event.order && event.kind == event.order % 7, "payload");
            now = event.time;
            reference.erase(reference.begin());
        }
        if (draws.below(60) == 0) {
            const std::uint64_t kept = draws.below(4);
            queue.remove_if([&](const Event& event) { return event.order % 4 != kept; });
            std::erase_if(reference, [&](const auto& entry) { return entry.second % 4 != kept; });
        }
        expect(queue.size() == reference.size(), "size");
        expect(queue.empty() == reference.empty(), "empty");
    }
    while (!reference.empty()) {
        expect(queue.pop().order == reference.begin()->second, "drained");
        reference.erase(reference.begin());
    }
    expect(queue.empty() && queue.top().time == never, "nothing left");
}

// A model that sets and cancels timers at random; the reference knows which are to go off.
struct TimerModel {
    explicit TimerModel(Stream& stream) : draws(stream) {}
    void handle(const Event& event) {
        if (event.kind == 1) {
            const auto found = alive.find(event.data);
            expect(found != alive.end() && found->second.second == event.time, "timer");
            expect(!clock.is_pending(found->second.first), "gone off");
            dead.push_back(found->second.first);
            alive.erase(found);
            ++fired;
            return;
        }
        for (std::uint64_t k = draws.below(6); k-- > 0;) {
            const Time at = clock.now() + static_cast<Time>(draws.below(50));
            const Timer timer = clock.schedule_timer(at, 1, 9, ++made);
            alive[made] = {timer, at};
            longest = std::max(longest, alive.size());
        }
        for (std::uint64_t k = draws.below(6); k-- > 0 && !alive.empty();) {
            const auto victim =
                std::next(alive.begin(), static_cast<std::ptrdiff_t>(draws.below(alive.size())));
            expect(clock.is_pending(victim->second.first), "pending");
            expect(clock.cancel(victim->second.first), "cancel");
            dead.push_back(victim->second.first);
            alive.erase(victim);
        }
        if (!dead.empty()) expect(!clock.cancel(dead[draws.below(dead.size())]), "cancelled again");
        expect(!clock.cancel(no_timer), "no timer");
        if (++ticks < 300) clock.schedule(clock.now() + static_cast<Time>(draws.below(4)), 0);
        expect(clock.pending() == alive.size() + (ticks < 300), "pending count");
    }
    Stream& draws;
    Simulation clock;
    std::map<std::uint64_t, std::pair<Timer, Time>> alive;
    std::vector<Timer> dead;
    std::uint64_t made = 0, fired = 0, ticks = 0;
    std::size_t longest = 0;
};

void play_timers(Stream& draws) {
    TimerModel model(draws);
    model.clock.schedule(0, 0);
    model.clock.run(model, never);
    expect(model.alive.empty() && model.clock.idle(), "all went off");
    expect(model.clock.events() == model.fired + model.ticks, "cancelled ones do not count");
}

// Servers in order of arrival against serving them one by one.
void play_fifo(Stream& draws) {
    const std::size_t count = 1 + draws.below(5);
    FifoServers many(count);
    FifoServer one;
    std::vector<Time> free(count, 0);
    Time alone = 0, now = 0;
    Wide busy = 0;
    for (int job = 0; job < 200; ++job) {
        now += static_cast<Time>(draws.below(20));
        const auto service = static_cast<Time>(draws.below(60));
        const auto first = std::min_element(free.begin(), free.end());
        const Time start = std::max(now, *first);
        *first = start + service;
        expect(many.admit(now, service) == *first, "k servers");
        alone = std::max(now, alone) + service;
        expect(one.admit(now, service) == alone, "one server");
        busy += service;
        expect(one.busy_ps(now) == busy - (alone - now), "busy until now");
    }
    expect(many.busy_ps(now) <= static_cast<Wide>(now) * static_cast<Wide>(count), "busy");
}

// Draws stay in their domain up to the greatest uniform; elementary functions against the library.
void play_draws(Stream& draws) {
    const auto keys =
        static_cast<std::int64_t>(1 + draws.below(std::uint64_t{1} << draws.below(54)));
    const ZipfKeys zipf(keys, 0.05 + 9.9 * draws.uniform(), true);
    const std::vector<std::int64_t> breaks{0, 1, 3, 1000};
    const std::vector<double> mass{draws.uniform(), 0.0, draws.uniform() + 1e-9};
    const PiecewiseKeys piecewise(breaks, mass);
    std::int64_t before = 0;
    for (const double u : {0.0, draws.uniform() / 2, 0.5, 0.5 + draws.uniform() / 2, 1 - 0x1p-53}) {
        const std::int64_t rank = zipf.rank(u);
        expect(rank >= before && rank < keys, "Zipf ranks rise");
        before = rank;
        const std::int64_t place = zipf.draw(u);
        expect(place >= 0 && place < keys, "Zipf keys");
        const std::int64_t key = piecewise.draw(u);
        expect(key >= 0 && key < 1000 && key != 1 && key != 2, "piecewise keys");
    }
    const Durations times = Durations::exponential(Durations::longest_ps / 64);
    for (int k = 0; k < 50; ++k) expect(times.draw(draws) >= 0, "times");
    const double x = draws.uniform() * std::pow(10.0, static_cast<double>(draws.below(30)) - 15);
    const auto close = [](double a, double b) { return std::fabs(a - b) <= 3e-16 * std::fabs(b); };
    if (x > 0) expect(close(elementary::log(x), std::log(x)), "log");
    const double y = (draws.uniform() - 0.5) * 1000;
    expect(close(elementary::exp(y), std::exp(y)), "exp");
}

// Histograms of values of any size against a sorted list.
void play_histogram(Stream& draws) {
    Histogram histogram;
    std::vector<std::int64_t> values;
    for (int k = 0; k < 100; ++k) {
        values.push_back(static_cast<std::int64_t>(draws.bits() >> (1 + draws.below(63))));
        histogram.add(values.back());
    }
    std::sort(values.begin(), values.end());
    for (std::size_t rank = 1; rank <= values.size(); ++rank) {
        const auto exact = static_cast<double>(values[rank - 1]);
        const double q = (static_cast<double>(rank) - 0.5) / static_cast<double>(values.size());
        const auto found = static_cast<double>(histogram.quantile(q));
        expect(std::fabs(found - exact) <= Histogram::relative_error * exact, "quantile");
    }
    histogram.add(never, ~std::uint64_t{0} >> 1);
    expect(histogram.greatest() == never && histogram.quantile(1) == never, "greatest");
}

// A steady state takes no memory: hold, timers set and cancelled, servers.
struct SteadyModel {
    explicit SteadyModel(Stream& stream) : draws(stream), servers(3) {
        for (std::uint32_t k = 0; k < 100; ++k) clock.schedule(k, 0, k);
    }
    void handle(const Event& event) {
        if (event.kind != 0) return;
        clock.cancel(timer[event.subject]);
        timer[event.subject] = clock.schedule_timer(
            clock.now() + static_cast<Time>(draws.below(500)), 1, event.subject);
        servers.admit(clock.now(), 30);
        clock.schedule(clock.now() + 1 + static_cast<Time>(draws.below(200)), 0, event.subject);
    }
    Stream& draws;
    Simulation clock;
    FifoServers servers;
    std::vector<Timer> timer = std::vector<Timer>(100, no_timer);
};

void play_steady(Stream& draws) {
    SteadyModel model(draws);
    model.clock.run(model, 60'000);
    const std::size_t before = allocations;
    model.clock.run(model, 100'000);
    // Some 40,000 events. An array may still double where it meets a length that is new.
    expect(allocations <= before + 2, "a steady state allocates");
}

}  // namespace

// Not inlined: GCC would take malloc and free of one call chain for mismatched.
[[gnu::noinline]] void* operator new(std::size_t size) {
    ++allocations;
    if (void* memory = std::malloc(size)) return memory;
    throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}

int main(int count, char** arguments) {
    if (count != 3) return 2;
    const std::uint64_t seed = std::strtoull(arguments[1], nullptr, 10);
    const std::uint64_t programs = std::strtoull(arguments[2], nullptr, 10);
    for (std::uint64_t p = 0; p < programs; ++p) {
        program = "seed " + std::to_string(seed) + ", program " + std::to_string(p);
        Stream draws(seed, p);
        play_queue(draws);
        play_timers(draws);
        play_fifo(draws);
        play_draws(draws);
        play_histogram(draws);
        if (p % 20 == 0) play_steady(draws);
    }
    std::printf("%llu programs\n", static_cast<unsigned long long>(programs));
}
