// What either end of a message does, both in one thread: see measure_steps.hpp.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fabric/fabric.hpp"
#include "systems/commits/measure_windows.hpp"

namespace numatwin::native {

// Both ends of a transport in one thread, which works for one and then for the other: for
// measurements.

class Ends {
  public:
    static constexpr std::uint64_t region_bytes = 1 << 20;

    explicit Ends(const RunSetup& run)
        : asking_(ucx_fabric(run.fabric)), asked_(ucx_fabric(run.fabric)) {
        asked_->expose(region_bytes);
        to_asked_ = asking_->connect(asked_->contact());
        own_.resize(region_bytes);
        // Connections stand before anything is measured.
        Pending pending;
        asking_->get(to_asked_, 0, own_.data(), word_bytes, pending);
        const Patience patience("the other end");
        while (pending.requests > 0) both(patience);
        asking_->send(to_asked_, {own_.data(), word_bytes});
        while (!asked_->receive(message_)) both(patience);
        for (int k = 0; k < 100; ++k) both(patience);
    }

    // Times of posting, serving and completing so many.
    struct Times {
        double post = 0, serve = 0, complete = 0;
    };

    template <class Post>
    Times round(std::uint64_t count, bool flushes, const Post& post) {
        Times times;
        Pending pending;
        const std::int64_t began = steady_ns();
        for (std::uint64_t k = 0; k < count; ++k) post(*asking_, k, pending);
        if (flushes) asking_->flush(to_asked_, pending);
        times.post += static_cast<double>(steady_ns() - began);
        const Patience patience("the other end");
        while (pending.requests > 0) {
            look(*asked_, times.serve);
            if (pending.requests > 0) look(*asking_, times.complete);
            patience.check();
        }
        if (!flushes) return times;
        // What is left of it is nobody's wait, but work all the same.
        for (int idle = 0; idle < 2; ++idle) {
            if (look(*asked_, times.serve)) idle = 0;
            if (look(*asking_, times.complete)) idle = 0;
        }
        return times;
    }

    Times messages(std::uint64_t count, std::uint64_t bytes) {
        Times times;
        std::int64_t began = steady_ns();
        for (std::uint64_t k = 0; k < count; ++k) asking_->send(to_asked_, {own_.data(), bytes});
        times.post = static_cast<double>(steady_ns() - began);
        const Patience patience("the other end");
        for (std::uint64_t k = 0; k < count;) {
            patience.check();
            began = steady_ns();
            const bool came = asked_->receive(message_);
            if (came) times.serve += static_cast<double>(steady_ns() - began);
            if (came)
                ++k;
            else
                look(*asking_, times.complete);
        }
        return times;
    }

    bool idle_look() { return asked_->progress(); }
    void arm() { asked_->sleep(std::chrono::milliseconds(0)); }
    Fabric::Peer peer() const { return to_asked_; }
    std::byte* own(std::uint64_t at) { return own_.data() + at % (region_bytes / 2); }

  private:
    static bool look(Fabric& fabric, double& time) {
        const std::int64_t began = steady_ns();
        const bool worked = fabric.progress();
        if (worked) time += static_cast<double>(steady_ns() - began);
        return worked;
    }
    void both(const Patience& patience) {
        patience.check();
        asking_->progress();
        asked_->progress();
    }

    std::unique_ptr<Fabric> asking_, asked_;
    Fabric::Peer to_asked_ = 0;
    std::vector<std::byte> own_, message_;
};

std::vector<StepCost> measure_ends(const RunSetup& run, const std::vector<std::uint64_t>& sizes,
                                   const std::vector<std::uint64_t>& counts, const StepPlan& plan) {
    Ends ends(run);
    std::vector<StepCost> found;
    const Fabric::Peer peer = ends.peer();
    const auto measure = [&](const std::string& name, std::uint64_t bytes, std::uint64_t count,
                             const std::function<Ends::Times()>& round) {
        std::vector<StepCost> parts;
        for (const char* part : {"post-", "serve-", "complete-"})
            parts.push_back({part + name, bytes, 0, count});
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
            parts[0].samples_ns.push_back(sum.post / steps);
            parts[1].samples_ns.push_back(sum.serve / steps);
            parts[2].samples_ns.push_back(sum.complete / steps);
        }
        found.insert(found.end(), parts.begin(), parts.end());
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
    const auto looks = means_ns(plan, repeated(16, [&] { ends.idle_look(); }));
    found.push_back({"idle-look", 0, 0, 1, looks});
    found.push_back({"arm", 0, 0, 1, means_ns(plan, repeated(16, [&] { ends.arm(); }))});
    return found;
}

}  // namespace numatwin::native
