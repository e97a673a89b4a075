// What the plugin is to count, from a file of lines such as `memory 0 0x0 0x40000000`.
#pragma once

#include <cstdint>
#include <fstream>
#include <iomanip>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "hierarchy.hpp"

namespace numatwin {

// Memory of a node, at the addresses that QEMU's plugin interface reports.
struct MemoryRange {
    unsigned node;
    std::uint64_t first, bytes;
};

struct Settings {
    HierarchyShape shape;  // without levels: no caches, accesses alone are counted
    std::vector<MemoryRange> memory;
    unsigned line_shift = 6;
    std::uint64_t interval = 0;  // instructions of a processor after which counts are told, or 0
    bool user_only = false;      // what the kernel accesses is left out, and in no cache
    bool from_start = false;     // counts from the guest's start on, not from the command's
    std::string out;
};

// Lines: `nodes N`; `memory NODE FIRST BYTES`; `line_shift S`; `level INSTANCES SETS WAYS`, first
// level first; `cpu NODE INSTANCE…`, an instance of each level; `snoop_domain D…`, one per node,
// 0 for none; `coherent 0|1`; `owned 0|1`; `exclusive 0|1`; `interval N`; `window N`, of
// operations; `user_only 0|1`; `from_start`; `out PATH`.
inline Settings read_settings(const std::string& path) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error(path + ": cannot be read");
    Settings made;
    HierarchyShape& shape = made.shape;
    for (std::string text; std::getline(file, text);) {
        std::istringstream line(text);
        line >> std::setbase(0);
        std::string key;
        line >> key;
        if (key == "nodes") {
            line >> shape.nodes;
        } else if (key == "memory") {
            MemoryRange& range = made.memory.emplace_back();
            line >> range.node >> range.first >> range.bytes;
        } else if (key == "line_shift") {
            line >> made.line_shift;
        } else if (key == "level") {
            CacheShape& level = shape.levels.emplace_back();
            line >> level.instances >> level.sets >> level.ways;
            shape.cpu_instance.emplace_back();
        } else if (key == "cpu") {
            line >> shape.cpu_node.emplace_back();
            for (auto& instances : shape.cpu_instance) line >> instances.emplace_back();
        } else if (key == "snoop_domain") {
            for (unsigned domain; line >> domain;) shape.snoop_domain.push_back(domain);
            line.clear();
        } else if (key == "coherent") {
            line >> shape.coherent;
        } else if (key == "owned") {
            line >> shape.owned;
        } else if (key == "exclusive") {
            line >> shape.exclusive;
        } else if (key == "interval") {
            line >> made.interval;
        } else if (key == "window") {
            line >> shape.window;
        } else if (key == "user_only") {
            line >> made.user_only;
        } else if (key == "from_start") {
            made.from_start = true;
        } else if (key == "out") {
            std::getline(line >> std::ws, made.out);
        } else {
            throw std::runtime_error(path + ": unknown line: " + text);
        }
        if (line.fail()) throw std::runtime_error(path + ": not understood: " + text);
    }
    shape.snoop_domain.resize(shape.nodes);
    for (const MemoryRange& range : made.memory)
        if (range.node >= shape.nodes) throw std::runtime_error(path + ": memory of no node");
    for (const unsigned node : shape.cpu_node)
        if (node >= shape.nodes) throw std::runtime_error(path + ": a processor of no node");
    return made;
}

}  // namespace numatwin
