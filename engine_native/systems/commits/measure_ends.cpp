// What either end of a message does, both in one thread: see measure_steps.hpp.
#include <algorithm>
#include <functional>
#include <string>

#include "systems/commits/measured_ends.hpp"

namespace numatwin::native {
std::vector<StepCost> measure_ends(const RunSetup& run, const std::vector<std::uint64_t>& sizes,
                                   const std::vector<std::uint64_t>& counts, const StepPlan& plan) {
    Ends ends(run);
    std::vector<StepCost> found;
    const Fabric::Peer peer = ends.peer();
    const auto measure = [&](const std::string& name, std::uint64_t bytes, std::uint64_t count,
                             const std::function<Ends::Times()>& round) {
        StepCost post{"post-" + name, bytes, 0, count, {}},
            serve{"serve-" + name, bytes, 0, count, {}},
            complete{"complete-" + name, bytes, 0, count, {}};
        for (std::uint32_t window = 0; window <= plan.windows; ++window) {
            Ends::Times sum;
            double rounds = 0;
            const std::int64_t began = steady_ns();
            do {
                const Ends::Times one = round();
                sum.post += one.post;
                sum.serve += one.serve;
                sum.complete += one.complete;
                ++rounds;
            } while (steady_ns() - began < plan.window_ns);
            if (window == 0) continue;
            const double steps = rounds * static_cast<double>(count);
            post.samples_ns.push_back(sum.post / steps);
            serve.samples_ns.push_back(sum.serve / steps);
            complete.samples_ns.push_back(sum.complete / steps);
        }
        found.push_back(post);
        found.push_back(serve);
        found.push_back(complete);
    };
    for (const std::uint64_t count : counts) {
        std::vector<std::uint64_t> words(count), expected(count);
        const std::uint64_t one = 1;
        measure("compare-and-swap", word_bytes, count, [&] {
            return ends.round(count, false, [&](Fabric& fabric, std::uint64_t k, Pending& pending) {
                expected[k] = words[k];
                words[k] = expected[k] + 1;
                fabric.compare_and_swap(peer, k * 64, expected[k], words[k], pending);
            });
        });
        measure("add", word_bytes, count, [&] {
            return ends.round(count, true, [&](Fabric& fabric, std::uint64_t k, Pending&) {
                fabric.add(peer, k * 64, one);
            });
        });
        for (const std::uint64_t asked : sizes) {
            const std::uint64_t bytes = std::clamp<std::uint64_t>(asked / 8 * 8, 16, 1 << 17);
            const auto at = [&](std::uint64_t k) { return k * bytes % (Ends::region_bytes / 2); };
            measure("get", bytes, count, [&] {
                return ends.round(count, false,
                                  [&](Fabric& fabric, std::uint64_t k, Pending& pending) {
                                      fabric.get(peer, at(k), ends.own(at(k)), bytes, pending);
                                  });
            });
            measure("put", bytes, count, [&] {
                return ends.round(count, true, [&](Fabric& fabric, std::uint64_t k, Pending&) {
                    fabric.publish(peer, at(k), ends.own(at(k)), bytes);
                });
            });
            measure("message", bytes, count, [&] { return ends.messages(count, bytes); });
        }
    }
    found.push_back({"idle-look", 0, 0, 1, means_ns(plan, [&] {
                         for (int k = 0; k < 16; ++k) ends.idle_look();
                         return 16.0;
                     })});
    found.push_back({"arm", 0, 0, 1, means_ns(plan, [&] {
                         for (int k = 0; k < 16; ++k) ends.arm();
                         return 16.0;
                     })});
    return found;
}

}  // namespace numatwin::native
