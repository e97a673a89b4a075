// What an engine is told when it is made, and which phase its clients are in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernel/described.hpp"
#include "storage/scan.hpp"
#include "systems/eris/key_draws.hpp"

namespace numatwin::native {

enum class ObjectKind : std::uint8_t { index, column };
enum class OperationKind : std::uint8_t { lookup, upsert, route, scan };
/// `partitioned` is ERIS; under the others any thread works on one structure, whose memory lies on
/// all nodes in turn, or on one.
enum class Layout : std::uint8_t { partitioned, interleaved, single_ram };

struct ObjectSetup {
    std::string name;
    ObjectKind kind = ObjectKind::index;
    /// Keys 0 … amount - 1 of an index, entries of a column.
    std::uint64_t amount = 0;
    unsigned key_bits = 64, prefix_bits = 8;
    /// Of an index; those above 8 lie out of line (storage/far_values.hpp).
    std::size_t value_bytes = 8;
};

struct OperationSetup {
    std::string name;
    OperationKind kind = OperationKind::lookup;
    std::size_t object = 0;
    /// Of scans: the part of the entries that passes the filter, and what is made of them.
    double selectivity = 0;
    ScanOutput result = ScanOutput::sum;
};

/// The mix from now on: a share and, but for scans, a key distribution for each operation.
struct PhaseSetup {
    std::vector<double> shares;
    std::vector<std::shared_ptr<const KeyDraws>> keys;
};

/// Of `ErisSystem` in sim/systems/eris/spec.py, where fields have the same names.
struct EngineSetup {
    FIELDS_OF(EngineSetup);
    FIELD(std::vector<std::uint32_t>, node, "[A] of each AEU: its node in the scenario");
    FIELD(std::vector<int>, cpu, "[A] and the CPU that it is pinned to; -1: none");
    FIELD(std::vector<int>, host_node,
          "[nodes of the scenario] the host's node whose memory stands for it; -1: any");
    FIELD(std::uint32_t, home, "the node that holds all data, where one does");
    FIELD(std::size_t, buffer_commands, "of an outgoing buffer", 128);
    FIELD(std::size_t, round_commands, "0: as many as an AEU's outgoing buffers hold");
    FIELD(std::size_t, incoming_commands, "0: four times what all send in a round");
    FIELD(std::size_t, command_bytes, "on its way: at least 8, an upsert's at least 16", 16);
    FIELD(std::size_t, result_bytes, "of an answer; 0 where it goes by callback");
    FIELD(std::size_t, batch, "commands that are executed together", 128);
    FIELD(std::size_t, scans_max, "of an operation under way at a time", 1);
    FIELD(bool, huge_pages, "for the data", true);
    FIELD(std::size_t, limit_bytes, "of each memory manager: one for each node and object",
          SIZE_MAX);
    FIELD(bool, clients, "whether AEUs make commands; else they do what execute hands them", true);
    FIELD(double, think_ns, "mean time that a client thinks between its batches; 0: never");
    FIELD(double, arrival_ns, "mean time between arrivals at each AEU; 0: closed");
    FIELD(std::uint64_t, seed, "of all draws", 1);
    END_OF_FIELDS;

    std::vector<ObjectSetup> objects;
    std::vector<OperationSetup> operations;
    PhaseSetup phase;
    Layout placement = Layout::partitioned;

    std::size_t workers() const noexcept { return node.size(); }
    std::size_t commands_per_round() const noexcept {
        return round_commands > 0 ? round_commands : workers() * buffer_commands;
    }
    std::size_t commands_incoming() const noexcept;
    /// Whether commands arrive, whatever became of those before.
    bool open() const noexcept { return arrival_ns > 0; }
    /// Whether AEUs share CPUs: each then waits for its turn, milliseconds at a time.
    bool crowded() const;
};

/// Throws std::invalid_argument, with the field's name, where something does not fit together.
void check(const EngineSetup& setup);
void check(const PhaseSetup& phase, const EngineSetup& setup);

}  // namespace numatwin::native
