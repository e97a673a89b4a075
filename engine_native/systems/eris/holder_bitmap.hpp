// Which workers hold a part of an object that is only ever scanned whole.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace numatwin::native {

class HolderBitmap {
  public:
    explicit HolderBitmap(std::size_t workers = 0)
        : workers_(workers), words_((workers + 63) / 64) {}
    static HolderBitmap all(std::size_t workers) {
        HolderBitmap bitmap(workers);
        for (std::size_t worker = 0; worker < workers; ++worker) {
            bitmap.set(worker);
        }
        return bitmap;
    }

    std::size_t workers() const { return workers_; }
    void set(std::size_t worker, bool holds = true) {
        const std::uint64_t bit = std::uint64_t{1} << (worker % 64);
        words_[worker / 64] = holds ? words_[worker / 64] | bit : words_[worker / 64] & ~bit;
    }
    bool test(std::size_t worker) const { return (words_[worker / 64] >> (worker % 64) & 1) != 0; }
    std::size_t count() const {
        std::size_t holders = 0;
        for (const std::uint64_t word : words_) {
            holders += static_cast<std::size_t>(std::popcount(word));
        }
        return holders;
    }
    /// Calls `visit(worker)` for each holder, in order.
    template <class Visit>
    void for_each(Visit&& visit) const {
        for (std::size_t i = 0; i < words_.size(); ++i) {
            for (std::uint64_t left = words_[i]; left != 0; left &= left - 1) {
                visit(64 * i + static_cast<std::size_t>(std::countr_zero(left)));
            }
        }
    }
    bool operator==(const HolderBitmap&) const = default;

  private:
    std::size_t workers_;
    std::vector<std::uint64_t> words_;
};

}  // namespace numatwin::native
