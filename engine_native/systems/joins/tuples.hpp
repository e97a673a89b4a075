// What is joined and aggregated: tuples of a key and a payload, and where a key belongs.
#pragma once

#include <cstdint>
#include <vector>

#include "systems/joins/join_setup.hpp"

namespace numatwin::native {

// Of 8 or 16 bytes, as the Word has 4 or 8.
template <class Word>
struct Tuple {
    Word key, payload;
};

// Part of a group: of so many tuples, and the sum of their payloads. Nothing where count is 0.
struct Group {
    std::uint64_t key, count, sum;
};

// A row of a result: of a join key and both payloads, of an aggregation a group.
struct ResultRow {
    std::uint64_t key, first, second;
};

// Multiplicative hashing (Knuth, The Art of Computer Programming 3, 6.4): 2^64 by the golden ratio.
// Its highest bits are the best mixed.
inline std::uint64_t scattered(std::uint64_t key) {
    return key * 0x9E3779B97F4A7C15u;
}

// 2^bits partitions (bits > 0) by the highest bits of the hash; slots within one by those below.
inline std::uint32_t partition_of(std::uint64_t hash, unsigned bits) {
    return static_cast<std::uint32_t>(hash >> (64 - bits));
}
inline std::uint64_t slot_of(std::uint64_t hash, unsigned partition_bits, unsigned slot_bits) {
    return (hash << partition_bits) >> (64 - slot_bits);
}

// Each node owns a range of partitions: as many as the others, or one more.
inline std::uint32_t owner_of(std::uint32_t partition, unsigned bits, std::uint32_t nodes) {
    return static_cast<std::uint32_t>(std::uint64_t{partition} * nodes >> bits);
}
inline std::uint32_t first_partition(std::uint32_t node, unsigned bits, std::uint32_t nodes) {
    return static_cast<std::uint32_t>(((std::uint64_t{node} << bits) + nodes - 1) / nodes);
}

// A node's share of the tables, and what an operator must make of it.
//
// Inner keys are 0 … inner - 1, each once, dealt out to the nodes in turn, in random order. An
// outer key is one of these (as often as the selectivity says; by Zipf's law the more popular ones
// are scattered among them), else one of inner … 2 inner - 1. The inner payload follows from the
// key, so that each outer tuple knows what it adds to a join's result: the expected one is known
// without any join.

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
