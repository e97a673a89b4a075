// What an index of the benchmark does: batches of 64-bit keys and values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

struct Contender {
    virtual ~Contender() = default;
    /// New keys only; returns how many are in now that were not before.
    virtual std::size_t insert(std::span<const std::uint64_t> keys,
                               std::span<const std::uint64_t> values) = 0;
    /// Returns the sum of the values found.
    virtual std::uint64_t lookup(std::span<const std::uint64_t> keys) = 0;
    /// Of memory, 0 where it does not tell.
    virtual std::size_t bytes() const = 0;
};

std::unique_ptr<Contender> make_prefix_tree();
std::unique_ptr<Contender> make_shared_tree();
std::unique_ptr<Contender> make_btree();
std::unique_ptr<Contender> make_art();
