// Which keys a node may have: Bloom, Space/time trade-offs in hash coding with allowable errors,
// CACM 13 (1970). Of n keys and an error e: m = n ln(1/e) / ln(2)^2 bits, of which each key sets
// m/n ln(2), found by two hashes (Kirsch and Mitzenmacher, Less hashing, same performance, 2008).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace numatwin::native {

class BloomFilter {
  public:
    BloomFilter() = default;  // of no key
    BloomFilter(std::uint64_t keys, double error) : probes_(probes_for(error)) {
        if (keys == 0) return;
        const double bits = static_cast<double>(keys) * -std::log(error) / (ln_2 * ln_2);
        words_.assign(static_cast<std::size_t>(bits / 64) + 1, 0);
    }
    // As another node sent its words.
    BloomFilter(std::vector<std::uint64_t> words, double error)
        : words_(std::move(words)), probes_(probes_for(error)) {}

    void add(std::uint64_t key) {
        Walk walk(key, bits());
        for (unsigned k = 0; k < probes_; ++k) {
            const std::uint64_t bit = walk.next();
            words_[bit / 64] |= std::uint64_t{1} << bit % 64;
        }
    }
    // True for each key that was added, and for a share `error` of all others.
    bool may_have(std::uint64_t key) const {
        if (words_.empty()) return false;
        Walk walk(key, bits());
        for (unsigned k = 0; k < probes_; ++k) {
            const std::uint64_t bit = walk.next();
            if ((words_[bit / 64] >> bit % 64 & 1) == 0) return false;
        }
        return true;
    }
    std::span<const std::uint64_t> words() const { return words_; }

  private:
    static constexpr double ln_2 = 0.693147180559945309417;
    // Bits of a key, one after another.
    class Walk {
      public:
        Walk(std::uint64_t key, std::uint64_t bits)
            : at_(mixed(key)), step_(mixed(at_) | 1), bits_(bits) {}
        std::uint64_t next() {
            const auto place = static_cast<unsigned __int128>(at_) * bits_;
            at_ += step_;
            return static_cast<std::uint64_t>(place >> 64);
        }

      private:
        // The finalizer of MurmurHash3 (Appleby): partitions go by another hash.
        static std::uint64_t mixed(std::uint64_t word) {
            word = (word ^ word >> 33) * 0xFF51AFD7ED558CCDu;
            word = (word ^ word >> 33) * 0xC4CEB9FE1A85EC53u;
            return word ^ word >> 33;
        }
        std::uint64_t at_, step_, bits_;
    };
    static unsigned probes_for(double error) {
        return std::max(static_cast<unsigned>(std::lround(-std::log2(error))), 1u);
    }
    std::uint64_t bits() const { return words_.size() * 64; }

    std::vector<std::uint64_t> words_;
    unsigned probes_ = 1;
};

// Each node's filter of its own keys: a key that none may have is on no node. Each has so small an
// error that all together err as often as asked for.
class NodeFilters {
  public:
    NodeFilters(std::uint32_t nodes, double error)
        : error_(1 - std::pow(1 - error, 1.0 / nodes)), words_(nodes), filters_(nodes) {}

    void clear() {
        for (auto& words : words_) words.clear();
    }
    BloomFilter& make_own(std::uint32_t node, std::uint64_t keys) {
        return filters_[node] = BloomFilter(keys, error_);
    }
    std::vector<std::uint64_t>& coming(std::uint32_t node) { return words_[node]; }
    void take_all_but(std::uint32_t own) {
        for (std::size_t node = 0; node < words_.size(); ++node)
            if (node != own) filters_[node] = BloomFilter(std::move(words_[node]), error_);
    }
    bool may_have(std::uint64_t key) const {
        return std::ranges::any_of(
            filters_, [key](const BloomFilter& filter) { return filter.may_have(key); });
    }

  private:
    double error_;
    std::vector<std::vector<std::uint64_t>> words_;
    std::vector<BloomFilter> filters_;
};

}  // namespace numatwin::native
