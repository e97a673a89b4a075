// Runs the inner loops of ERIS (eris_loops/) for instruction_counts.py to count their instructions
// under callgrind.
//
// Usage: valgrind --tool=callgrind --collect-atstart=no … instruction_counts UNITS
// Each loop runs on UNITS and on 2 * UNITS units; callgrind writes a dump named "CASE UNITS" for
// each run, so that the difference is free of what a run costs once. What a loop must have done is
// checked; the status is 1 where it has not.
#include <valgrind/callgrind.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "eris_loops/commands.hpp"
#include "eris_loops/lines.hpp"
#include "eris_loops/link_transfer.hpp"
#include "eris_loops/prefix_tree.hpp"
#include "eris_loops/routing.hpp"
#include "eris_loops/scan.hpp"

namespace {

void check(bool right, const char* what) {
    if (right) return;
    std::fprintf(stderr, "instruction_counts: %s went wrong\n", what);
    std::exit(1);
}

template <typename Loop>
void count(const std::string& name, std::size_t units, Loop loop) {
    const std::string dump = name + ' ' + std::to_string(units);
    CALLGRIND_TOGGLE_COLLECT;
    loop();
    CALLGRIND_TOGGLE_COLLECT;
    CALLGRIND_DUMP_STATS_AT(dump.c_str());
}

std::string named(const char* name, std::size_t parameter) {
    return std::string(name).append(1, '.').append(std::to_string(parameter));
}

std::size_t tree_bytes(std::size_t keys, unsigned levels) {
    return (keys * levels + 64) * sizeof(Node);
}

// Commands for random keys, and a tree that holds these keys, each with value 1.
struct RandomTree {
    RandomTree(std::size_t keys, unsigned levels)
        : commands(keys),
          nodes(tree_bytes(keys, levels)),
          entries(keys * sizeof(Entry)),
          tree{nodes.empty_node(), levels} {
        Random random(2);
        generate(random, Key{1} << (8 * levels), commands);
        std::vector<Entry> pairs;
        for (const Command& command : commands) pairs.push_back({command.key, 1});
        std::ranges::sort(pairs, {}, &Entry::key);
        bulk_load(tree, nodes, entries, pairs);
    }

    std::vector<Command> commands;
    Arena nodes, entries;
    Tree tree;
};

void generating(std::size_t units) {
    constexpr Key domain = 1'000'000'000;
    std::vector<Command> commands(units);
    Random random(1);
    count("generate", units, [&] { generate(random, domain, commands); });
    check(std::ranges::all_of(commands, [](const Command& c) { return c.key < domain; }),
          "generate");
}

void tree_operations(std::size_t units, unsigned levels) {
    RandomTree random(units, levels);
    const Tree& tree = random.tree;
    std::vector<Command>& commands = random.commands;
    const auto set_values = [&](std::uint32_t value) {
        for (Command& command : commands) command.value = value;
    };
    std::uint64_t sum = 0;
    count(named("lookup", levels), units, [&] { sum = lookup(tree, commands); });
    check(sum == units, "lookup");
    set_values(2);
    count(named("upsert", levels), units, [&] { upsert(tree, commands); });
    check(lookup(tree, commands) == 2 * units, "upsert");
    set_values(3);
    count(named("upsert_shared", levels), units, [&] { upsert_shared(tree, commands); });
    check(lookup(tree, commands) == 3 * units, "upsert_shared");
}

// Boundaries at keys of the tree, so that their paths are whole; a link undoes its unlink.
void link_transfers(std::size_t units, unsigned levels) {
    RandomTree random(units, levels);
    count(named("link", levels), units, [&] {
        for (const Command& command : random.commands) {
            Node* cut = unlink(random.tree, random.nodes, command.key);
            link(random.tree, random.nodes, cut, command.key);
        }
    });
    check(lookup(random.tree, random.commands) == units, "link");
}

// Dense keys, as many as fill whole nodes.
void copy_transfer(std::size_t units) {
    units *= 256;
    constexpr unsigned levels = 4;
    std::vector<Entry> pairs(units), copied(units);
    for (std::size_t k = 0; k < units; ++k) pairs[k] = {k, k};
    Arena nodes(tree_bytes(units / 256, levels)), entries(units * sizeof(Entry));
    Tree tree{nodes.empty_node(), levels};
    count("rebuild", units, [&] { bulk_load(tree, nodes, entries, pairs); });
    Entry* end = nullptr;
    count("flatten", units, [&] { end = flatten(tree, copied.data()); });
    check(end == copied.data() + units, "flatten");
    check(std::memcmp(pairs.data(), copied.data(), units * sizeof(Entry)) == 0, "rebuild");
}

void routing(std::size_t units, unsigned levels) {
    constexpr Key domain = Key{1} << 40;
    const PartitionTable table(levels, domain);
    const std::size_t aeus = table.ids.size();
    Random random(4);
    std::vector<Command> commands(units), room(aeus * (units + 1));
    generate(random, domain, commands);
    std::vector<Outgoing> outgoing(aeus);
    for (std::size_t aeu = 0; aeu < aeus; ++aeu) {  // room for all: no flush is counted
        const auto capacity = static_cast<std::uint32_t>(units + 1);
        outgoing[aeu] = {&room[aeu * capacity], 0, capacity, static_cast<AeuId>(aeu)};
    }
    count(named("route", levels), units, [&] { route(table, commands, outgoing, {}); });
    std::size_t sent = 0;
    for (std::size_t aeu = 0; aeu < aeus; ++aeu) {
        sent += outgoing[aeu].count;
        for (std::uint32_t k = 0; k < outgoing[aeu].count; ++k) {
            check(outgoing[aeu].commands[k].key / (domain / aeus) == aeu, "route");
        }
    }
    check(sent == units, "route");
}

void flushing(std::size_t units, unsigned lines) {
    constexpr std::uint32_t line_commands = line_bytes / sizeof(Command);
    std::vector<Line> from(lines), room(units * lines);
    const std::uint32_t commands = lines * line_commands;
    Outgoing out{reinterpret_cast<Command*>(from.data()), commands, commands, 0};
    for (std::uint32_t k = 0; k < commands; ++k) out.commands[k] = {k, 1, 0, 0};
    std::vector<Owner> owners(1);
    Incoming& in = owners[0].buffer[1];
    owners[0].writable = 1;
    in.descriptor = active_bit;
    in.lines = room.data();
    in.capacity_bytes = room.size() * line_bytes;
    bool fits = true;
    count(named("flush", lines), units, [&] {
        for (std::size_t k = 0; k < units; ++k) {
            out.count = commands;
            fits &= flush(out, owners);
        }
    });
    check(fits && in.descriptor == (active_bit | (in.capacity_bytes << offset_shift)), "flush");
    check(std::memcmp(&room.back(), &from.back(), line_bytes) == 0, "flush");
}

void receiving(std::size_t units) {
    constexpr std::size_t objects = 4;
    Random random(5);
    std::vector<Command> commands(units), room(objects * types * (units + 1));
    generate(random, 1'000, commands);
    for (Command& command : commands) {
        command.object = static_cast<std::uint16_t>(random.below(objects));
        command.type = static_cast<std::uint16_t>(random.below(types));
    }
    std::vector<Batch> batches(objects * types);
    for (std::size_t k = 0; k < batches.size(); ++k) {  // room for all: no execution is counted
        batches[k] = {&room[k * (units + 1)], 0, static_cast<std::uint32_t>(units + 1)};
    }
    count("receive", units, [&] { receive(commands, batches); });
    std::size_t received = 0;
    for (const Batch& batch : batches) received += batch.count;
    check(received == units, "receive");
}

template <typename Value, typename Bits>
void scanning(std::size_t units) {
    constexpr std::size_t bits_each = 8 * sizeof(Value);
    std::vector<Line> lines(units);
    const std::span column(reinterpret_cast<Value*>(lines.data()), units * line_values<Value>);
    Random random(6);
    constexpr Value bound = 10, most = 1'000;  // one value in a hundred is below
    std::int64_t expected = 0;
    std::vector<std::uint32_t> hits, positions(column.size());
    for (std::uint32_t k = 0; k < column.size(); ++k) {
        column[k] = static_cast<Value>(random.below(most));
        if (column[k] >= bound) continue;
        expected += column[k];
        hits.push_back(k);
    }
    const std::span<const Value> scanned = column;
    std::int64_t sum = 0;
    count(named("scan_sum", bits_each), units, [&] { sum = scan_sum(scanned, bound); });
    check(sum == expected, "scan_sum");

    std::vector<Bits> bitmap(units);
    count(named("scan_bitmap", bits_each), units,
          [&] { scan_bitmap(scanned, bound, bitmap.data()); });
    std::size_t set = 0;
    for (const Bits bits : bitmap) set += static_cast<std::size_t>(std::popcount(bits));
    check(set == hits.size(), "scan_bitmap");
    for (const std::uint32_t k : hits) {
        const unsigned bits = bitmap[k / line_values<Value>];
        check((bits >> (k % line_values<Value>)) & 1, "scan_bitmap");
    }

    std::uint32_t* end = scan_positions(scanned, bound, positions.data());
    check(std::ranges::equal(std::span(positions.data(), end), hits), "scan_positions");
    count(named("scan_positions", bits_each), units,
          [&] { end = scan_positions(scanned, most, positions.data()); });  // finds all
    check(end == positions.data() + column.size(), "scan_positions");
}

}  // namespace

int main(int argc, char** argv) {
    const std::size_t base = argc == 2 ? std::strtoul(argv[1], nullptr, 10) / group_size : 0;
    if (base == 0) {
        std::fprintf(stderr, "usage: %s UNITS (at least %zu)\n", argv[0], group_size);
        return 2;
    }
    for (const std::size_t units : {group_size * base, 2 * group_size * base}) {
        generating(units);
        for (const unsigned levels : {3U, 4U}) {
            tree_operations(units, levels);
            link_transfers(units, levels);
        }
        copy_transfer(units);
        for (const unsigned levels : {2U, 3U}) routing(units, levels);
        for (const unsigned lines : {1U, 33U}) flushing(units, lines);
        receiving(units);
        scanning<std::int32_t, std::uint16_t>(units);
        scanning<std::int64_t, std::uint8_t>(units);
    }
    return 0;
}
