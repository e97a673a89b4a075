// Python's view of models that are made of a machine's parts: what planes ask of each of them.
#pragma once

#include <pybind11/pybind11.h>

#include "kernel/running.hpp"
#include "machine/kernel/parts.hpp"

namespace numatwin {

// What was counted since start_counting, by name; arrays are copies.
pybind11::dict counts_of(const PartsModel& model);

// run, now_ps, events, pending, start_counting, counts, latency, tracing, trace.
template <class Model>
void def_parts_model(pybind11::class_<Runnable<Model>>& bound) {
    namespace py = pybind11;
    using Held = Runnable<Model>;
    def_running<Model>(bound);
    bound
        .def(
            "start_counting", [](Held& self) { self->start_counting(); },
            "Forgets what was counted.")
        .def(
            "counts", [](Held& self) { return counts_of(*self); },
            "What was counted since start_counting, by name; arrays are copies.")
        .def(
            "latency",
            [](Held& self, std::size_t operation) { return self->latency.at(operation); },
            py::arg("operation"), "Latencies of an operation, in ps.")
        .def(
            "keep_trace", [](Held& self) { self->trace.keep(true); }, "From now on.")
        .def(
            "trace", [](Held& self) { return trace_array(self->trace); },
            "Rows (time_ps, event, subject, data) of what happened.");
}

}  // namespace numatwin
