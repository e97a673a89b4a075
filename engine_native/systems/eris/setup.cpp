#include "systems/eris/setup.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>
#include <thread>

namespace numatwin::native {
namespace {

void expect(bool good, const char* message) {
    if (!good) throw std::invalid_argument(message);
}

}  // namespace

std::size_t EngineSetup::commands_incoming() const noexcept {
    if (incoming_commands > 0) return incoming_commands;
    const std::size_t wanted = 4 * std::max(commands_per_round(), workers() * buffer_commands);
    // An incoming buffer's offset is told in 32 bits, its size with headers in 31.
    return std::min(wanted, (std::size_t{1} << 30) / command_bytes);
}

bool EngineSetup::crowded() const {
    const std::set<int> pinned(cpu.begin(), cpu.end());
    if (pinned.contains(-1)) return workers() > std::max(1U, std::thread::hardware_concurrency());
    return workers() > pinned.size();
}

void check(const EngineSetup& setup) {
    expect(!setup.objects.empty(), "objects: expected at least one");
    expect(setup.objects.size() < 1 << 16, "objects: expected below 2^16");
    expect(setup.operations.size() < 1 << 16, "operations: expected below 2^16");
    expect(!setup.node.empty(), "node: expected at least one AEU");
    expect(setup.node.size() <= 4096, "node: expected at most 4096 AEUs");
    expect(setup.cpu.size() == setup.node.size(), "cpu: expected one for each AEU");
    for (const auto node : setup.node)
        expect(node < setup.host_node.size(), "node: expected one of host_node");
    expect(setup.home < setup.host_node.size(), "home: expected one of host_node");
    expect(setup.buffer_commands > 0 && setup.buffer_commands <= 1 << 20,
           "buffer_commands: expected from 1 to 2^20");
    expect(setup.batch > 0 && setup.batch <= 1 << 20, "batch: expected from 1 to 2^20");
    expect(setup.command_bytes >= 8 && setup.command_bytes % 8 == 0 && setup.command_bytes <= 1024,
           "command_bytes: expected from 8 to 1024, a multiple of 8");
    expect(setup.result_bytes % 8 == 0 && setup.result_bytes <= 1024,
           "result_bytes: expected at most 1024, a multiple of 8");
    expect(setup.commands_incoming() >= setup.buffer_commands,
           "incoming_commands: expected at least buffer_commands");
    expect(setup.commands_incoming() <= (std::size_t{1} << 30) / setup.command_bytes,
           "incoming_commands: expected at most 1 GiB of commands");
    expect(setup.scans_max > 0, "scans_max: expected at least 1");
    expect(setup.think_ns >= 0 && std::isfinite(setup.think_ns), "think_ns: expected at least 0");
    expect(setup.arrival_ns >= 0 && std::isfinite(setup.arrival_ns),
           "arrival_ns: expected at least 0");
    for (const auto& object : setup.objects) {
        expect(object.amount > 0, "amount: expected at least 1");
        expect(object.amount <= std::uint64_t{1} << 48, "amount: expected at most 2^48");
        if (object.kind == ObjectKind::column) continue;
        expect(object.key_bits >= 1 && object.key_bits <= 64, "key_bits: expected from 1 to 64");
        expect(object.key_bits >= 48 || object.amount <= std::uint64_t{1} << object.key_bits,
               "amount: expected at most 2^key_bits");
    }
    for (const auto& operation : setup.operations) {
        expect(operation.object < setup.objects.size(), "object: expected one of objects");
        const bool column = setup.objects[operation.object].kind == ObjectKind::column;
        expect(column == (operation.kind == OperationKind::scan),
               "object: expected a column for a scan, else an index");
        expect(operation.selectivity >= 0 && operation.selectivity <= 1,
               "selectivity: expected from 0 to 1");
    }
    if (setup.clients) check(setup.phase, setup);
}

void check(const PhaseSetup& phase, const EngineSetup& setup) {
    const std::size_t count = setup.operations.size();
    expect(count > 0, "operations: expected at least one");
    expect(phase.shares.size() == count, "shares: expected one for each operation");
    expect(phase.keys.size() == count, "keys: expected one for each operation");
    for (std::size_t o = 0; o < count; ++o) {
        const auto& operation = setup.operations[o];
        if (operation.kind == OperationKind::scan) continue;
        expect(phase.keys[o] != nullptr, "keys: expected a distribution");
        expect(phase.keys[o]->keys() <= setup.objects[operation.object].amount,
               "keys: expected none beyond the object's");
    }
    (void)Choice(phase.shares);
}

}  // namespace numatwin::native
