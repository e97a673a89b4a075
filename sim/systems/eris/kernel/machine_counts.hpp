// What a run of either ERIS model tells Python of the machine: use of cores, controllers and links.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>

#include "kernel/arrays.hpp"

namespace numatwin {

template <class Model>
void add_machine_counts(pybind11::dict& found, const Model& model) {
    const auto& cores = model.cores();
    const auto& memory = model.memory();
    const auto& links = model.links();
    const std::size_t n = memory.size(), count = links.links();
    auto held = column_of(cores.size(), [&](std::size_t k) { return cores[k].held(); });
    for (std::size_t i = 0; i < model.workers(); ++i)
        held.mutable_data()[model.core_of(i)] -= model.held_left(i);
    found["held"] = held;
    found["core_executed"] =
        column_of(cores.size(), [&](std::size_t k) { return model.core_executed(k); });
    found["memory_lines"] = column_of(n, [&](std::size_t k) { return memory[k].lines(); });
    found["memory_arrived"] = column_of(n, [&](std::size_t k) { return memory[k].arrived(); });
    found["memory_done"] = column_of(n, [&](std::size_t k) { return model.memory_done(k); });
    found["link_bytes"] = column_of(count, [&](std::size_t k) { return links.bytes(k); });
    found["link_done"] = column_of(count, [&](std::size_t k) { return model.link_done(k); });
    found["since_ps"] = model.counting_since();
}

}  // namespace numatwin
