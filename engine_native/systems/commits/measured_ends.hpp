// Both ends of a transport in one thread, which works for one and then for the other: for
// measurements.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include "fabric/fabric.hpp"
#include "systems/commits/measure_windows.hpp"

namespace numatwin::native {

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

}  // namespace numatwin::native
