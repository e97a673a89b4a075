// How single steps vary: see measure_steps.hpp.
#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "systems/commits/measured_beginning.hpp"
#include "systems/commits/measured_blocks.hpp"
#include "systems/commits/measured_ends.hpp"
#include "systems/commits/measured_sleepers.hpp"
#include "systems/commits/single_steps.hpp"

namespace numatwin::native {
namespace {

constexpr int steps_max = 5000;  // of a window: more tell no more
constexpr std::int64_t falls_asleep_ns = 20'000;

// Windows of steps, the first one to warm up; `step` adds to each of the singles.
void in_windows(const StepPlan& plan, std::initializer_list<SingleSteps*> singles,
                const std::function<void()>& step) {
    for (std::uint32_t window = 0; window <= plan.windows; ++window) {
        const std::int64_t began = steps_now_ns();
        for (int steps = 0; steps < steps_max && steps_now_ns() - began < plan.window_ns; ++steps)
            step();
        for (SingleSteps* one : singles) window > 0 ? one->end_window() : one->drop_window();
    }
}

// A look at the clock, mostly.
double clock_ns() {
    std::vector<double> looks(1000);
    for (double& look : looks) {
        const std::int64_t began = steps_now_ns();
        look = static_cast<double>(steps_now_ns() - began);
    }
    return usual_mean(looks);
}

}  // namespace

std::vector<StepSpread> measure_block_spreads(std::uint64_t bytes,
                                              const std::vector<std::uint64_t>& regions,
                                              const std::vector<int>& cpus, const StepPlan& plan,
                                              double turn_ns) {
    const std::uint64_t largest = *std::max_element(regions.begin(), regions.end());
    const SharedMemory memory(std::max<std::uint64_t>(largest, Beginning::words_max));
    if (!cpus.empty()) pin_thread(cpus[0]);
    std::unique_ptr<Companion> companion;
    if (cpus.size() > 1) companion = std::make_unique<Companion>(memory.data(), largest, cpus[1]);
    std::vector<StepSpread> found;
    OwnPages pages;
    const double look_ns = clock_ns();
    const auto timed = [look_ns](SingleSteps& into, const std::function<void()>& step) {
        const std::int64_t began = steps_now_ns();
        step();
        into.add(static_cast<double>(steps_now_ns() - began) - look_ns);
    };
    for (const std::uint64_t region : regions) {
        Blocks blocks(memory.data(), region, bytes);
        blocks.warm_up();
        const auto measure = [&](const char* end) {
            SingleSteps get(turn_ns), write(turn_ns), insert(turn_ns);
            in_windows(plan, {&get, &write}, [&] {
                pages.touch();
                timed(get, [&] { blocks.get(); });
                timed(write, [&] { blocks.write(); });
            });
            in_windows(plan, {&insert}, [&] {
                pages.touch();
                timed(insert, [&] { blocks.insert(); });
            });
            const std::pair<const char*, const SingleSteps*> all[] = {
                {"get", &get}, {"write", &write}, {"insert", &insert}};
            for (const auto& [name, singles] : all)
                found.push_back(singles->spread(std::string(name) + end, bytes, region));
        };
        measure("");
        if (!companion) continue;
        companion->tell(region / bytes, bytes);
        measure("-together");
        companion->tell(0, bytes);
    }
    Beginning beginning(memory.data());
    SingleSteps begin(turn_ns);
    in_windows(plan, {&begin}, [&] {
        pages.touch();
        timed(begin, [&] {
            beginning.draw_keys();
            beginning.get_words(Beginning::words_max);
            beginning.find_timestamp();
            beginning.note();
        });
    });
    found.push_back(begin.spread("begin", 0, 0));
    store_release(memory.data(), beginning.sum());  // what was summed is used
    return found;
}

std::vector<StepSpread> measure_message_spreads(const RunSetup& run, std::uint64_t bytes,
                                                const std::vector<int>& cpus, const StepPlan& plan,
                                                double turn_ns) {
    if (cpus.empty()) throw std::invalid_argument("expected a processor");
    pin_thread(cpus[0]);
    std::vector<StepSpread> found;
    {
        Ends ends(run);
        SingleSteps post(turn_ns), serve(turn_ns), complete(turn_ns);
        in_windows(plan, {&post, &serve, &complete}, [&] {
            const Ends::Times times =
                ends.round(1, false, [&](Fabric& fabric, std::uint64_t, Pending& pending) {
                    fabric.get(ends.peer(), 0, ends.own(0), bytes, pending);
                });
            post.add(times.post);
            serve.add(times.serve);
            complete.add(times.complete);
        });
        post.add(serve);
        post.add(complete);
        found.push_back(post.spread("end", bytes, 0));
    }
    if (cpus.size() < 2) return found;
    Sleepers sleepers(run, cpus[0], cpus[1], true);
    const std::vector<std::byte> message(bytes);
    SingleSteps there;
    double post_ns = 0, serve_ns = 0;
    in_windows(plan, {&there}, [&] {
        // The other one is to be asleep.
        const std::int64_t answered = steps_now_ns();
        while (steps_now_ns() - answered < falls_asleep_ns) {
        }
        const std::int64_t began = steps_now_ns();
        sleepers.there(message, post_ns, serve_ns);
        there.add(static_cast<double>(sleepers.came_ns() - began));
    });
    found.push_back(there.spread("sleeper", bytes, 0));
    return found;
}

}  // namespace numatwin::native
