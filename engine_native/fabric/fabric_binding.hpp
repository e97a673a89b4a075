// A run's fabric as Python sees it: properties of the run.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>

namespace numatwin::native {

// `run`: the pybind11 class of Setup, which has a field `fabric`.
template <class Setup, class Class>
void def_fabric_options(Class& run) {
    run.def_property(
           "transports", [](const Setup& setup) { return setup.fabric.transports; },
           [](Setup& setup, const std::string& text) { setup.fabric.transports = text; })
        .def_property(
            "devices", [](const Setup& setup) { return setup.fabric.devices; },
            [](Setup& setup, const std::string& text) { setup.fabric.devices = text; })
        .def_property(
            "direct", [](const Setup& setup) { return setup.fabric.direct; },
            [](Setup& setup, bool direct) { setup.fabric.direct = direct; });
}

}  // namespace numatwin::native
