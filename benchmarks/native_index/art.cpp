// unodb's adaptive radix tree as a contender, where NUMATWIN_UNODB names its source.
#include "contender.hpp"

#ifdef HAS_UNODB

// Its own first include.
#include "global.hpp"
// and then
#include <cstring>

#include "art.hpp"

namespace {

class Art final : public Contender {
  public:
    std::size_t insert(std::span<const std::uint64_t> keys,
                       std::span<const std::uint64_t> values) override {
        std::size_t inserted = 0;
        for (std::size_t i = 0; i < keys.size(); ++i)
            inserted +=
                tree_.insert(keys[i], unodb::value_view{std::as_bytes(values.subspan(i, 1))});
        return inserted;
    }
    std::uint64_t lookup(std::span<const std::uint64_t> keys) override {
        std::uint64_t sum = 0;
        for (const std::uint64_t key : keys) {
            const auto found = tree_.get(key);
            if (!found) continue;
            std::uint64_t value;
            std::memcpy(&value, found->data(), sizeof value);
            sum += value;
        }
        return sum;
    }
    std::size_t bytes() const override {
#ifdef UNODB_DETAIL_WITH_STATS
        return tree_.get_current_memory_use();
#else
        return 0;
#endif
    }

  private:
    unodb::db<std::uint64_t, unodb::value_view> tree_;
};

}  // namespace

std::unique_ptr<Contender> make_art() {
    return std::make_unique<Art>();
}

#else

std::unique_ptr<Contender> make_art() {
    return nullptr;
}

#endif
