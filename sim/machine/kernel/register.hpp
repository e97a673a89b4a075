// The register functions of the machine's parts.
#pragma once

#include <pybind11/pybind11.h>

namespace numatwin {

void register_machine(pybind11::module_& module);
void register_processors(pybind11::module_& module);
void register_shared_service(pybind11::module_& module);

}  // namespace numatwin
