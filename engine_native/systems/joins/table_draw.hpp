// A node's share of the tables, and what an operator must make of it.
//
// Inner keys are 0 … inner - 1, each once, dealt out to the nodes in turn, in random order. An
// outer key is one of these (as often as the selectivity says; by Zipf's law the more popular ones
// are scattered among them), else one of inner … 2 inner - 1. The inner payload follows from the
// key, so that each outer tuple knows what it adds to a join's result: the expected one is known
// without any join.
#pragma once

#include <cstdint>
#include <vector>

#include "systems/joins/join_setup.hpp"
#include "systems/joins/tuples.hpp"

namespace numatwin::native {

// Sums over tuples, all but the first modulo 2^64: added up over all nodes they show whether each
// tuple was taken once.
struct ResultTotals {
    std::uint64_t tuples = 0;    // pairs that were joined; tuples in groups
    std::uint64_t checksum = 0;  // products of both payloads; hash of the key times the payload
    friend bool operator==(const ResultTotals&, const ResultTotals&) = default;
    ResultTotals& operator+=(const ResultTotals& other) {
        tuples += other.tuples;
        checksum += other.checksum;
        return *this;
    }
};

template <class Word>
struct NodeTables {
    std::vector<Tuple<Word>> inner, outer;
    ResultTotals expected;
};

template <class Word>
NodeTables<Word> draw_tables(const JoinSetup& setup, std::uint32_t node);

extern template NodeTables<std::uint32_t> draw_tables(const JoinSetup&, std::uint32_t);
extern template NodeTables<std::uint64_t> draw_tables(const JoinSetup&, std::uint32_t);

}  // namespace numatwin::native
