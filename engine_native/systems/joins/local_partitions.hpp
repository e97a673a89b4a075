// Partitions what has come to a node within its memory, and joins the partitions.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "systems/joins/join_operator.hpp"
#include "systems/joins/partition_buffers.hpp"
#include "systems/joins/partition_join.hpp"

namespace numatwin::native {

// Counts tuples by partition, then writes each to its place.
template <class Word>
class LocalPartitions {
  public:
    using Part = std::span<const Tuple<Word>>;
    explicit LocalPartitions(JoinNode& at)
        : at_(at),
          buffers_(at.fabric, {at.setup.buffer_bytes, at.setup.signal_every, at.setup.streaming}) {}

    // Of tuples that lie in several pieces.
    void partition(std::span<const Part> pieces) {
        const unsigned bits = at_.bits();
        const std::uint32_t first = at_.first_own(), own = at_.end_own() - first;
        counts_.assign(own, 0);
        for (const Part& piece : pieces)
            for (const auto& tuple : piece)
                ++counts_[partition_of(scattered(tuple.key), bits) - first];
        constexpr std::uint64_t per_line = line_bytes / sizeof(Tuple<Word>);
        at_place_.assign(1, 0);
        for (const std::uint64_t count : counts_)
            at_place_.push_back(at_place_.back() + (count + per_line - 1) / per_line * per_line);
        if (places_bytes_ < at_place_.back() * sizeof(Tuple<Word>)) {
            places_bytes_ = at_place_.back() * sizeof(Tuple<Word>);
            places_ = make_lines<std::byte>(places_bytes_);
        }
        std::vector<PartitionPlace> places;
        for (std::uint32_t p = 0; p < own; ++p)
            places.push_back(
                {places_.get() + at_place_[p] * sizeof(Tuple<Word>), 0, 0, counts_[p]});
        buffers_.open(std::move(places));
        for (const Part& piece : pieces)
            for (const auto& tuple : piece)
                buffers_.append(partition_of(scattered(tuple.key), bits) - first, tuple);
        buffers_.finish();
    }
    // Of an own partition, counted from the first of these.
    Part part(std::uint32_t own) const {
        return {reinterpret_cast<const Tuple<Word>*>(places_.get()) + at_place_[own], counts_[own]};
    }

  private:
    JoinNode& at_;
    PartitionBuffers<Tuple<Word>> buffers_;
    std::vector<std::uint64_t> counts_, at_place_;
    Lines<> places_;
    std::uint64_t places_bytes_ = 0;
};

// The second half of all Grace hash joins; a PhaseClock's phases 1 and 2.
template <class Word>
class LocalJoin {
  public:
    using Part = std::span<const Tuple<Word>>;
    explicit LocalJoin(JoinNode& at)
        : at_(at),
          local_{LocalPartitions<Word>(at), LocalPartitions<Word>(at)},
          join_(at.bits(), at.setup.keep_rows) {}

    void play(std::span<const Part> inner, std::span<const Part> outer, PhaseClock& clock,
              NodeFigures& figures) {
        local_[0].partition(inner);
        local_[1].partition(outer);
        clock.end(1);
        join_.rows.clear();
        for (std::uint32_t p = 0; p < at_.end_own() - at_.first_own(); ++p) {
            const Part of_inner = local_[0].part(p), of_outer = local_[1].part(p);
            join_.join(std::span(&of_inner, 1), std::span(&of_outer, 1), figures.found);
        }
        clock.end(2);
        figures.rows = figures.found.tuples;
    }
    std::vector<ResultRow> take_rows() { return std::move(join_.rows); }

  private:
    JoinNode& at_;
    LocalPartitions<Word> local_[2];
    PartitionJoin<Word> join_;
};

}  // namespace numatwin::native
