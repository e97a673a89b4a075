// Checks the shapes of the ERIS models' parameters; errors name the field.
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

// How many there are of each.
struct Sizes {
    std::size_t node = 0, link = 0, demand = 0, streamed = 0;

    std::size_t of(Each each) const {
        switch (each) {
            case Each::node:
                return node;
            case Each::node_pair:
                return node * node;
            case Each::link:
                return link;
            case Each::demand:
                return demand;
            case Each::streamed:
                return streamed;
        }
        return 0;
    }
};

template <Each each, class Number>
void fits(const Amounts<each, Number>& values, const Sizes& sizes, const char* field) {
    amounts(values, sizes.of(each), field);
}

void fits(const Slots& values, const Sizes& sizes, const char* field) {
    positive(values, sizes.node, field);
}

template <Each row, Each column>
void fits(const Rows<row, column>& values, const Sizes& sizes, const char* field) {
    rows(values, sizes.of(row), sizes.of(column), field);
}

void fits(double value, const Sizes&, const char* field) {
    at_least(value, 0, field);
}

void fits(const Count& value, const Sizes&, const char* field) {
    at_least(static_cast<double>(value.value), 1, field);
}

// Whatever else it should be is checked below.
template <class Value>
void fits(const Value&, const Sizes&, const char*) {}

template <class Struct>
void check_fields(const Struct& of, const Sizes& sizes) {
    for_each_field<Struct>([&](const auto& field) { fits(of.*field.member, sizes, field.name); });
}

}  // namespace

void check(const ErisMachine& of) {
    const std::size_t n = of.home.size();
    in_use(of.node, of.core, n);
    positions(of.home, n, n, "home");
    check_fields(of, {.node = n, .link = of.link_data_ps.size()});
    curve(of.load, of.load_ratio);
    ways(of, n);
    if (of.incoming_commands < of.buffer_commands)
        refuse("incoming_commands", "at least those of an outgoing buffer");
    if (static_cast<double>(of.incoming_commands.value) *
            static_cast<double>(of.command_bytes.value) >=
        4294967296.0)
        refuse("incoming_commands", "less than 4 GiB of commands, which an offset can tell");
    if (!of.disturbances.fits(of.node.size())) refuse("disturbances", "one for each worker");
}

void check(const ErisDemands& of, std::size_t operations, std::size_t workers) {
    const std::size_t size = operations * workers;
    check_fields(of, {.demand = size});
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
    for (const SharedStep& step : of.steps)
        check_fields(step, {.node = n, .link = links, .streamed = step.streamed.column.size()});
    check_fields(of, {.node = n, .link = links});
    curve(of.load, of.load_ratio);
    if (of.link_load_max >= 1) refuse("link_load_max", "less than 1");
    if (of.shares.empty()) refuse("shares", "at least one operation");
    amounts(of.shares, of.shares.size(), "shares");
    at_least(static_cast<double>(of.chunks), 0, "chunks");
}

}  // namespace numatwin
