// Runs over a fabric as Python sees them: its options are properties of the run, rows are arrays.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "fabric/fabric.hpp"

namespace numatwin::native {

// `run`: the pybind11 class of Setup, which has a field `fabric`.
template <class Setup, class Class, class Option>
void def_fabric_option(Class& run, const char* name, Option FabricOptions::* option) {
    run.def_property(
        name, [option](const Setup& setup) { return setup.fabric.*option; },
        [option](Setup& setup, const Option& value) { setup.fabric.*option = value; });
}

template <class Setup, class Class>
void def_fabric_options(Class& run) {
    def_fabric_option<Setup>(run, "transports", &FabricOptions::transports);
    def_fabric_option<Setup>(run, "devices", &FabricOptions::devices);
    def_fabric_option<Setup>(run, "direct", &FabricOptions::direct);
}

// A row for each of `all`, with a column for each of these fields.
template <class Cell, class Rows, class... Fields>
pybind11::array_t<Cell> array_of(const Rows& all, Fields... fields) {
    const auto rows = static_cast<pybind11::ssize_t>(all.size());
    pybind11::array_t<Cell> made({rows, static_cast<pybind11::ssize_t>(sizeof...(fields))});
    Cell* cell = made.mutable_data();
    for (const auto& row : all) ((*cell++ = row.*fields), ...);
    return made;
}

}  // namespace numatwin::native
