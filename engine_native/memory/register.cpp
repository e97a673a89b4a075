// What the module was built with, and what this host has.
#include "kernel/register.hpp"

#include "kernel/struct_binding.hpp"
#include "memory/host.hpp"

namespace py = pybind11;

namespace numatwin::native {
namespace {

void register_host(py::module_& module) {
#ifdef NUMATWIN_UCX
    module.attr("HAS_UCX") = true;
#else
    module.attr("HAS_UCX") = false;
#endif
    def_struct<HostNode>(module, "HostNode", "A node of the host.");
    def_struct<HostFacts>(module, "HostFacts", "What the host has, now.");
    module.def("host_facts", &host_facts, "What this host has for the engine, now.");
    module.def("pin_thread", &pin_thread, py::arg("cpu"),
               "The calling thread runs on this CPU alone; ValueError if it may not.");
}

const Registration registration("host", register_host);

}  // namespace

}  // namespace numatwin::native
