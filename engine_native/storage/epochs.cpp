// Epoch-based reclamation; the protocol stands in the header.
#include "storage/epochs.hpp"

#include <algorithm>
#include <functional>
#include <thread>
#include <utility>

namespace numatwin::native {

std::atomic<std::uint64_t>* Epochs::enter() noexcept {
    // A thread begins where it found its slot last time, mostly free again and in its cache.
    thread_local std::size_t hint =
        std::hash<std::thread::id>{}(std::this_thread::get_id()) % SLOTS;
    // Sequentially consistent throughout: a slot is written and the epoch read, against the epoch
    // written and the slots read.
    while (true) {
        for (std::size_t tried = 0; tried < SLOTS; ++tried) {
            auto& slot = slots_[hint].epoch;
            std::uint64_t epoch = epoch_.load(), free = 0;
            if (slot.compare_exchange_strong(free, epoch)) {
                while (epoch_.load() != epoch) slot.store(epoch = epoch_.load());
                return &slot;
            }
            hint = (hint + 1) % SLOTS;
        }
        std::this_thread::yield();
    }
}

std::uint64_t Epochs::least_inside() const noexcept {
    std::uint64_t least = epoch_.load();
    for (const Slot& slot : slots_) {
        const std::uint64_t epoch = slot.epoch.load();
        if (epoch != 0) least = std::min(least, epoch);
    }
    return least;
}

void Epochs::release(const std::vector<Block>& blocks, Memory& memory) noexcept {
    for (const auto [block, bytes] : blocks) {
        memory.release(block, bytes);
        waiting_bytes_.fetch_sub(bytes, std::memory_order_relaxed);  // only a count
    }
}

void Epochs::release_what_may(Memory& memory) noexcept {
    std::vector<Batch> free;
    {
        const std::unique_lock lock(mutex_, std::try_to_lock);
        // Looking at all slots pays for many batches at once; or another thread is at it.
        if (!lock || waiting_.size() < BATCHES) return;
        const std::uint64_t least = least_inside();
        const auto first =
            std::stable_partition(waiting_.begin(), waiting_.end(),
                                  [&](const Batch& batch) { return batch.epoch >= least; });
        // In place where there is no memory for the list.
        try {
            free.assign(std::make_move_iterator(first), std::make_move_iterator(waiting_.end()));
        } catch (const std::bad_alloc&) {
            for (auto batch = first; batch != waiting_.end(); ++batch)
                release(batch->blocks, memory);
        }
        waiting_.erase(first, waiting_.end());
    }
    for (const Batch& batch : free) release(batch.blocks, memory);
}

void Epochs::Guard::leave(Memory& memory) noexcept {
    if (slot_ == nullptr) return;
    std::exchange(slot_, nullptr)->store(0);
    if (retired_.empty()) return;
    for (const Block& block : retired_)
        epochs_.waiting_bytes_.fetch_add(block.bytes, std::memory_order_relaxed);  // only a count
    const std::uint64_t epoch = epochs_.epoch_.fetch_add(1);
    bool is_listed = true;
    try {
        const std::lock_guard lock(epochs_.mutex_);
        epochs_.waiting_.push_back({epoch, {}});
        epochs_.waiting_.back().blocks.swap(retired_);
    } catch (const std::bad_alloc&) {
        is_listed = false;
    }
    if (is_listed) {
        epochs_.release_what_may(memory);
        return;
    }
    while (epochs_.least_inside() <= epoch) std::this_thread::yield();
    epochs_.release(retired_, memory);
}

Epochs::Guard::~Guard() {
    if (slot_ != nullptr) slot_->store(0);
}

void Epochs::drain(Memory& memory) noexcept {
    for (const Batch& batch : waiting_) release(batch.blocks, memory);
    waiting_.clear();
}

}  // namespace numatwin::native
