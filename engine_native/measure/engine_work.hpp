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

    /// Messages or puts of `bytes` both ways at once, `batch` of them to the other end and as many
    /// from it, then the next ones. `leads`: this end begins, and says when it is over. Amount:
    /// those of one way.
    Work exchange(Verb verb, std::size_t bytes, std::size_t batch, bool leads);

    static constexpr std::size_t region_bytes = std::size_t{1} << 20;

  private:
    struct Ends;
    std::unique_ptr<Ends> ends_;
};

// Single passes over tuples of 16 bytes, in tables of 16 MiB or as large as is told; amounts are
// tuples, or groups. What distributed operators are made of.

/// Counted by partition.
Work count_tuples(std::uint32_t partitions);
/// Appended to the buffers of their partitions, and these written past the caches.
Work partition_tuples(std::uint32_t partitions, std::uint32_t buffer_bytes);
/// Their owners found out, of two, and each put into a message.
Work gather_tuples(std::uint32_t message_bytes);
/// Messages of them copied behind what came before.
Work take_tuples(std::uint32_t message_bytes);
/// Partitions of so many inner tuples: of one after the other the hash table is built and, where
/// `probe`, looked up for as many outer tuples. Amount: inner tuples.
Work join_partitions(std::uint32_t inner, bool probe);
/// Groups added to a table that has none at first, until it has so many; or, where `again`, tuples
/// of these groups, in random order.
Work add_groups(std::uint64_t groups, bool again);
/// All groups of a table put into messages; or, where `result`, summed up.
Work read_groups(std::uint64_t groups, bool result);
/// Groups added to a table of so many bytes until it is full, when it is read and emptied; or,
/// where `again`, tuples of the groups of a full one.
Work cache_groups(std::uint64_t table_bytes, bool again);
/// Keys added to a Bloom filter of so many bytes with an error of a twentieth.
Work add_to_filter(std::uint64_t bytes);
/// Keys looked up that such a filter has (`hit`), or has not.
Work probe_filter(std::uint64_t bytes, bool hit);

}  // namespace numatwin::native
