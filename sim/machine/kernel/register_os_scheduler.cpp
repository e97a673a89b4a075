// Python's view of the operating system's scheduler, for tests against its twin.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <vector>

#include "kernel/register.hpp"
#include "kernel/struct_binding.hpp"
#include "machine/kernel/os_scheduler.hpp"

namespace py = pybind11;

namespace numatwin {
namespace {

std::uint32_t position(std::int64_t at) {
    return at < 0 ? OsScheduler::none : static_cast<std::uint32_t>(at);
}

void register_os_scheduler(py::module_& module) {
    def_struct<OsDomain>(module, "OsDomain", "Processors among which load is balanced.");
    def_value(def_struct<OsSetup>(
        module, "OsSetup", "Processors, their domains and threads: sim/machine/os_scheduler.py."));
    py::class_<OsScheduler>(module, "OsScheduler",
                            "Threads of the operating system on processors, by Linux's rules: "
                            "sim/machine/reference/os_scheduler.py.")
        .def(py::init([](const OsSetup& setup) { return std::make_unique<OsScheduler>(setup); }),
             py::arg("setup"))
        .def(
            "on",
            [](const OsScheduler& self, std::uint32_t thread) -> std::int64_t {
                if (thread >= self.threads()) throw py::index_error("thread");
                const std::uint32_t at = self.on(thread);
                return at == OsScheduler::none ? -1 : static_cast<std::int64_t>(at);
            },
            py::arg("thread"))
        .def("changed", &OsScheduler::changed)
        .def(
            "next_tick",
            [](const OsScheduler& self, Time now) -> std::optional<Time> {
                const Time at = self.next_tick(now);
                if (at == never) return std::nullopt;
                return at;
            },
            py::arg("now"))
        .def(
            "wake",
            [](OsScheduler& self, Time now, std::uint32_t thread, std::int64_t waker) {
                self.wake(now, thread, position(waker));
            },
            py::arg("now"), py::arg("thread"), py::arg("waker") = -1)
        .def("sleep", &OsScheduler::sleep, py::arg("now"), py::arg("thread"))
        .def("tick", &OsScheduler::tick, py::arg("now"))
        .def(
            "use",
            [](OsScheduler& self, Time now, const std::vector<std::int64_t>& cpus) {
                std::vector<bool> allowed(self.cpus());
                for (const std::int64_t cpu : cpus)
                    allowed.at(static_cast<std::size_t>(cpu)) = true;
                self.use(now, allowed);
            },
            py::arg("now"), py::arg("allowed"))
        .def_property_readonly("migrations", [](const OsScheduler& self) {
            return std::vector<std::int64_t>(self.migrations().begin(), self.migrations().end());
        });
}

const Registration registration("os_scheduler", register_os_scheduler);

}  // namespace
}  // namespace numatwin
