// The engine's own trees, on the engine's memory: one manager, huge pages where the host has them.
#include <vector>

#include "contender.hpp"
#include "memory/manager.hpp"
#include "storage/prefix_tree.hpp"
#include "storage/shared_tree.hpp"

namespace {

using namespace numatwin::native;

/// A manager and one cache of it, to be there before the tree and after it.
struct Managed {
    MemoryManager manager{ManagerOptions{}};
    MemoryCache& cache = manager.add_cache();
};

std::uint64_t sum_of(const std::vector<std::uint64_t>& values, std::size_t count) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += values[i];
    return sum;
}

class Own final : public Contender {
  public:
    std::size_t insert(std::span<const std::uint64_t> keys,
                       std::span<const std::uint64_t> values) override {
        return tree_.upsert(keys, values);
    }
    std::uint64_t lookup(std::span<const std::uint64_t> keys) override {
        values_.resize(keys.size());
        found_.resize(keys.size());
        tree_.lookup(keys, values_.data(), found_.data());
        return sum_of(values_, keys.size());
    }
    std::size_t bytes() const override { return memory_.manager.use().reserved_bytes; }

  private:
    Managed memory_;
    PrefixTree tree_{memory_.cache};
    std::vector<std::uint64_t> values_;
    std::vector<std::uint8_t> found_;
};

class Shared final : public Contender {
  public:
    std::size_t insert(std::span<const std::uint64_t> keys,
                       std::span<const std::uint64_t> values) override {
        return tree_.upsert(keys, values, memory_.cache);
    }
    std::uint64_t lookup(std::span<const std::uint64_t> keys) override {
        values_.resize(keys.size());
        found_.resize(keys.size());
        tree_.lookup(keys, values_.data(), found_.data());
        return sum_of(values_, keys.size());
    }
    std::size_t bytes() const override { return memory_.manager.use().reserved_bytes; }

  private:
    Managed memory_;
    SharedTree tree_{memory_.cache};
    std::vector<std::uint64_t> values_;
    std::vector<std::uint8_t> found_;
};

}  // namespace

std::unique_ptr<Contender> make_prefix_tree() {
    return std::make_unique<Own>();
}
std::unique_ptr<Contender> make_shared_tree() {
    return std::make_unique<Shared>();
}
