// The register functions that module.cpp lists, one a noun.
#pragma once

#include <pybind11/pybind11.h>

namespace numatwin {

void register_commits(pybind11::module_& module);
void register_disturbances(pybind11::module_& module);
void register_draws(pybind11::module_& module);
void register_eris(pybind11::module_& module);
void register_eris_shared(pybind11::module_& module);
void register_flow_network(pybind11::module_& module);
void register_max_min(pybind11::module_& module);
void register_queueing(pybind11::module_& module);
void register_running(pybind11::module_& module);
void register_statistics(pybind11::module_& module);
void register_stream(pybind11::module_& module);

}  // namespace numatwin
