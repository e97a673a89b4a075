// absl::btree_map as a contender, where Abseil's headers are.
#include "contender.hpp"

#ifdef HAS_ABSL

#include <absl/container/btree_map.h>

namespace {

class BTree final : public Contender {
  public:
    std::size_t insert(std::span<const std::uint64_t> keys,
                       std::span<const std::uint64_t> values) override {
        std::size_t inserted = 0;
        for (std::size_t i = 0; i < keys.size(); ++i)
            inserted += map_.insert_or_assign(keys[i], values[i]).second;
        return inserted;
    }
    std::uint64_t lookup(std::span<const std::uint64_t> keys) override {
        std::uint64_t sum = 0;
        for (const std::uint64_t key : keys)
            if (const auto at = map_.find(key); at != map_.end()) sum += at->second;
        return sum;
    }
    std::size_t bytes() const override { return 0; }

  private:
    absl::btree_map<std::uint64_t, std::uint64_t> map_;
};

}  // namespace

std::unique_ptr<Contender> make_btree() {
    return std::make_unique<BTree>();
}

#else

std::unique_ptr<Contender> make_btree() {
    return nullptr;
}

#endif
