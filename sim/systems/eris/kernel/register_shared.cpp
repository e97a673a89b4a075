// Python's view of ERIS's baselines: SharedStep, SharedSetup, ErisShared.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "kernel/arrays.hpp"
#include "kernel/register.hpp"
#include "kernel/running.hpp"
#include "systems/eris/kernel/shared.hpp"

namespace py = pybind11;

namespace numatwin {
namespace {

using Model = Runnable<ErisShared>;

py::dict counts(Model& self) {
    const ErisShared& model = *self;
    py::dict found;
    found["done"] = array_of(model.done);
    py::list steps;
    for (const auto& of_step : model.step) steps.append(array_of(of_step));
    found["steps"] = steps;
    found["busy"] = column_of(model.workers(), [&](std::size_t i) { return model.busy(i); });
    found["held"] = array_of(model.held);
    found["memory_lines"] = array_of(model.memory_lines);
    found["memory_asked"] = array_of(model.memory_asked);
    found["link_bytes"] = array_of(model.link_bytes);
    found["memory_done"] =
        column_of(model.memory_lines.size(), [&](std::size_t k) { return model.memory_done(k); });
    found["link_done"] =
        column_of(model.link_bytes.size(), [&](std::size_t k) { return model.link_done(k); });
    found["since_ps"] = model.counting_since();
    return found;
}

}  // namespace

void register_eris_shared(py::module_& module) {
    auto step = py::class_<SharedStep>(module, "SharedStep", "A step of a worker's loop.");
    step.def(py::init<>());
#define FIELD(name) step.def_readwrite(#name, &SharedStep::name)
    FIELD(core_ps);
    FIELD(held_ps);
    FIELD(memory);
    FIELD(links);
    FIELD(streamed);
    FIELD(ways);
    FIELD(slots);
    FIELD(surely_ps);
    FIELD(idle_ps);
#undef FIELD
    auto setup = py::class_<SharedSetup>(module, "SharedSetup", "Workers on data that all share.");
    setup.def(py::init<>());
#define FIELD(name) setup.def_readwrite(#name, &SharedSetup::name)
    FIELD(node);
    FIELD(core);
    FIELD(steps);
    FIELD(memory_ps);
    FIELD(memory_lines);
    FIELD(link_data_ps);
    FIELD(link_control_ps);
    FIELD(link_bytes);
    FIELD(pair_ps);
    FIELD(line_ps);
    FIELD(memory_idle_ps);
    FIELD(link_line_ps);
    FIELD(load);
    FIELD(load_ratio);
    FIELD(link_load_max);
    FIELD(shares);
    FIELD(batch);
    FIELD(chunks);
    FIELD(think_ps);
    FIELD(arrival_ps);
#undef FIELD
    py::class_<Model> model(module, "ErisShared", "ERIS's baselines, event by event.");
    model
        .def(py::init([](const SharedSetup& of, const StreamKeys& keys, std::uint64_t seed,
                         std::uint64_t replication) {
                 return std::make_unique<Model>(of, streams_of(keys), seed, replication);
             }),
             py::arg("setup"), py::arg("keys"), py::arg("seed"), py::arg("replication"))
        .def("update", [](Model& self, const SharedSetup& of) { self->update(of); })
        .def("start", [](Model& self) { self->start(); })
        .def("start_counting", [](Model& self) { self->start_counting(); })
        .def("check", [](Model& self) { self->check(); })
        .def("counts", &counts)
        .def("latency",
             [](Model& self, std::size_t operation) { return self->latency.at(operation); });
    def_running<ErisShared>(model);
}

}  // namespace numatwin
