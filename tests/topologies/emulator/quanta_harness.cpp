// Cases of plugin/quanta.hpp, without QEMU: ends with 1, and says why, where one does not hold.
#include <atomic>
#include <cstdio>
#include <cstring>
#include <random>
#include <thread>

#include "quanta.hpp"

namespace {

using numatwin::Quanta;
using namespace std::chrono_literals;

constexpr std::int64_t QUANTUM = 100, BLOCK = 10;

void expect(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "not so: %s\n", what);
    std::exit(1);
}

// Four processors execute blocks of 1 to 10, the first of them slowly, the second one with pauses.
// Whoever has begun a quantum knows that all have ended the one before it.
void nobody_is_ahead() {
    constexpr unsigned PROCESSORS = 4;
    constexpr std::int64_t ALL = 20'000;
    Quanta quanta(PROCESSORS, QUANTUM, 1h);
    std::atomic<std::int64_t> done[PROCESSORS] = {};
    std::atomic<unsigned> begun{0};
    const auto play = [&](unsigned cpu) {
        std::minstd_rand draws(cpu + 1);
        quanta.resume(cpu);
        for (++begun; begun < PROCESSORS;) std::this_thread::yield();
        while (done[cpu] < ALL) {
            const auto block = static_cast<std::int64_t>(draws() % BLOCK) + 1;
            quanta.executed(cpu, block);
            done[cpu] += block;
            if (cpu == 0 && draws() % 16 == 0) std::this_thread::sleep_for(100us);
            for (unsigned other = 0; other < PROCESSORS; ++other) {
                const std::int64_t theirs = done[other];  // at its end it waits for nobody
                expect(theirs >= ALL || done[cpu] <= theirs + QUANTUM + 2 * BLOCK,
                       "ahead by a quantum and a block at most");
            }
        }
        quanta.idle(cpu);
    };
    std::vector<std::thread> threads;
    for (unsigned cpu = 0; cpu < PROCESSORS; ++cpu) threads.emplace_back(play, cpu);
    for (std::thread& thread : threads) thread.join();
}

// Processor 1 executes a little, then nothing, and is not idle: where is processor 0 after 100?
class Halfway {
  public:
    explicit Halfway(Quanta::Clock::duration patience) : quanta(2, QUANTUM, patience) {
        quanta.executed(1, 1);
    }
    // Processor 0 does `act`; whether it has come to its end after a while.
    template <typename Act>
    bool ends(Act act) {
        runner_ = std::thread([this, act] {
            act(quanta);
            ended_ = true;
        });
        for (int tries = 0; tries < 100 && !ended_; ++tries) std::this_thread::sleep_for(1ms);
        return ended_;
    }
    ~Halfway() { runner_.join(); }
    Quanta quanta;

  private:
    std::thread runner_;
    std::atomic<bool> ended_{false};
};

void waits_until_the_other_has_come() {
    Halfway case_(1h);
    expect(!case_.ends([](Quanta& quanta) { quanta.executed(0, QUANTUM + 1); }), "waits");
    case_.quanta.executed(1, QUANTUM);
}

void idle_ones_are_not_waited_for() {
    Halfway case_(1h);
    case_.quanta.idle(1);
    expect(case_.ends([](Quanta& quanta) { quanta.executed(0, 10 * QUANTUM); }), "goes on");
}

void goes_on_when_the_last_one_becomes_idle() {
    Halfway case_(1h);
    expect(!case_.ends([](Quanta& quanta) { quanta.executed(0, QUANTUM + 1); }), "waits");
    case_.quanta.idle(1);
}

void a_nap_is_no_new_quantum() {
    Halfway case_(1h);
    const auto act = [](Quanta& quanta) {
        for (int naps = 0; naps < 3; ++naps) {
            quanta.executed(0, QUANTUM / 2);
            quanta.idle(0);
            quanta.resume(0);
        }
    };
    expect(!case_.ends(act), "waits");
    case_.quanta.executed(1, QUANTUM);
}

// Where QEMU holds the other one, for instance.
void patience_ends() {
    Halfway case_(1us);
    const auto act = [](Quanta& quanta) {
        for (int blocks = 0; blocks < 100; ++blocks) quanta.executed(0, BLOCK);
    };
    expect(case_.ends(act), "goes on");
}

struct Case {
    const char* name;
    void (*play)();
};
constexpr Case CASES[] = {
    {"nobody_is_ahead", nobody_is_ahead},
    {"waits_until_the_other_has_come", waits_until_the_other_has_come},
    {"idle_ones_are_not_waited_for", idle_ones_are_not_waited_for},
    {"goes_on_when_the_last_one_becomes_idle", goes_on_when_the_last_one_becomes_idle},
    {"a_nap_is_no_new_quantum", a_nap_is_no_new_quantum},
    {"patience_ends", patience_ends},
};

}  // namespace

int main(int argc, char** argv) {
    for (const Case& one : CASES)
        if (argc == 2 && std::strcmp(one.name, argv[1]) == 0) return one.play(), 0;
    std::fprintf(stderr, "quanta_harness: no such case\n");
    return 2;
}
