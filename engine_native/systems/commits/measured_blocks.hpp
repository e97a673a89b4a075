// Blocks in shared memory as clients work on them, alone and beside another process: for
// measurements.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>
#include <stdexcept>
#include <vector>

#include "fabric/forked.hpp"
#include "memory/host.hpp"
#include "systems/commits/measure_windows.hpp"
#include "systems/commits/record_block.hpp"

namespace numatwin::native {

// As many blocks at a time as a transaction may read: processors overlap what they miss.
inline constexpr std::size_t blocks_at_a_time = 3;

class Blocks {
  public:
    // As many blocks as the region holds.
    Blocks(std::byte* region, std::uint64_t region_bytes, std::uint64_t bytes,
           std::uint64_t seed = 1)
        : region_(region),
          bytes_(bytes),
          blocks_(region_bytes / checked(bytes, region_bytes)),
          own_(2 * blocks_at_a_time * bytes),
          state_(seed),
          next_(blocks_ / seed) {
        if (next_ >= blocks_) next_ = 0;
    }

    // Once through them, so that what fits into a cache is there; of what does not, some.
    void warm_up() {
        for (std::uint64_t k = 0; k < std::min<std::uint64_t>(blocks_ * bytes_, 64 << 20) / bytes_;
             ++k)
            update();
    }

    double get() {
        draw();
        read();
        return blocks_at_a_time;
    }

    double update() {
        get();
        return write();
    }

    // What an update does to blocks that were got.
    double write() {
        for (std::size_t k = 0; k < blocks_at_a_time; ++k) std::memcpy(made(k), seen(k), bytes_);
        for (std::size_t k = 0; k < blocks_at_a_time; ++k)
            sum_ += compare_and_swap(region_ + at_[k], words_[k], words_[k] | LockWord::lock_bit);
        for (std::size_t k = 0; k < blocks_at_a_time; ++k) put(at_[k], made(k));
        return blocks_at_a_time;
    }

    double insert() {
        for (std::size_t k = 0; k < blocks_at_a_time; ++k) {
            std::memset(made(k), 0, bytes_);
            std::memcpy(made(k), &sum_, word_bytes);
            put(next_ * bytes_, made(k));
            if (++next_ == blocks_) next_ = 0;
        }
        return blocks_at_a_time;
    }

  private:
    static std::uint64_t checked(std::uint64_t bytes, std::uint64_t region_bytes) {
        if (bytes % word_bytes != 0 || bytes < 2 * word_bytes || bytes > region_bytes)
            throw std::invalid_argument("blocks: whole words, within their region");
        return bytes;
    }
    void draw() {
        for (auto& at : at_) {
            state_ = state_ * 6364136223846793005u + 1442695040888963407u;
            at =
                static_cast<std::uint64_t>(static_cast<unsigned __int128>(state_) * blocks_ >> 64) *
                bytes_;
        }
    }
    void read() {
        for (std::size_t k = 0; k < blocks_at_a_time; ++k)
            copy_shared(seen(k), region_ + at_[k], bytes_);
        fence();
        for (std::size_t k = 0; k < blocks_at_a_time; ++k) {
            std::memcpy(&words_[k], seen(k), word_bytes);
            sum_ += load_acquire(region_ + at_[k]) == words_[k];
        }
    }
    void put(std::uint64_t at, const std::byte* block) {
        copy_shared(region_ + at + word_bytes, block + word_bytes, bytes_ - word_bytes);
        std::uint64_t word;
        std::memcpy(&word, block, word_bytes);
        store_release(region_ + at, word);
    }
    std::byte* seen(std::size_t k) { return own_.data() + k * bytes_; }
    std::byte* made(std::size_t k) { return own_.data() + (blocks_at_a_time + k) * bytes_; }

    std::byte* region_;
    std::uint64_t bytes_, blocks_;
    std::vector<std::byte> own_;
    std::uint64_t at_[blocks_at_a_time] = {}, words_[blocks_at_a_time] = {};
    std::uint64_t state_, next_, sum_ = 0;
};

// A second process, on a processor of its own, that works on the same blocks on request.
class Companion {
  public:
    Companion(std::byte* region, std::uint64_t bytes, int cpu)
        : shared_(4096), order_(new (shared_.data()) Order{}) {
        peer_.emplace([this, region, bytes, cpu] {
            pin_thread(cpu);
            // Its page table entries, so that it waits for none later.
            std::uint64_t sum = 0;
            for (std::uint64_t at = 0; at < bytes; at += 4096) sum += load_acquire(region + at);
            order_->works.store(sum & 0, std::memory_order_release);
            for (;;) {
                const std::uint64_t blocks = order_->blocks.load(std::memory_order_acquire);
                order_->works.store(blocks, std::memory_order_release);
                if (blocks == 0) {
                    ::usleep(50);
                    continue;
                }
                const std::uint64_t of_bytes = order_->bytes.load();
                Blocks theirs(region, blocks * of_bytes, of_bytes, 7);
                while (order_->blocks.load(std::memory_order_acquire) == blocks) {
                    theirs.update();
                    theirs.insert();
                }
            }
        });
        tell(1, 16);
        tell(0, 16);
    }
    // Starts to work on so many blocks, or (of none) stops; returns when it has.
    void tell(std::uint64_t blocks, std::uint64_t bytes) {
        order_->bytes.store(bytes);
        order_->blocks.store(blocks, std::memory_order_release);
        const Patience patience("the second process");
        while (order_->works.load(std::memory_order_acquire) != blocks) {
            patience.check();
            if (peer_->ended()) throw std::runtime_error("the second process ended");
            ::usleep(50);
        }
    }

  private:
    struct Order {
        std::atomic<std::uint64_t> blocks{0}, bytes{16}, works{0};
    };
    SharedMemory shared_;
    Order* order_;
    std::optional<Forked> peer_;
};

}  // namespace numatwin::native
