// Python's view of the machine's parts, for tests of each against its twin and by hand.
#include "kernel/register.hpp"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <tuple>
#include <utility>

#include "kernel/arrays.hpp"
#include "machine/kernel/adapter.hpp"
#include "machine/kernel/core.hpp"
#include "machine/kernel/interconnect.hpp"
#include "machine/kernel/memory_controller.hpp"

namespace py = pybind11;

namespace numatwin {
namespace {

// The named tuples of machine/reference.
using Curve = std::pair<Numbers, Numbers>;
using Work = std::tuple<double, double, double>;
using Routes = std::tuple<Positions, Positions, std::size_t>;
using Paths = std::tuple<SparseRows, SparseRows, SparseRows>;

CoreWork work_of(const Work& of) {
    return {std::get<0>(of), std::get<1>(of), std::get<2>(of)};
}

// `fact(link)` of each link.
template <class Fact>
auto of_links(const Interconnect& links, Fact fact) {
    return column_of(links.links(), [&](std::size_t link) { return fact(link); });
}

void register_core(py::module_& module) {
    py::class_<Core>(module, "Core",
                     "A core: its hardware threads take turns and share its miss slots.\n\n"
                     "See sim/machine/reference/core.py, which has the same calls.")
        .def(py::init([](int threads) {
                 Core made;
                 for (int k = 0; k < threads; ++k) made.add_thread();
                 return made;
             }),
             py::arg("threads"))
        .def(
            "begin",
            [](Core& self, Time now, const Work& work) {
                const PhaseEnd end = self.begin(now, work_of(work));
                return std::pair(end.alone, end.done);
            },
            py::arg("now"), py::arg("work"))
        .def_property_readonly("held", &Core::held)
        .def("start_counting", &Core::start_counting, py::arg("now"));
}

void register_machine(py::module_& module) {
    register_core(module);
    py::class_<MemoryController>(
        module, "MemoryController",
        "Serves lines in order of arrival, and answers the later the busier it is.\n\n"
        "See sim/machine/reference/memory_controller.py, which has the same "
        "calls.")
        .def(py::init<double, double, double>(), py::arg("read_ps"), py::arg("write_ps"),
             py::arg("idle_ps"))
        .def("serve", &MemoryController::serve, py::arg("now"), py::arg("lines"),
             py::arg("written") = 0.0)
        .def(
            "wait_ps",
            [](MemoryController& self, Time now, Curve curve) {
                return self.wait_ps(now, {std::move(curve.first), std::move(curve.second)});
            },
            py::arg("now"), py::arg("curve"))
        .def_property_readonly("lines", &MemoryController::lines)
        .def_property_readonly("arrived", &MemoryController::arrived)
        .def("done", &MemoryController::done, py::arg("now"))
        .def("start_counting", &MemoryController::start_counting, py::arg("now"));
    py::class_<Interconnect>(module, "Interconnect",
                             "All links of a machine, and the routes over them.\n\n"
                             "See sim/machine/reference/interconnect.py, which has the same calls.")
        .def(py::init(
                 [](const Positions& data_ps, const Positions& request_ps, const Routes& routes) {
                     const auto& [entering, predecessor, vertices] = routes;
                     return Interconnect(data_ps, request_ps, entering, predecessor, vertices);
                 }),
             py::arg("data_ps"), py::arg("request_ps"), py::arg("routes"))
        .def("send_lines", &Interconnect::send_lines, py::arg("now"), py::arg("start"),
             py::arg("end"), py::arg("lines"), py::arg("done"))
        .def(
            "use_memory",
            [](Interconnect& self, Time now, const Paths& paths, std::size_t node, double lines,
               Time done) {
                const auto& [data_ps, control_ps, bytes] = paths;
                return self.use_memory(now, {data_ps, control_ps, bytes}, node, lines, done);
            },
            py::arg("now"), py::arg("paths"), py::arg("node"), py::arg("lines"), py::arg("done"))
        .def_property_readonly("lines",
                               [](const Interconnect& self) {
                                   return of_links(self, [&](auto k) { return self.lines(k); });
                               })
        .def_property_readonly("requests",
                               [](const Interconnect& self) {
                                   return of_links(self, [&](auto k) { return self.requests(k); });
                               })
        .def_property_readonly("bytes",
                               [](const Interconnect& self) {
                                   return of_links(self, [&](auto k) { return self.bytes(k); });
                               })
        .def(
            "done",
            [](const Interconnect& self, Time now) {
                return of_links(self, [&](auto k) { return self.done(k, now); });
            },
            py::arg("now"))
        .def("start_counting", &Interconnect::start_counting, py::arg("now"));
    py::class_<Adapter>(module, "Adapter",
                        "A network adapter: an outgoing and an incoming side, cut-through.\n\n"
                        "See sim/machine/reference/adapter.py, which has the same calls.")
        .def(py::init<>())
        .def(
            "send",
            [](Adapter& self, Time now, Time out_ps, Time wire_ps) {
                const Passage passage = self.send(now, out_ps, wire_ps);
                return std::pair(passage.first_bits, passage.last_bits);
            },
            py::arg("now"), py::arg("out_ps"), py::arg("wire_ps"))
        .def("receive", &Adapter::receive, py::arg("now"), py::arg("in_ps"), py::arg("last_bits"));
}

const Registration registration("machine", register_machine);

}  // namespace

}  // namespace numatwin
