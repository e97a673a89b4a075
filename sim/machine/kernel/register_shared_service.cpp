// Python's view of SharedService, for tests against its twin.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <tuple>
#include <vector>

#include "kernel/register.hpp"
#include "kernel/struct_binding.hpp"
#include "machine/kernel/shared_service.hpp"

namespace py = pybind11;

namespace numatwin {
namespace {

// The named tuples of machine/reference/service_machine.py, field by field.
using MemoryTuple = std::tuple<std::uint32_t, double, double, double>;
using LoopTuple = std::tuple<double, std::vector<MemoryTuple>>;
using DemandTuple = std::tuple<double, double, std::vector<MemoryTuple>, std::vector<LoopTuple>,
                               std::vector<std::tuple<std::int64_t, double>>>;

std::uint32_t demand_of(SharedService& service, const DemandTuple& fields) {
    const auto& [instructions_ps, separate_ps, lines, loop_fields, held_fields] = fields;
    const auto uses = [](const std::vector<MemoryTuple>& of) {
        std::vector<MemoryUse> memory;
        for (const auto& [home, read, written, slots] : of)
            memory.push_back({home, read, written, slots});
        return memory;
    };
    std::vector<Loop> loops;
    for (const auto& [loop_ps, loop_lines] : loop_fields)
        loops.push_back({loop_ps, uses(loop_lines)});
    std::vector<Held> held;
    for (const auto& [lock, held_ps] : held_fields) held.push_back({lock, held_ps});
    return service.demand({instructions_ps, separate_ps, uses(lines), loops, held});
}

void register_shared_service(py::module_& module) {
    def_value(def_struct<ServiceMachine>(module, "ServiceMachine",
                                         "What long pieces of work share; times in ps."));
    py::class_<SharedService>(
        module, "SharedService",
        "Long pieces of work that share a machine max-min fair; times in ps.\n\n"
        "demand: the fields of PieceDemand in sim/machine/reference/service_machine.py; "
        "shared_service.py there has the same calls.")
        .def(py::init<ServiceMachine>(), py::arg("machine"))
        .def("demand", &demand_of, py::arg("demand"))
        .def("start", &SharedService::start, py::arg("now"), py::arg("core"), py::arg("demand"),
             py::arg("units"), py::arg("job"))
        .def("move", &SharedService::move, py::arg("now"), py::arg("name"), py::arg("core"))
        .def("cancel", &SharedService::cancel, py::arg("now"), py::arg("name"))
        .def("next_change", &SharedService::next_change)
        .def(
            "finish",
            [](SharedService& self, Time now) -> std::optional<std::uint64_t> {
                std::uint64_t job = 0;
                if (!self.finish(now, job)) return std::nullopt;
                return job;
            },
            py::arg("now"))
        .def("rate", &SharedService::rate, py::arg("name"))
        .def("remaining", &SharedService::remaining, py::arg("name"))
        .def("wait_ps", &SharedService::wait_ps, py::arg("node"))
        .def("entry_wait_ps", &SharedService::entry_wait_ps, py::arg("node"))
        .def("count", &SharedService::count, py::arg("now"))
        .def("lines_read", &SharedService::lines_read, py::arg("node"))
        .def("lines_written", &SharedService::lines_written, py::arg("node"))
        .def("lines", &SharedService::lines, py::arg("node"), py::arg("home"))
        .def("controller_ps", &SharedService::controller_ps, py::arg("node"))
        .def("link_ps", &SharedService::link_ps, py::arg("link"))
        .def("core_busy", &SharedService::core_busy, py::arg("core"));
}

const Registration registration("shared_service", register_shared_service);

}  // namespace

}  // namespace numatwin
