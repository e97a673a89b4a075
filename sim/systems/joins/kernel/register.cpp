// Python's view of the model of a cluster that joins.
#include "kernel/register.hpp"

#include <memory>

#include "exchange.hpp"
#include "kernel/arrays.hpp"
#include "kernel/running.hpp"
#include "kernel/struct_binding.hpp"

namespace py = pybind11;

namespace numatwin {
namespace {

using Held = Runnable<Exchange>;

py::dict counts(Held& self) {
    Exchange& model = *self;
    SharedService service = model.service();
    service.count(model.clock.now());
    const std::size_t n = model.messages.size();
    py::dict found;
    found["latencies_ps"] = array_of(model.latencies_ps);
    found["operators"] = array_of(model.operator_used);
    found["messages"] = array_of(model.messages);
    found["rows_sent"] = array_of(model.rows_sent);
    found["pieces"] = array_of(model.pieces_done);
    found["message_cpu_ps"] = array_of(model.message_cpu_ps());
    found["waited_ps"] = array_of(model.waited_ps);
    found["out_ps"] = array_of(model.adapter_busy_ps(true));
    found["in_ps"] = array_of(model.adapter_busy_ps(false));
    found["lines_read"] = column_of(n, [&](std::size_t k) { return service.lines_read(k); });
    found["lines_written"] = column_of(n, [&](std::size_t k) { return service.lines_written(k); });
    found["controller_ps"] = column_of(n, [&](std::size_t k) { return service.controller_ps(k); });
    found["core_ps"] =
        column_of(model.cores(), [&](std::size_t k) { return service.core_busy(k); });
    return found;
}

void register_joins(py::module_& module) {
    def_struct<ExchangeStep>(module, "ExchangeStep", "A step of an operator on a cluster.");
    def_struct<ExchangeOperator>(module, "ExchangeOperator", "A distributed operator.");
    def_struct<ExchangeSetup>(module, "ExchangeSetup", "A cluster that joins, and its operators.");
    py::class_<Held> model(module, "ExchangeModel", "A cluster that joins, event by event.");
    model
        .def(
            py::init([](const ExchangeSetup& setup, std::uint64_t seed, std::uint64_t replication) {
                return std::make_unique<Held>(setup, seed, replication);
            }),
            py::arg("setup"), py::arg("seed"), py::arg("replication"))
        .def(
            "choose", [](Held& self, std::size_t chosen) { self->choose(chosen); },
            py::arg("chosen"), "Queries that begin from now on take this operator.")
        .def("counts", counts, "What was counted since the start, by name; arrays are copies.")
        .def(
            "keep_trace", [](Held& self) { self->trace.keep(true); }, "From now on.")
        .def(
            "trace", [](Held& self) { return trace_array(self->trace); },
            "Rows (time_ps, event, subject, data) of what happened.");
    def_running<Exchange>(model);
}

const Registration registration("joins", register_joins);

}  // namespace
}  // namespace numatwin
