// Steps on blocks in shared memory, alone and beside another process: see measure_steps.hpp.
#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>

#include "systems/commits/measured_beginning.hpp"
#include "systems/commits/measured_blocks.hpp"

namespace numatwin::native {
namespace {

// What a step of so many parts took longer than going through one's own alone; per part.
void less(std::vector<double>& with, const std::vector<double>& without, double parts) {
    for (std::size_t k = 0; k < with.size(); ++k)
        with[k] = std::max(with[k] - without[k], 0.0) / parts;
}

}  // namespace

std::vector<StepCost> measure_blocks(const std::vector<std::uint64_t>& sizes,
                                     const std::vector<std::uint64_t>& regions,
                                     const std::vector<int>& cpus, const StepPlan& plan) {
    std::vector<StepCost> found;
    const std::uint64_t largest = *std::max_element(regions.begin(), regions.end());
    const SharedMemory memory(largest);
    std::unique_ptr<Companion> companion;
    if (cpus.size() > 1) {
        pin_thread(cpus[0]);
        companion = std::make_unique<Companion>(memory.data(), largest, cpus[1]);
    }
    const std::string names[] = {"block-get", "block-update", "block-insert"};
    OwnPages pages;
    Beginning beginning(memory.data());
    const auto add = [&](const char* name, std::uint64_t bytes, std::uint64_t region,
                         const std::function<double()>& work) {
        found.push_back({name, bytes, region, 1, means_ns(plan, work)});
    };
    for (const std::uint64_t region : regions) {
        for (const std::uint64_t bytes : sizes) {
            Blocks blocks(memory.data(), region, bytes);
            // Each time a client comes to a step, it has been through what is its own.
            const auto many = [&pages](auto step) {
                return [&pages, step] {
                    for (int k = 0; k < 32; ++k) {
                        pages.touch();
                        step();
                    }
                    return 32.0;
                };
            };
            blocks.warm_up();
            // What is created goes to one place after another: while a client does other things,
            // the processor fetches the next ones. Back to back it could not.
            const auto interleaved = [&](auto step) {
                return many([&beginning, step] {
                    step();
                    beginning.add_bit();
                    beginning.get_words(Beginning::words_max);
                });
            };
            const auto nothing = [] {};
            // In turn, so that what drifts on the host hits all alike.
            const std::vector<std::function<double()>> works{many([&] { blocks.get(); }),
                                                             many([&] { blocks.update(); }),
                                                             interleaved([&] { blocks.insert(); }),
                                                             many(nothing),
                                                             many(nothing),
                                                             interleaved(nothing)};
            const auto measure = [&](const char* end) {
                auto samples = means_in_turn_ns(plan, works);
                for (std::size_t k = 0; k < std::size(names); ++k) {
                    less(samples[k], samples[std::size(names) + k], blocks_at_a_time);
                    found.push_back({names[k] + end, bytes, region, 1, samples[k]});
                }
            };
            measure("");
            if (!companion) continue;
            companion->tell(region / bytes, bytes);
            measure("-together");
            companion->tell(0, bytes);
        }
    }
    for (const std::uint64_t bytes : {std::uint64_t{8}, std::uint64_t{8192}}) {
        const auto words = [&](bool gets) {
            return [&, gets] {
                for (int k = 0; k < 64; ++k) {
                    pages.touch();
                    if (gets) beginning.get_words(bytes);
                }
                return 64.0;
            };
        };
        auto samples = means_in_turn_ns(plan, {words(true), words(false)});
        less(samples[0], samples[1], 1.0);
        found.push_back({"words-get", bytes, 0, 1, samples[0]});
    }
    std::uint64_t sum = 0;
    add("word-add", word_bytes, 0, [&] {
        for (int k = 0; k < 64; ++k) sum += fetch_add(memory.data(), 1);
        return 64.0;
    });
    add("key-draw", 0, 0, [&] {
        double drawn = 0;
        for (int k = 0; k < 8; ++k) drawn += beginning.draw_keys();
        return drawn;
    });
    add("timestamp", 0, 0, [&] {
        for (int k = 0; k < 64; ++k) beginning.find_timestamp();
        return 64.0;
    });
    add("note", 0, 0, [&] {
        for (int k = 0; k < 64; ++k) beginning.note();
        return 64.0;
    });
    add("clock", 0, 0, [&] {
        for (int k = 0; k < 64; ++k) sum += static_cast<std::uint64_t>(steady_ns());
        return 64.0;
    });
    store_release(memory.data(), sum + beginning.sum());  // what was summed is used
    return found;
}

}  // namespace numatwin::native
