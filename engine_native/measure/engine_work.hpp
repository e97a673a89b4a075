// The engine's own steps as work of a team: routing of commands, index operations, verbs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "measure/team.hpp"
#include "memory/manager.hpp"
#include "storage/prefix_tree.hpp"

namespace numatwin::native {

/// Batches of pairs of random keys to as many targets with equal ranges: owners looked up, commands
/// appended, full buffers of `buffer_bytes` flushed into the targets' incoming buffers, which this
/// thread empties too. Amount: commands of 16 bytes.
Work routing(std::size_t targets, std::size_t buffer_bytes);

/// A prefix tree of random 64-bit keys, or of all keys from 0 on, in huge pages where possible.
class Index {
  public:
    /// Throws OutOfMemory; std::invalid_argument without keys.
    explicit Index(std::size_t keys, bool dense = false);
    std::size_t keys() const { return tree_.keys(); }
    std::size_t bytes() const { return tree_.bytes(); }

    /// Of random keys that are there, in batches. Amount: keys.
    Work lookups(std::size_t batch);
    /// New values for random keys that are there, in batches. Amount: keys.
    Work upserts(std::size_t batch);
    /// Sums of `pairs` values from random keys on, in order. Amount: pairs.
    Work scans(std::size_t pairs);

  private:
    MemoryManager manager_;
    PrefixTree tree_;
    /// Places of a batch's first key that `step` is called with, and the batch itself.
    template <class Step>
    Work in_batches(std::size_t batch, Step step);

    bool dense_;
    std::vector<std::uint64_t> known_;  // a sample of random keys, in random order
};

enum class Verb { kGet, kPut, kCompareAndSwap, kFetchAdd, kMessage };

/// Two ends of a fabric in this process, each for one thread: one that asks, one that is asked.
class FabricPair {
  public:
    /// `transports` as UCX_TLS, or "threads" for loads and stores of this process. `direct`: where
    /// the other's memory can be reached, it is. Throws std::runtime_error where there is none
    /// such.
    FabricPair(const std::string& transports, bool direct);
    ~FabricPair();
    FabricPair(const FabricPair&) = delete;
    FabricPair& operator=(const FabricPair&) = delete;

    /// One request of `bytes` after the other, each done before the next: a put is done when it has
    /// landed, a message when its echo came. Amount: requests; of messages: those of both ways.
    Work ask(Verb verb, std::size_t bytes);
    /// What the other end does meanwhile. Amount: 0.
    Work answer();

    static constexpr std::size_t region_bytes = std::size_t{1} << 20;

  private:
    struct Ends;
    std::unique_ptr<Ends> ends_;
};

}  // namespace numatwin::native
