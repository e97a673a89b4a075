// Python's view of all parts of a machine together: PartsSetup, Parts.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <tuple>

#include "kernel/arrays.hpp"
#include "kernel/register.hpp"
#include "kernel/struct_binding.hpp"
#include "machine/kernel/parts_binding.hpp"

namespace py = pybind11;

namespace numatwin {
namespace {

py::dict counts_at(const Parts& parts, Time now) {
    const auto& memory = parts.memory;
    const auto& links = parts.links;
    const std::size_t cores = parts.threads.cores(), n = memory.size(), count = links.links();
    py::dict found;
    found["busy"] = column_of(cores, [&](std::size_t k) { return parts.threads.busy(k, now); });
    found["held"] = column_of(cores, [&](std::size_t k) { return parts.threads.held(k, now); });
    found["memory_lines"] = column_of(n, [&](std::size_t k) { return memory[k].lines(); });
    found["memory_arrived"] = column_of(n, [&](std::size_t k) { return memory[k].arrived(); });
    found["memory_done"] = column_of(n, [&](std::size_t k) { return memory[k].done(now); });
    found["link_lines"] = column_of(count, [&](std::size_t k) { return links.lines(k); });
    found["link_requests"] = column_of(count, [&](std::size_t k) { return links.requests(k); });
    found["link_done"] = column_of(count, [&](std::size_t k) { return links.done(k, now); });
    return found;
}

void register_parts(py::module_& module) {
    def_struct<PartsSetup>(module, "PartsSetup", "The parts of a machine, in ps.");
    py::class_<Parts>(module, "Parts",
                      "Threads on cores, memory controllers and links of a machine.\n\n"
                      "See sim/machine/reference/parts.py, which has the same calls.")
        .def(py::init<const PartsSetup&>(), py::arg("setup"))
        .def(
            "execute",
            [](Parts& self, Time now, std::size_t thread,
               const std::tuple<double, double, double>& work) {
                const auto& [instructions, held, separate] = work;
                return self.execute(now, thread, {instructions, held, separate});
            },
            py::arg("now"), py::arg("thread"), py::arg("work"))
        .def("read", &Parts::read, py::arg("now"), py::arg("node"), py::arg("home"),
             py::arg("lines"))
        .def("latency_ps", &Parts::latency_ps, py::arg("now"), py::arg("node"), py::arg("home"))
        .def("hand_over", &Parts::hand_over, py::arg("now"), py::arg("start"), py::arg("end"),
             py::arg("lines"))
        .def("counts_at", &counts_at, py::arg("now"))
        .def("start_counting", &Parts::start_counting, py::arg("now"));
}

const Registration registration("parts", register_parts);

}  // namespace

py::dict counts_of(const PartsModel& model) {
    py::dict found = counts_at(model.parts, model.clock.now());
    found["since_ps"] = model.counting_since();
    return found;
}

}  // namespace numatwin
