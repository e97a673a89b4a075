// Python's view of ERIS's baselines: SharedStep, SharedSetup, ErisShared.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "kernel/arrays.hpp"
#include "kernel/register.hpp"
#include "kernel/running.hpp"
#include "kernel/struct_binding.hpp"
#include "systems/eris/kernel/machine_counts.hpp"
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
    add_machine_counts(found, model);
    return found;
}

void register_eris_shared(py::module_& module) {
    def_struct<SharedStep>(module, "SharedStep",
                           "A step of a worker's loop, per operation of the mix that it does.");
    def_struct<SharedSetup>(module, "SharedSetup", "Workers on data that all share.");
    py::class_<Model> model(module, "ErisShared",
                            "ERIS's baselines, event by event (systems/eris/kernel/shared.hpp).");
    model
        .def(py::init([](const SharedSetup& of, const StreamKeys& keys, std::uint64_t seed,
                         std::uint64_t replication) {
                 return std::make_unique<Model>(of, streams_of(keys), seed, replication);
             }),
             py::arg("setup"), py::arg("keys"), py::arg("seed"), py::arg("replication"),
             "``keys``: the Philox key of each worker.")
        .def(
            "update", [](Model& self, const SharedSetup& of) { self->update(of); }, py::arg("of"),
            "Other demands from now on, for the same workers.")
        .def(
            "start", [](Model& self) { self->start(); }, "Lets all workers begin.")
        .def(
            "start_counting", [](Model& self) { self->start_counting(); },
            "Forgets what was counted.")
        .def(
            "check", [](Model& self) { self->check(); },
            "Raises RuntimeError where commands were lost or done twice, or a server did too much.")
        .def("counts", &counts,
             "What was counted since start_counting, by name; arrays are copies.")
        .def(
            "latency",
            [](Model& self, std::size_t operation) {
                const Histogram& of = self->latency.at(operation);
                return std::pair(of.buckets(), of.total());
            },
            py::arg("operation"), "Of an operation: latencies by bucket, and their sum; in ps.");
    def_running<ErisShared>(model);
}

const Registration registration("eris_shared", register_eris_shared);

}  // namespace

}  // namespace numatwin
