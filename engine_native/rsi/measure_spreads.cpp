// How single steps vary: see measure_steps.hpp.
#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>

#include "rsi/measured_beginning.hpp"
#include "rsi/measured_blocks.hpp"
#include "rsi/measured_ends.hpp"
#include "rsi/measured_sleepers.hpp"

namespace numatwin::native {
namespace {

constexpr int steps_max = 5000;  // of a window: more tell no more
constexpr std::int64_t falls_asleep_ns = 20'000;
constexpr double usual = 0.95;
// A step that took as much longer than usual was interrupted by another one's turn on the CPU:
// the model draws these by the clock (TURN_S in sim/commits/host.py), not by the step.
constexpr double turn_ns = 100'000;

// A mean without the slowest: one of them may take longer than all others together.
double usual_mean(std::vector<double> all) {
    std::ranges::sort(all);
    const auto count = static_cast<std::size_t>(usual * static_cast<double>(all.size())) + 1;
    all.resize(std::min(count, all.size()));
    return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
}

// Times of single steps, each over what it took mostly in its window: so what drifts on the host
// from one window to the next is no part of it.
class Singles {
  public:
    // `keeps_turns`: of a step that sleeps, where a turn looks like waking late.
    explicit Singles(bool keeps_turns = false) : keeps_turns_(keeps_turns) {}
    void add(double ns) { window_.push_back(std::max(ns, 0.0)); }
    void end_window() {
        if (window_.empty()) return;
        const double mean = usual_mean(window_);
        if (mean > 0)
            for (const double ns : window_)
                if (keeps_turns_ || ns < mean + turn_ns) factors_.push_back(ns / mean);
        window_.clear();
    }
    void drop_window() { window_.clear(); }
    // Another step's, beside these.
    void add(const Singles& other) {
        factors_.insert(factors_.end(), other.factors_.begin(), other.factors_.end());
    }

    StepSpread spread(std::string name, std::uint64_t bytes, std::uint64_t region) const {
        StepSpread found{std::move(name), bytes, region, factors_.size(), {}};
        if (factors_.empty()) throw std::runtime_error("a step that takes no time");
        std::vector<double> sorted = factors_;
        std::ranges::sort(sorted);
        const auto last = static_cast<double>(sorted.size() - 1);
        for (const double share : spread_quantiles)
            found.factors.push_back(sorted[static_cast<std::size_t>(share * last)]);
        const auto rest =
            sorted.begin() + static_cast<std::ptrdiff_t>(spread_quantiles.back() * last);
        found.factors.push_back(std::accumulate(rest, sorted.end(), 0.0) /
                                static_cast<double>(sorted.end() - rest));
        return found;
    }

  private:
    bool keeps_turns_;
    std::vector<double> window_, factors_;
};

// Windows of steps, the first one to warm up; `step` adds to each of the singles.
void in_windows(const StepPlan& plan, std::initializer_list<Singles*> singles,
                const std::function<void()>& step) {
    for (std::uint32_t window = 0; window <= plan.windows; ++window) {
        const std::int64_t began = steps_now_ns();
        for (int steps = 0; steps < steps_max && steps_now_ns() - began < plan.window_ns; ++steps)
            step();
        for (Singles* one : singles) window > 0 ? one->end_window() : one->drop_window();
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
                                              const std::vector<int>& cpus, const StepPlan& plan) {
    const std::uint64_t largest = *std::max_element(regions.begin(), regions.end());
    const SharedMemory memory(std::max<std::uint64_t>(largest, Beginning::words_max));
    if (!cpus.empty()) pin_thread(cpus[0]);
    std::unique_ptr<Companion> companion;
    if (cpus.size() > 1) companion = std::make_unique<Companion>(memory.data(), largest, cpus[1]);
    std::vector<StepSpread> found;
    OwnPages pages;
    const double look_ns = clock_ns();
    const auto timed = [look_ns](Singles& into, const std::function<void()>& step) {
        const std::int64_t began = steps_now_ns();
        step();
        into.add(static_cast<double>(steps_now_ns() - began) - look_ns);
    };
    for (const std::uint64_t region : regions) {
        Blocks blocks(memory.data(), region, bytes);
        blocks.warm_up();
        const auto measure = [&](const char* end) {
            Singles get, write, insert;
            in_windows(plan, {&get, &write}, [&] {
                pages.touch();
                timed(get, [&] { blocks.get(); });
                timed(write, [&] { blocks.write(); });
            });
            in_windows(plan, {&insert}, [&] {
                pages.touch();
                timed(insert, [&] { blocks.insert(); });
            });
            const std::pair<const char*, const Singles*> all[] = {
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
    Singles begin;
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
                                                const std::vector<int>& cpus,
                                                const StepPlan& plan) {
    if (cpus.empty()) throw std::invalid_argument("expected a processor");
    pin_thread(cpus[0]);
    std::vector<StepSpread> found;
    {
        Ends ends(run);
        Singles post, serve, complete;
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
    Singles there(true);
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
