// The compiled kernel's table of contents: what Python sees, one register function a noun.
#include <pybind11/pybind11.h>

#include "kernel/register.hpp"
#include "machine/kernel/register.hpp"

PYBIND11_MODULE(_kernel, module) {
    module.doc() =
        "numatwin's compiled kernel (C++20): max-min fair shares, random streams, event models.";
    numatwin::register_commits(module);
    numatwin::register_disturbances(module);
    numatwin::register_draws(module);
    numatwin::register_eris(module);
    numatwin::register_eris_shared(module);
    numatwin::register_flow_network(module);
    numatwin::register_machine(module);
    numatwin::register_max_min(module);
    numatwin::register_processors(module);
    numatwin::register_queueing(module);
    numatwin::register_running(module);
    numatwin::register_shared_service(module);
    numatwin::register_statistics(module);
    numatwin::register_stream(module);
}
