// Random programs for the event queue, timers and primitives, each against a plain reference.
//
// Usage: kernel_stress SEED PROGRAMS. Prints the number of programs played; a failure prints the
// seed and the program.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <new>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernel/bounded_queue.hpp"
#include "kernel/durations.hpp"
#include "kernel/elementary.hpp"
#include "kernel/fifo_server.hpp"
#include "kernel/key_draws.hpp"
#include "kernel/philox.hpp"
#include "kernel/shared_links.hpp"
#include "kernel/shared_server.hpp"
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

void play_bounded_queue(Stream& draws) {
    const std::uint64_t room = 1 + draws.below(6);
    BoundedQueue<int> queue(room);
    std::deque<std::pair<int, std::uint64_t>> inside, held;
    std::uint64_t used = 0, kept = 0;
    for (int item = 0; item < 200; ++item) {
        const std::uint64_t units = 1 + draws.below(room);
        const bool fits = held.empty() && used + units <= room;
        expect(queue.is_full(units) == !fits, "full");
        expect(queue.offer(item, units) == fits, "offer");
        (fits ? inside : held).push_back({item, units});
        if (fits) used += units;
        if (!inside.empty() && draws.below(3) > 0) {
            const bool keeps = draws.below(3) == 0;
            const auto [first, size] = inside.front();
            expect((keeps ? queue.take_keeping_room() : queue.take()) == first, "take");
            inside.pop_front();
            if (keeps)
                kept += size;
            else
                used -= size;
        }
        if (kept > 0 && (draws.below(2) || inside.empty())) {
            queue.release(kept);
            used -= std::exchange(kept, 0);
        }
        for (int admitted; queue.admit(admitted);) {
            expect(!held.empty() && held.front().first == admitted, "admit");
            used += held.front().second;
            inside.push_back(held.front());
            held.pop_front();
        }
        expect(held.empty() || used + held.front().second > room, "held without need");
        expect(queue.used() == used && queue.size() == inside.size() && queue.held() == held.size(),
               "counts");
    }
}

// Servers in order of arrival against serving them one by one.
void play_fifo(Stream& draws) {
    const std::size_t count = 1 + draws.below(5);
    FifoServers many(count);
    FifoServer one;
    std::vector<Time> free(count, 0);
    Time alone = 0, now = 0;
    Wide waiting = 0;
    for (int job = 0; job < 200; ++job) {
        now += static_cast<Time>(draws.below(20));
        const auto service = static_cast<Time>(draws.below(60));
        const auto first = std::min_element(free.begin(), free.end());
        const Time start = std::max(now, *first);
        waiting += start - now;
        *first = start + service;
        expect(many.admit(now, service) == *first, "k servers");
        alone = std::max(now, alone) + service;
        expect(one.admit(now, service) == alone, "one server");
        expect(one.free_at() == alone && one.backlog(now) == alone - now, "backlog");
        expect(many.next_free() == *std::min_element(free.begin(), free.end()), "next free");
    }
    expect(many.work().jobs == 200 && many.work().waiting_ps == waiting, "work");
    expect(many.busy_ps(now) <= static_cast<Wide>(now) * static_cast<Wide>(count), "busy");
}

// Shared servers against working every job forward at its own rate from change to change.
void play_shared(Stream& draws) {
    constexpr double caps[] = {0.3, 1.0, SharedServer::no_cap};
    const double capacity = 0.5 + draws.uniform() * 3;
    SharedServer server(capacity);
    struct Job {
        double left, cap;
    };
    std::map<std::uint64_t, Job> jobs;
    Time now = 0;
    double admitted = 0;
    const auto rate_of = [&](const Job& job) {  // the level, by halving
        double low = 0, high = capacity + 1;
        for (int k = 0; k < 80; ++k) {
            const double level = (low + high) / 2;
            double use = 0;
            for (const auto& [name, other] : jobs) use += std::min(other.cap, level);
            (use < capacity ? low : high) = level;
        }
        return std::min(job.cap, low);
    };
    const auto advance = [&](Time to) {
        std::vector<std::pair<std::uint64_t, double>> rates;
        for (const auto& [name, job] : jobs) rates.push_back({name, rate_of(job)});
        for (const auto& [name, rate] : rates)
            jobs[name].left -= rate * static_cast<double>(to - now);
        now = to;
    };
    Time arrival = 0;
    for (std::uint64_t job = 0; job < 60 || !jobs.empty();) {
        const Time end = server.next_end();
        expect((end == never) == jobs.empty(), "an end");
        if (job < 60 && arrival <= end) {
            advance(arrival);
            const double work = static_cast<double>(draws.below(5000)) / 3,
                         cap = caps[draws.below(3)];
            server.admit(now, job, work, cap);
            jobs[job++] = {work, cap};
            admitted += work;
            arrival = now + static_cast<Time>(draws.below(1500));
        } else {
            advance(end);
            const std::uint64_t done = server.finish(now);
            const auto found = jobs.find(done);
            expect(found != jobs.end(), "a job that is there");
            // Its end was rounded up to a picosecond; others may end in the same one.
            const double crumb = 1e-9 * (1 + admitted);
            expect(found->second.left <= crumb, "its work is done");
            for (const auto& [name, other] : jobs)
                expect(other.left >= -capacity - crumb, "no one is late");
            jobs.erase(found);
        }
        expect(server.jobs() == jobs.size(), "jobs");
    }
}

// Links against the network alone: the same flows, told one at a time and in whole picoseconds.
void play_links(Stream& draws) {
    SharedLinks links;
    FlowNetwork alone;
    for (const double capacity : {0.5, 1.0, 2.0}) {
        links.add_link(capacity);
        alone.add_resource(capacity);
    }
    std::multiset<std::uint64_t> running;
    std::map<std::int64_t, std::uint64_t> names;
    const std::vector<double> ones{1.0, 1.0};
    std::vector<Completion> completions;
    Time now = 0;
    for (std::uint64_t job = 0; job < 60 || !running.empty();) {
        const Time due = links.next_change();
        if (job < 60 && (draws.below(2) || due == never)) {
            now = std::min(due, now + static_cast<Time>(draws.below(300)));
            const std::int64_t from = static_cast<std::int64_t>(draws.below(2));
            const std::vector<std::int64_t> route{from, from + 1};
            const FlowStart flow{{route, ones, 0.1 + draws.uniform() * 2, 1.0},
                                 static_cast<double>(draws.below(400)),
                                 draws.below(2) ? 0.0 : draws.uniform() * 100};
            links.start(now, flow, job);
            alone.advance(static_cast<double>(now), completions);
            names[alone.start(flow)] = job;
            running.insert(job++);
        } else {
            expect(due >= now && due != never, "due");
            now = due;
            for (std::uint64_t ended; links.finish(now, ended);) {
                alone.advance(static_cast<double>(now), completions);
                const bool same =
                    std::any_of(completions.begin(), completions.end(),
                                [&](const Completion& c) { return names[c.flow] == ended; });
                expect(same, "the flow that ended");
                running.erase(ended);
            }
            expect(links.next_change() > now, "told all");
        }
        expect(links.active() <= running.size(), "active");
    }
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
    DurationDraws times(Durations::exponential(Durations::longest_ps / 64), draws);
    for (int k = 0; k < 50; ++k) expect(times.next() >= 0, "times");
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
    histogram.add_even(0, never, ~std::uint64_t{0} >> 1);
    expect(histogram.greatest() == never && histogram.quantile(1) == never, "greatest");
}

// A steady state takes no memory: hold, timers set and cancelled, queues, servers.
struct SteadyModel {
    explicit SteadyModel(Stream& stream) : draws(stream), shared(2.0) {
        for (std::uint32_t k = 0; k < 100; ++k) clock.schedule(k, 0, k);
    }
    void handle(const Event& event) {
        if (event.kind != 0) return;
        clock.cancel(timer[event.subject]);
        timer[event.subject] = clock.schedule_timer(
            clock.now() + static_cast<Time>(draws.below(500)), 1, event.subject);
        if (!queue.is_full()) queue.offer(event.subject);
        if (draws.below(2) && !queue.empty()) queue.take();
        while (shared.next_end() <= clock.now()) shared.finish(shared.next_end());
        if (shared.jobs() < 50) shared.admit(clock.now(), 1, 30.0, event.subject % 2 ? 0.5 : 1.0);
        clock.schedule(clock.now() + 1 + static_cast<Time>(draws.below(200)), 0, event.subject);
    }
    Stream& draws;
    Simulation clock;
    SharedServer shared;
    BoundedQueue<std::uint32_t> queue{40};
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
        play_bounded_queue(draws);
        play_fifo(draws);
        play_shared(draws);
        play_links(draws);
        play_draws(draws);
        play_histogram(draws);
        if (p % 20 == 0) play_steady(draws);
    }
    std::printf("%llu programs\n", static_cast<unsigned long long>(programs));
}
