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

// One is asked after the other, and answers; all sleep as soon as nothing comes, or never.
class Sleepers {
  public:
    Sleepers(const RunSetup& run, int own, int other, bool sleep, std::size_t peers = 1)
        : sleep_(sleep), board_((1 + peers) * contact_bytes) {
        for (std::size_t k = 0; k < peers; ++k)
            peers_.push_back(std::make_unique<Forked>([this, &run, other, k] {
                try {
                    pin_thread(other);
                    answer(run, k);
                } catch (const std::exception&) {
                }
            }));
        pin_thread(own);
        fabric_ = ucx_fabric(run.fabric);
        fabric_->expose(4096);
        publish(board_.data(), fabric_->contact());
        for (std::size_t k = 0; k < peers; ++k) to_.push_back(fabric_->connect(await(contact(k))));
    }

    // Half of there and back, to the first of them or (`among`) to one after the other; `post_ns`
    // grows by the time of handing it over, `serve_ns` by that of the look that found the answer.
    double there(const std::vector<std::byte>& message, double& post_ns, double& serve_ns,
                 bool among = false) {
        const std::int64_t began = steps_now_ns();
        const std::size_t peer = among ? sent_++ % to_.size() : 0;
        fabric_->send(to_[peer], message);
        post_ns += static_cast<double>(steps_now_ns() - began);
        const std::int64_t late = began + 2'000'000'000;
        for (;;) {
            const std::int64_t looked = steps_now_ns();
            if (fabric_->receive(answer_)) {
                serve_ns += static_cast<double>(steps_now_ns() - looked);
                break;
            }
            if (sleep_) fabric_->sleep(std::chrono::milliseconds(10));
            if (steps_now_ns() > late && peers_[peer]->ended())
                throw std::runtime_error("the second process ended");
        }
        return static_cast<double>(steps_now_ns() - began) / 2;
    }

    // When the last message had been received.
    std::int64_t came_ns() const {
        return static_cast<std::int64_t>(load_acquire(board_.data() + came_at));
    }

  private:
    static constexpr std::size_t contact_bytes = 1 << 13, came_at = contact_bytes - word_bytes;

    std::byte* contact(std::size_t peer) const {
        return board_.data() + (1 + peer) * contact_bytes;
    }
    void answer(const RunSetup& run, std::size_t peer) {
        const auto fabric = ucx_fabric(run.fabric);
        fabric->expose(4096);
        publish(contact(peer), fabric->contact());
        const Fabric::Peer back = fabric->connect(await(board_.data()));
        std::vector<std::byte> message;
        for (;;) {
            while (!fabric->receive(message))
                if (sleep_) fabric->sleep(std::chrono::milliseconds(10));
            store_release(board_.data() + came_at, static_cast<std::uint64_t>(steps_now_ns()));
            fabric->send(back, message);
        }
    }
    // A length, then the contact.
    static void publish(std::byte* at, const std::vector<std::byte>& contact) {
        std::memcpy(at + word_bytes, contact.data(), contact.size());
        store_release(at, contact.size());
    }
    static std::span<const std::byte> await(std::byte* at) {
        const std::int64_t late = steps_now_ns() + 5'000'000'000;
        std::uint64_t bytes = 0;
        while ((bytes = load_acquire(at)) == 0) {
            if (steps_now_ns() > late) throw std::runtime_error("the second process is not ready");
            ::usleep(200);
        }
        return {at + word_bytes, bytes};
    }

    bool sleep_;
    SharedMemory board_;
    std::vector<std::unique_ptr<Forked>> peers_;
    std::unique_ptr<Fabric> fabric_;
    std::vector<Fabric::Peer> to_;
    std::size_t sent_ = 0;
    std::vector<std::byte> answer_;
};

}  // namespace numatwin::native
