// What a run of a distributed operator on this host is made with.
#pragma once

#include <bit>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "fabric/fabric.hpp"
#include "kernel/described.hpp"

namespace numatwin::native {

enum class Operator {
    radix_join,
    grace_join,
    filtered_grace_join,
    one_sided_grace_join,
    aggregation,
    one_sided_aggregation
};
constexpr const char* operator_names[] = {"rrj",      "ghj",         "ghj-bloom",
                                          "rdma-ghj", "aggregation", "rdma-aggregation"};

struct JoinSetup {
    FIELDS_OF(JoinSetup);
    FIELD(std::string, name, "of the operator: see operator_names", "rrj");
    FIELD(std::uint32_t, nodes, "each is a process (or thread) with its share of the tables", 2);
    FIELD(std::uint32_t, tuple_bytes, "8 or 16: half is the key, half the payload", 16);
    FIELD(std::uint64_t, inner, "tuples of all nodes with keys of their own; joins only", 1'000);
    FIELD(std::uint64_t, outer, "tuples of all nodes, which look for these, or are aggregated",
          1'000);
    FIELD(double, selectivity, "share of outer tuples with a partner; joins only", 1.0);
    FIELD(std::uint64_t, groups, "keys of an aggregation", 1'000);
    FIELD(double, exponent, "Zipf's, of the outer tuples' keys; 0: uniform");
    FIELD(std::uint32_t, partitions, "of each table, a power of two", 64);
    FIELD(std::uint32_t, buffer_bytes, "of a partition, written as soon as it is full", 2'048);
    FIELD(bool, streaming, "past the caches, where memory can be written at once", true);
    FIELD(std::uint32_t, signal_every, "of requests to a node, the last one is signaled", 16);
    FIELD(std::uint32_t, message_bytes, "of ghj, ghj-bloom and aggregation", 16'384);
    FIELD(std::uint32_t, window, "messages to a node that it has not yet acknowledged", 16);
    FIELD(double, filter_error, "of ghj-bloom: what filters let through without a partner", 0.1);
    FIELD(std::uint32_t, table_bytes, "of rdma-aggregation: a table that stays in a cache",
          131'072);
    FIELD(std::uint32_t, rounds, "so often the same, one after another", 1);
    FIELD(bool, keep_rows, "the last round's result, on the board");
    FIELD(std::vector<std::uint64_t>, streams, "four words a node: Philox keys of both tables");
    FIELD(std::vector<int>, cpus, "by node: the processor that it runs on; empty: any");
    END_OF_FIELDS;

    FabricOptions fabric;

    Operator kind() const {
        for (std::size_t k = 0; k < std::size(operator_names); ++k)
            if (name == operator_names[k]) return static_cast<Operator>(k);
        throw std::invalid_argument("operator: " + name);
    }
    bool joins() const { return kind() < Operator::aggregation; }
    unsigned bits() const { return static_cast<unsigned>(std::bit_width(partitions)) - 1; }
    std::uint64_t keys() const { return joins() ? inner : groups; }
    // Rows of a result at most: each key of the inner table occurs there once.
    std::uint64_t rows_max() const { return joins() ? outer : groups; }

    // Throws std::invalid_argument.
    void check() const {
        const auto expect = [](bool good, const char* what) {
            if (!good) throw std::invalid_argument(what);
        };
        kind();
        expect(nodes > 0 && nodes <= 1'024, "nodes: expected 1 to 1024");
        expect(tuple_bytes == 8 || tuple_bytes == 16, "tuple_bytes: expected 8 or 16");
        expect(keys() > 0 && outer > 0, "tuples and groups: expected at least 1");
        expect(tuple_bytes == 16 || keys() < (std::uint64_t{1} << 31),
               "keys: expected less than 2^31 in tuples of 8 bytes");
        expect(selectivity >= 0 && selectivity <= 1, "selectivity: expected 0 to 1");
        expect(std::has_single_bit(partitions) && partitions > 1 && partitions >= nodes &&
                   partitions <= (1u << 20),
               "partitions: expected a power of two from 2 (and the nodes) to 2^20");
        expect(buffer_bytes >= 64 && buffer_bytes <= (1u << 20),
               "buffer_bytes: expected 64 to 2^20");
        expect(message_bytes >= 128 && message_bytes <= (1u << 24),
               "message_bytes: expected 128 to 2^24");
        expect(signal_every > 0, "signal_every: expected at least 1");
        expect(window > 1, "window: expected at least 2");
        expect(filter_error > 0 && filter_error < 1, "filter_error: expected between 0 and 1");
        expect(table_bytes >= 1'024, "table_bytes: expected at least 1024");
        expect(rounds > 0 && rounds <= 10'000, "rounds: expected 1 to 10000");
        expect(streams.size() >= 4 * std::size_t{nodes}, "streams: expected four words a node");
        expect(cpus.empty() || cpus.size() == nodes, "cpus: expected one a node, or none");
    }
};

}  // namespace numatwin::native
