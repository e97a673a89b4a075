// What each part of the engine adds to the Python module.
#pragma once

#include <pybind11/pybind11.h>

namespace numatwin::native {

void register_engine(pybind11::module_& module);
void register_host(pybind11::module_& module);
void register_measure(pybind11::module_& module);
void register_rsi(pybind11::module_& module);

}  // namespace numatwin::native
