// Python's view of tasks: StageSetup, TaskSetup, TaskModel.
#include "kernel/register.hpp"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <tuple>

#include "kernel/arrays.hpp"
#include "kernel/running.hpp"
#include "kernel/struct_binding.hpp"
#include "systems/tasks/kernel/tasks.hpp"

namespace py = pybind11;

namespace numatwin {
namespace {

using Held = Runnable<TaskModel>;
using UseArrays = std::tuple<py::array_t<std::int64_t>, py::array_t<double>>;

py::array_t<std::int64_t> rows(const std::vector<TaskRow>& trace) {
    py::array_t<std::int64_t> array({trace.size(), std::tuple_size_v<TaskRow>});
    std::int64_t* to = array.mutable_data();
    for (const TaskRow& row : trace) to = std::copy(row.begin(), row.end(), to);
    return array;
}

UseArrays use_arrays(const std::vector<ThreadUse>& use) {
    return {column_of(use.size(), [&](std::size_t k) { return std::int64_t{use[k].cpu_ps}; }),
            column_of(use.size(), [&](std::size_t k) { return use[k].bytes; })};
}

py::array_t<std::int64_t> class_counts(const TaskModel& model) {
    const auto& classes = model.classes();
    py::array_t<std::int64_t> array({classes.size(), std::size_t{5}});
    std::int64_t* to = array.mutable_data();
    for (const ClassCounts& of : classes)
        for (const std::int64_t value : {of.made, of.done, of.waiting, of.running, of.stolen})
            *to++ = value;
    return array;
}

py::dict counts(Held& self) {
    const TaskModel& model = *self;
    const SharedService service = model.counted_service();
    const auto& classes = model.classes();
    const std::size_t n = model.nodes(), queries = model.latencies().size();
    py::dict found;
    found["asked"] = model.asked();
    found["answered"] = column_of(queries, [&](std::size_t k) {
        return static_cast<std::int64_t>(model.latencies()[k].count());
    });
    found["latency_ps"] = column_of(
        queries, [&](std::size_t k) { return static_cast<double>(model.latency_totals()[k]); });
    found["classes"] = class_counts(model);
    found["class_bytes_per_ps"] =
        column_of(classes.size(), [&](std::size_t k) { return classes[k].bytes_per_ps; });
    found["waiting"] = array_of(model.waiting());
    found["parts_waiting"] = model.parts_waiting();
    found["idle"] = array_of(model.idle());
    found["looked_ps"] = array_of(model.looked_ps());
    found["migrations"] = array_of(model.migrations());
    found["traffic"] = py::array_t<double>({n, n}, model.traffic().data());
    found["lines_read"] = column_of(n, [&](std::size_t k) { return service.lines_read(k); });
    found["lines_written"] = column_of(n, [&](std::size_t k) { return service.lines_written(k); });
    found["controller_ps"] = column_of(n, [&](std::size_t k) { return service.controller_ps(k); });
    found["link_ps"] = column_of(model.setup().machine.data_ps.size(),
                                 [&](std::size_t k) { return service.link_ps(k); });
    found["core_ps"] = column_of(model.setup().machine.core_node.size(), [&](std::size_t k) {
        return static_cast<double>(service.core_busy(k));
    });
    return found;
}

void register_tasks(py::module_& module) {
    auto loop = def_struct<LoopSetup>(module, "LoopSetup", "One of several loops of a stage.");
    def_value(loop);
    auto stage = def_struct<StageSetup>(module, "StageSetup", "A stage of a query.");
    def_value(stage);
    auto engine = def_struct<EngineSetup>(module, "EngineSetup", "A copy engine.");
    def_value(engine);
    auto piece = def_struct<BackgroundSetup>(module, "BackgroundSetup",
                                             "What goes on without end besides queries.");
    def_value(piece);
    auto setup = def_struct<TaskSetup>(
        module, "TaskSetup",
        "What tasks run with, in plain numbers: sim/systems/tasks/parameters.py makes it.");
    def_value(setup);
    py::class_<Held> bound(module, "TaskModel", "Queries as tasks of a machine's workers.");
    bound.def(py::init([](const TaskSetup& of, const StreamKeys& keys, std::uint64_t seed,
                          std::uint64_t replication, bool traced) {
                  return std::make_unique<Held>(of, keys, seed, replication, traced);
              }),
              py::arg("setup"), py::arg("keys"), py::arg("seed") = 0, py::arg("replication") = 0,
              py::arg("traced") = false,
              "keys: Philox keys, two of each closed client (the mix, thinking) and two of open "
              "ones (the mix, arrivals).\n\n"
              "Raises ValueError for a setup that does not fit together.");
    def_running<TaskModel>(bound);
    bound
        .def(
            "copy",
            [](Held& self, std::int64_t number, std::int64_t source, std::int64_t target,
               std::int64_t pages,
               double page_ps) { self->copy(number, source, target, pages, page_ps); },
            py::arg("number"), py::arg("source"), py::arg("target"), py::arg("pages"),
            py::arg("page_ps"),
            "A copying thread begins; source -1: on all nodes. The run halts when it has arrived.")
        .def(
            "set_parts",
            [](Held& self, std::size_t table, const std::vector<std::int64_t>& part_rows,
               const std::vector<std::int64_t>& nodes) {
                self->set_parts(table, part_rows, nodes);
            },
            py::arg("table"), py::arg("rows"), py::arg("nodes"),
            "The table is in these parts, for queries that are asked from now on.")
        .def(
            "block",
            [](Held& self, std::size_t table, std::size_t part) { self->block(table, part); },
            py::arg("table"), py::arg("part"), "The part begins to move: its tasks wait.")
        .def(
            "place",
            [](Held& self, std::size_t table, std::size_t part, std::int64_t node) {
                self->place(table, part, node);
            },
            py::arg("table"), py::arg("part"), py::arg("node"),
            "The part has arrived: its tasks are queued there.")
        .def(
            "allow",
            [](Held& self, const std::vector<bool>& classes, bool within_node) {
                self->allow(classes, within_node);
            },
            py::arg("classes"), py::arg("within_node") = true,
            "Whether tasks of each class may be stolen from now on, and whether those dealt to a "
            "worker may be taken by others of its node.")
        .def(
            "use", [](Held& self, const std::vector<bool>& workers) { self->use(workers); },
            py::arg("workers"), "Whether each worker takes tasks from now on.")
        .def(
            "set_mix",
            [](Held& self, const std::vector<double>& cumulative) { self->set_mix(cumulative); },
            py::arg("cumulative"), "Shares of the queries, added up.")
        .def(
            "set_paths",
            [](Held& self, const std::vector<std::int64_t>& paths) { self->set_paths(paths); },
            py::arg("paths"), "Of scans that begin from now on: see TaskSetup.paths.")
        .def(
            "take_arrived", [](Held& self) { return self->arrived(); },
            "Numbers of the copies that have arrived since this was last asked.")
        .def(
            "trace", [](Held& self) { return rows(self->trace()); },
            "[rows, 6]: see numatwin.sim.systems.tasks.history.")
        .def("counts", counts, "Since time 0, by name: see numatwin.sim.systems.tasks.event_plane.")
        .def(
            "latency_buckets",
            [](Held& self, std::size_t query) { return self->latencies().at(query).buckets(); },
            py::arg("query"), "Counts of latencies by bucket of a Histogram, from 0 on.")
        .def(
            "node_use", [](Held& self) { return use_arrays(self->node_use()); },
            "[n] CPU time in ps and bytes of local tasks.")
        .def(
            "part_use", [](Held& self) { return use_arrays(self->part_use()); },
            "The same of all parts that ever were, by number.")
        .def(
            "parts", [](Held& self, std::size_t table) { return self->parts(table); },
            py::arg("table"), "Numbers of the table's parts now.");
}

const Registration registration("tasks", register_tasks);

}  // namespace
}  // namespace numatwin
