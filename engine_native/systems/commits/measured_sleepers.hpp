// Processes that send each other messages, asleep in between or not: for measurements.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "fabric/fabric.hpp"
#include "fabric/forked.hpp"
#include "fabric/shared_words.hpp"
#include "memory/host.hpp"
#include "systems/commits/measure_windows.hpp"

namespace numatwin::native {

// Both sleep as soon as nothing comes, or never.
class Sleepers {
  public:
    Sleepers(const RunSetup& run, int own, int other, bool sleep)
        : sleep_(sleep), board_(2 * contact_bytes) {
        peer_ = std::make_unique<Forked>([this, &run, other] {
            try {
                pin_thread(other);
                answer(run);
            } catch (const std::exception&) {
            }
        });
        pin_thread(own);
        fabric_ = ucx_fabric(run.fabric);
        fabric_->expose(4096);
        publish(board_.data(), fabric_->contact());
        to_ = fabric_->connect(await(contact()));
    }

    // Half of there and back; `post_ns` grows by the time of handing it over, `serve_ns` by that of
    // the look that found the answer.
    double there(const std::vector<std::byte>& message, double& post_ns, double& serve_ns) {
        const Patience patience("the second process");
        const std::int64_t began = steady_ns();
        fabric_->send(to_, message);
        post_ns += static_cast<double>(steady_ns() - began);
        for (;;) {
            const std::int64_t looked = steady_ns();
            if (fabric_->receive(answer_)) {
                serve_ns += static_cast<double>(steady_ns() - looked);
                break;
            }
            if (sleep_) fabric_->sleep(std::chrono::milliseconds(10));
            patience.check();
        }
        return static_cast<double>(steady_ns() - began) / 2;
    }

  private:
    static constexpr std::size_t contact_bytes = 1 << 13;

    std::byte* contact() const { return board_.data() + contact_bytes; }
    void answer(const RunSetup& run) {
        const auto fabric = ucx_fabric(run.fabric);
        fabric->expose(4096);
        publish(contact(), fabric->contact());
        const Fabric::Peer back = fabric->connect(await(board_.data()));
        std::vector<std::byte> message;
        for (;;) {
            while (!fabric->receive(message))
                if (sleep_) fabric->sleep(std::chrono::milliseconds(10));
            fabric->send(back, message);
        }
    }
    // A length, then the contact.
    static void publish(std::byte* at, const std::vector<std::byte>& contact) {
        std::memcpy(at + word_bytes, contact.data(), contact.size());
        store_release(at, contact.size());
    }
    static std::span<const std::byte> await(std::byte* at) {
        const Patience patience("the second process");
        std::uint64_t bytes = 0;
        while ((bytes = load_acquire(at)) == 0) {
            patience.check();
            ::usleep(200);
        }
        return {at + word_bytes, bytes};
    }

    bool sleep_;
    SharedMemory board_;
    std::unique_ptr<Forked> peer_;
    std::unique_ptr<Fabric> fabric_;
    Fabric::Peer to_{};
    std::vector<std::byte> answer_;
};

}  // namespace numatwin::native
