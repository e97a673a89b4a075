// Refuses what the ERIS models are told in wrong shapes, by the name of the field.
#include "systems/eris/kernel/setup.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>

namespace numatwin {
namespace {

[[noreturn]] void refuse(const char* field, const std::string& expected) {
    throw std::invalid_argument(std::string(field) + ": expected " + expected);
}

template <class Values>
void sized(const Values& values, std::size_t size, const char* field) {
    if (values.size() != size)
        refuse(field, std::to_string(size) + " values, found " + std::to_string(values.size()));
}

// Numbers that are neither negative nor without end.
template <class Values>
void amounts(const Values& values, std::size_t size, const char* field) {
    sized(values, size, field);
    for (const auto value : values)
        if (!(value >= 0) || !std::isfinite(static_cast<double>(value)))
            refuse(field, "numbers from 0 on, found " + std::to_string(value));
}

void positive(const Numbers& values, std::size_t size, const char* field) {
    amounts(values, size, field);
    for (const auto value : values)
        if (value == 0) refuse(field, "numbers above 0");
}

void positions(const Positions& values, std::size_t size, std::size_t below, const char* field) {
    sized(values, size, field);
    for (const auto value : values)
        if (value < 0 || static_cast<std::size_t>(value) >= below)
            refuse(field,
                   "positions below " + std::to_string(below) + ", found " + std::to_string(value));
}

// Rows that are not given at all are empty.
void rows(const SparseRows& given, std::size_t size, std::size_t below, const char* field) {
    const auto entries = given.column.size();
    amounts(given.value, entries, field);
    positions(given.column, entries, below, field);
    if (given.first.empty() && entries == 0) return;
    sized(given.first, size + 1, field);
    if (given.first.front() != 0 || static_cast<std::size_t>(given.first.back()) != entries)
        refuse(field, "rows from the first entry to the last");
    for (std::size_t i = 0; i < size; ++i)
        if (given.first[i] > given.first[i + 1]) refuse(field, "rows in order");
}

void curve(const Numbers& load, const Numbers& ratio) {
    if (load.size() < 2) refuse("load", "at least 2 values");
    amounts(load, load.size(), "load");
    amounts(ratio, load.size(), "load_ratio");
}

void at_least(double value, double least, const char* field) {
    if (!(value >= least) || !std::isfinite(value))
        refuse(field, "at least " + std::to_string(least));
}

void in_use(const Positions& node, const Positions& core, std::size_t nodes) {
    if (node.empty()) refuse("node", "at least one worker");
    positions(node, node.size(), nodes, "node");
    positions(core, node.size(), node.size(), "core");
}

// Each way from node to node ends.
void ways(const ErisMachine& of, std::size_t nodes) {
    const auto links = of.link_data_ps.size();
    if (links == 0) return;
    if (of.vertices < static_cast<std::int64_t>(nodes)) refuse("vertices", "at least every node");
    const auto vertices = static_cast<std::size_t>(of.vertices);
    sized(of.entering, nodes * vertices, "entering");
    sized(of.predecessor, nodes * vertices, "predecessor");
    for (std::size_t a = 0; a < nodes; ++a)
        for (std::size_t b = 0; b < nodes; ++b) {
            std::size_t at = b, steps = 0;
            while (at != a) {
                const auto link = of.entering[a * vertices + at];
                const auto before = of.predecessor[a * vertices + at];
                if (link < 0 || static_cast<std::size_t>(link) >= links)
                    refuse("entering", "links on the way from node to node");
                if (before < 0 || before >= of.vertices || ++steps > vertices)
                    refuse("predecessor", "ways that end");
                at = static_cast<std::size_t>(before);
            }
        }
}

}  // namespace

void check(const ErisMachine& of) {
    const std::size_t n = of.home.size(), links = of.link_data_ps.size();
    in_use(of.node, of.core, n);
    positions(of.home, n, n, "home");
    amounts(of.issue_ps, n, "issue_ps");
    amounts(of.receive_ps, n, "receive_ps");
    amounts(of.flush_ps, n, "flush_ps");
    amounts(of.copy_ps, n, "copy_ps");
    amounts(of.batch_ps, n, "batch_ps");
    amounts(of.round_ps, n, "round_ps");
    amounts(of.swap_ps, n, "swap_ps");
    positive(of.stream_slots, n, "stream_slots");
    positive(of.read_slots, n, "read_slots");
    at_least(of.read_waits, 0, "read_waits");
    amounts(of.part_ps, n, "part_ps");
    at_least(of.part_waits, 0, "part_waits");
    amounts(of.handed_ps, n * n, "handed_ps");
    amounts(of.memory_idle_ps, n, "memory_idle_ps");
    amounts(of.memory_line_ps, n, "memory_line_ps");
    amounts(of.memory_write_ps, n, "memory_write_ps");
    curve(of.load, of.load_ratio);
    amounts(of.link_data_ps, links, "link_data_ps");
    amounts(of.link_request_ps, links, "link_request_ps");
    rows(of.line_data_ps, n, links, "line_data_ps");
    rows(of.line_control_ps, n, links, "line_control_ps");
    rows(of.line_bytes, n, links, "line_bytes");
    ways(of, n);
    at_least(of.lines_per_command, 0, "lines_per_command");
    at_least(of.answer_lines, 0, "answer_lines");
    at_least(static_cast<double>(of.buffer_commands), 1, "buffer_commands");
    at_least(static_cast<double>(of.round_commands), 1, "round_commands");
    at_least(static_cast<double>(of.command_bytes), 1, "command_bytes");
    at_least(static_cast<double>(of.batch), 1, "batch");
    at_least(static_cast<double>(of.incoming_commands), static_cast<double>(of.buffer_commands),
             "incoming_commands");
    if (static_cast<double>(of.incoming_commands) * static_cast<double>(of.command_bytes) >=
        4294967296.0)
        refuse("incoming_commands", "less than 4 GiB of commands, which an offset can tell");
    at_least(of.think_ps, 0, "think_ps");
    at_least(of.arrival_ps, 0, "arrival_ps");
    at_least(of.pace_lasts_ps, 0, "pace_lasts_ps");
    at_least(of.apart_times, 1, "apart_times");
    if (of.pace_lasts_ps > 0) {
        if (of.pace_share.size() < 2 || of.pace_share.front() != 0.0 ||
            of.pace_share.back() != 1.0 ||
            !std::ranges::is_sorted(of.pace_share, std::less_equal{}))
            refuse("pace_share", "shares that rise from 0 to 1");
        amounts(of.pace_slowdown, of.pace_share.size(), "pace_slowdown");
        amounts(of.pace_memory_slowdown, of.pace_share.size(), "pace_memory_slowdown");
        if (std::min(std::ranges::min(of.pace_slowdown),
                     std::ranges::min(of.pace_memory_slowdown)) <= 0)
            refuse("pace_slowdown", "more than 0");
    }
    at_least(static_cast<double>(of.scans_max), 1, "scans_max");
    at_least(static_cast<double>(of.scan_chunk_lines), 1, "scan_chunk_lines");
}

void check(const ErisDemands& of, std::size_t operations, std::size_t workers) {
    const std::size_t size = operations * workers;
    amounts(of.core_ps, size, "core_ps");
    amounts(of.hit_ps, size, "hit_ps");
    amounts(of.lines, size, "lines");
    amounts(of.slots, size, "slots");
    amounts(of.surely_ps, size, "surely_ps");
    amounts(of.memory_lines, size, "memory_lines");
    amounts(of.written, size, "written");
    amounts(of.scan_lines, size, "scan_lines");
    for (std::size_t k = 0; k < size; ++k)
        if (of.lines[k] > 0 && of.slots[k] == 0) refuse("slots", "numbers above 0");
}

void check(const ErisTable& of, std::size_t cells) {
    sized(of.sum, cells + 1, "sum");
    for (std::size_t k = 0; k < cells; ++k)
        if (!(of.sum[k] <= of.sum[k + 1])) refuse("sum", "numbers that do not fall");
    if (of.sum.front() != 0 || of.sum.back() != 1) refuse("sum", "numbers from 0 to 1");
    if (of.guide.empty()) refuse("guide", "at least one value");
    positions(of.guide, of.guide.size(), cells, "guide");
    const auto slots = static_cast<double>(of.guide.size());
    for (std::size_t k = 0; k < of.guide.size(); ++k)
        if (of.sum[static_cast<std::size_t>(of.guide[k])] > static_cast<double>(k) / slots)
            refuse("guide", "cells from which a search can begin");
}

void check(const SharedSetup& of) {
    const std::size_t n = of.memory_idle_ps.size(), links = of.link_line_ps.size();
    in_use(of.node, of.core, n);
    if (of.steps.empty()) refuse("steps", "at least one");
    for (const SharedStep& step : of.steps) {
        amounts(step.core_ps, n, "core_ps");
        amounts(step.held_ps, n, "held_ps");
        rows(step.memory, n, n, "memory");
        rows(step.links, n, links, "links");
        rows(step.streamed, n, n, "streamed");
        const std::size_t entries = step.streamed.column.size();
        rows(step.ways, entries, links, "ways");
        positive(step.slots, n, "slots");
        amounts(step.surely_ps, entries, "surely_ps");
        amounts(step.idle_ps, entries, "idle_ps");
    }
    rows(of.memory_ps, n, n, "memory_ps");
    rows(of.memory_lines, n, n, "memory_lines");
    rows(of.link_data_ps, n, links, "link_data_ps");
    rows(of.link_control_ps, n, links, "link_control_ps");
    rows(of.link_bytes, n, links, "link_bytes");
    amounts(of.pair_ps, n, "pair_ps");
    amounts(of.line_ps, n, "line_ps");
    amounts(of.memory_idle_ps, n, "memory_idle_ps");
    amounts(of.link_line_ps, links, "link_line_ps");
    curve(of.load, of.load_ratio);
    at_least(of.link_load_max, 0, "link_load_max");
    if (of.link_load_max >= 1) refuse("link_load_max", "less than 1");
    if (of.shares.empty()) refuse("shares", "at least one operation");
    amounts(of.shares, of.shares.size(), "shares");
    at_least(static_cast<double>(of.batch), 1, "batch");
    at_least(static_cast<double>(of.chunks), 0, "chunks");
    at_least(of.think_ps, 0, "think_ps");
    at_least(of.arrival_ps, 0, "arrival_ps");
}

}  // namespace numatwin
