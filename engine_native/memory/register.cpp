// What the module was built with, and what this host has.
#include "kernel/register.hpp"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "memory/host.hpp"

namespace py = pybind11;

namespace numatwin::native {
namespace {

struct HostFactsName {
    static constexpr char name[] = "HostFacts";
};
using HostFactsDict = NamedDict<HostFactsName>;

py::dict facts_of(const HostNode& node) {
    using namespace py::literals;
    return py::dict("id"_a = node.id, "cpus"_a = node.cpus, "memory_bytes"_a = node.memory_bytes,
                    "free_bytes"_a = node.free_bytes, "may_allocate"_a = node.may_allocate);
}

HostFactsDict facts() {
    using namespace py::literals;
    const HostFacts host = host_facts();
    py::list nodes;
    for (const HostNode& node : host.nodes) nodes.append(facts_of(node));
    return HostFactsDict("nodes"_a = nodes, "available_bytes"_a = host.available_bytes,
                         "page_bytes"_a = host.page_bytes,
                         "huge_page_bytes"_a = host.huge_page_bytes,
                         "huge_pages_free"_a = host.huge_pages_free,
                         "transparent_huge_pages"_a = host.transparent_huge_pages,
                         "binding_refused"_a = host.binding_refused);
}

void register_host(py::module_& module) {
#ifdef NUMATWIN_UCX
    module.attr("HAS_UCX") = true;
#else
    module.attr("HAS_UCX") = false;
#endif
    module.def("host_facts", &facts, "What this host has for the engine, now.");
    module.def("pin_thread", &pin_thread, py::arg("cpu"),
               "The calling thread runs on this CPU alone; ValueError if it may not.");
}

const Registration registration("host", register_host);

}  // namespace

}  // namespace numatwin::native
