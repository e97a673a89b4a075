// When a run counts as one that stands still: time and counts are made up.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "systems/commits/stall_watch.hpp"

namespace numatwin::native {
namespace {

constexpr std::int64_t s_ns = 1'000'000'000, look_ns = 2'000'000;

RunSetup two_phase() {
    RunSetup setup;
    setup.one_sided = false;
    setup.fabric.transports = "posix,self";
    return setup;
}

// Looks every two milliseconds; transactions end as `every_ns` says (0: none).
struct Looks {
    explicit Looks(const RunSetup& setup) : watch(setup) {}

    // What is told within so long.
    std::string after(std::int64_t time_ns, std::int64_t every_ns = 0, std::uint32_t left = 3) {
        for (const std::int64_t until_ns = now_ns + time_ns; now_ns < until_ns; now_ns += look_ns) {
            if (every_ns != 0 && now_ns % every_ns == 0) ++ended;
            if (const auto line = watch.look(now_ns, ended, left)) return *line;
        }
        return "";
    }

    StallWatch watch;
    std::int64_t now_ns = 0;
    std::uint64_t ended = 1'000;
};

TEST(StallWatch, nobody_who_lives_is_waited_for) {
    Looks run(two_phase());
    EXPECT_FALSE(run.watch.is_on());
    EXPECT_EQ(run.after(100 * s_ns), "");
}

TEST(StallWatch, tells_after_five_seconds_who_died_and_what_to_do) {
    Looks run(two_phase());
    run.after(7 * s_ns, look_ns);
    run.watch.died("client 1 died (Killed)");
    EXPECT_TRUE(run.watch.is_on());
    EXPECT_EQ(run.after(5 * s_ns), "");
    EXPECT_EQ(run.after(2 * look_ns),
              "client 1 died (Killed), which the scenario does not ask for, and no transaction of "
              "the others has ended for 5 s: it may have left a message half sent in shared "
              "memory, and a server waits for the rest; run it again, or with "
              "NUMATWIN_TRANSPORT=tcp, or let the scenario inject the death (system.faults), which "
              "strikes between messages");
}

TEST(StallWatch, whatever_ends_begins_the_wait_anew) {
    Looks run(two_phase());
    run.watch.died("client 1 died (Killed)");
    EXPECT_EQ(run.after(60 * s_ns, 4'900'000'000), "");
    run.after(4'900'000'000);
    ++run.ended;
    EXPECT_EQ(run.after(5 * s_ns), "");
    EXPECT_NE(run.after(2 * look_ns), "");
}

TEST(StallWatch, several_deaths_are_told_by_the_last) {
    Looks run(two_phase());
    run.watch.died("client 4 died (Killed)");
    run.after(4 * s_ns);
    run.watch.died("client 0 died (Segmentation fault)");
    const std::string line = run.after(2 * s_ns);
    EXPECT_EQ(line.find("client 0 died (Segmentation fault), the last of 2 that the scenario does "
                        "not ask for, and no transaction"),
              0u)
        << line;
}

// As where all of a run is stopped, or the host sleeps.
TEST(StallWatch, time_in_which_nobody_looked_does_not_count) {
    Looks run(two_phase());
    run.watch.died("client 1 died (Killed)");
    for (int stopped = 0; stopped < 40; ++stopped) {
        EXPECT_EQ(run.after(look_ns), "");
        run.now_ns += 600 * s_ns;
    }
    EXPECT_NE(run.after(2 * s_ns), "");
}

TEST(StallWatch, where_no_client_is_left_that_is_told_at_once) {
    for (const bool one_sided : {false, true}) {
        auto setup = two_phase();
        setup.one_sided = one_sided;
        setup.fabric.transports = "tcp,self";
        Looks run(setup);
        EXPECT_EQ(run.after(look_ns, 0, 0), "");  // the scenario's own deaths
        run.watch.died("client 2 died (Killed)");
        EXPECT_EQ(run.after(look_ns, 0, 1), "");
        EXPECT_EQ(run.after(look_ns, 0, 0),
                  "client 2 died (Killed), which the scenario does not ask for, and no client is "
                  "left to commit");
    }
}

TEST(StallWatch, long_pauses_are_no_stall) {
    const auto patience_ns = [](auto change) {
        auto setup = two_phase();
        change(setup);
        return StallWatch(setup).patience_ns();
    };
    EXPECT_EQ(patience_ns([](RunSetup&) {}), 5 * s_ns);
    EXPECT_GE(patience_ns([](RunSetup& setup) { setup.think_ns = s_ns; }), 20 * s_ns);
    EXPECT_GE(patience_ns([](RunSetup& setup) { setup.backoff_ns = s_ns; }), 20 * s_ns);
    EXPECT_GE(patience_ns([](RunSetup& setup) {
                  setup.think_ns = s_ns;
                  setup.factors = {1, 3, 1};
              }),
              60 * s_ns);
    EXPECT_GE(patience_ns([](RunSetup& setup) {
                  setup.one_sided = true;
                  setup.lease_ns = s_ns;
                  setup.skip_after_ns = s_ns;
              }),
              40 * s_ns);
}

// RSI without its remedies waits for the timestamps of the dead: that is what such a run shows.
TEST(StallWatch, only_messages_in_memory_are_left_half_sent) {
    const auto waits_for_ever = [](RunSetup setup) {
        Looks run(setup);
        run.watch.died("client 1 died (Killed)");
        return run.after(100 * s_ns).empty();
    };
    auto setup = two_phase();
    EXPECT_FALSE(waits_for_ever(setup));
    setup.fabric.transports = "sysv,self";
    EXPECT_FALSE(waits_for_ever(setup));
    setup.fabric.transports = "tcp,self";
    EXPECT_TRUE(waits_for_ever(setup));
    setup = two_phase();
    setup.one_sided = true;
    EXPECT_TRUE(waits_for_ever(setup));
    setup.lease_ns = 1;
    EXPECT_TRUE(waits_for_ever(setup));
    setup.skip_after_ns = 1;
    EXPECT_FALSE(waits_for_ever(setup));
}

}  // namespace
}  // namespace numatwin::native
