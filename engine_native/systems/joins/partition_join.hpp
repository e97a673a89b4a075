// Joins one partition, whose inner tuples and chains fit into a cache: bucket chaining (Manegold et
// al., Optimizing main-memory join on modern hardware, TKDE 14, 2002).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "systems/joins/tuples.hpp"

namespace numatwin::native {

template <class Word>
class PartitionJoin {
  public:
    using Part = std::span<const Tuple<Word>>;

    // Where `keep`, each pair is kept as a row.
    PartitionJoin(unsigned partition_bits, bool keep) : bits_(partition_bits), keep_(keep) {}

    // All pairs of the same key. Inner parts lie one behind the other, with gaps.
    void join(std::span<const Part> inner, std::span<const Part> outer, ResultTotals& found) {
        const Tuple<Word>* base = inner.front().data();
        const Part& last = inner.back();
        const auto places = static_cast<std::size_t>(last.data() + last.size() - base);
        slot_bits_ = std::max(static_cast<unsigned>(std::bit_width(places)), 1u);
        // Places are counted from 1; 0: none.
        heads_.assign(std::size_t{1} << slot_bits_, 0);
        if (nexts_.size() < places + 1) nexts_.resize(places + 1);
        for (const Part& part : inner) {
            auto place = static_cast<std::uint32_t>(part.data() - base);
            for (const auto& tuple : part) {
                auto& head = heads_[slot(tuple.key)];
                nexts_[++place] = head;
                head = place;
            }
        }
        for (const Part& part : outer) {
            if (keep_)
                probe<true>(base, part, found);
            else
                probe<false>(base, part, found);
        }
    }

    std::vector<ResultRow> rows;

  private:
    std::size_t slot(Word key) const { return slot_of(scattered(key), bits_, slot_bits_); }

    template <bool keep>
    void probe(const Tuple<Word>* base, const Part& part, ResultTotals& found) {
        ResultTotals totals;
        for (const auto& tuple : part)
            for (auto place = heads_[slot(tuple.key)]; place != 0; place = nexts_[place]) {
                const auto& inner = base[place - 1];
                if (inner.key != tuple.key) continue;
                totals += {1, std::uint64_t{inner.payload} * tuple.payload};
                if constexpr (keep) rows.push_back({tuple.key, inner.payload, tuple.payload});
            }
        found += totals;
    }

    unsigned bits_, slot_bits_ = 1;
    bool keep_;
    std::vector<std::uint32_t> heads_, nexts_;
};

}  // namespace numatwin::native
