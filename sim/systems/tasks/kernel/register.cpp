// Python's view of tasks: StageSetup, TaskSetup, TaskModel.
#include "kernel/register.hpp"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <memory>
#include <tuple>

#include "kernel/arrays.hpp"
#include "kernel/running.hpp"
#include "kernel/struct_binding.hpp"
#include "systems/tasks/kernel/scan_plays.hpp"
#include "systems/tasks/kernel/settled_queues.hpp"
#include "systems/tasks/kernel/settled_service.hpp"
#include "systems/tasks/kernel/tasks.hpp"

namespace py = pybind11;

namespace numatwin {
namespace {

using Held = Runnable<TaskModel>;
using UseArrays = std::tuple<py::array_t<std::int64_t>, py::array_t<double>>;

UseArrays use_arrays(const std::vector<ThreadUse>& use) {
    return {column_of(use.size(), [&](std::size_t k) { return std::int64_t{use[k].cpu_ps}; }),
            column_of(use.size(), [&](std::size_t k) { return use[k].bytes; })};
}

py::array_t<std::int64_t> class_counts(const TaskModel& model) {
    std::vector<std::array<std::int64_t, 5>> rows;
    for (const ClassCounts& of : model.classes())
        rows.push_back({of.made, of.done, of.waiting, of.running, of.stolen});
    return table_of(rows);
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
    def_value(def_struct<LoopSetup>(module, "LoopSetup", "One of several loops of a stage."));
    def_value(def_struct<StageSetup>(module, "StageSetup", "A stage of a query."));
    def_value(def_struct<EngineSetup>(module, "EngineSetup", "A copy engine."));
    def_value(def_struct<BackgroundSetup>(module, "BackgroundSetup",
                                          "What goes on without end besides queries."));
    def_value(def_struct<TaskSetup>(
        module, "TaskSetup",
        "What tasks run with, in plain numbers: sim/systems/tasks/parameters.py makes it."));
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
        .def("copy", held<TaskModel>(&TaskModel::copy), py::arg("number"), py::arg("source"),
             py::arg("target"), py::arg("pages"), py::arg("page_ps"),
             "A copying thread begins; source -1: on all nodes. The run halts when it has arrived.")
        .def("set_parts", held<TaskModel>(&TaskModel::set_parts), py::arg("table"), py::arg("rows"),
             py::arg("nodes"),
             "The table is in these parts, for queries that are asked from now on.")
        .def("block", held<TaskModel>(&TaskModel::block), py::arg("table"), py::arg("part"),
             "The part begins to move: its tasks wait.")
        .def("place", held<TaskModel>(&TaskModel::place), py::arg("table"), py::arg("part"),
             py::arg("node"), "The part has arrived: its tasks are queued there.")
        .def("allow", held<TaskModel>(&TaskModel::allow), py::arg("classes"),
             py::arg("within_node") = true,
             "Whether tasks of each class may be stolen from now on, and whether those dealt to a "
             "worker may be taken by others of its node.")
        .def("use", held<TaskModel>(&TaskModel::use), py::arg("workers"),
             "Whether each worker takes tasks from now on.")
        .def("set_mix", held<TaskModel>(&TaskModel::set_mix), py::arg("cumulative"),
             "Shares of the queries, added up.")
        .def("set_paths", held<TaskModel>(&TaskModel::set_paths), py::arg("paths"),
             "Of scans that begin from now on: see TaskSetup.paths.")
        .def("take_arrived", held<TaskModel>(&TaskModel::arrived),
             "Numbers of the copies that have arrived since this was last asked.")
        .def(
            "trace", [](Held& self) { return table_of(self->trace()); },
            "[rows, 6]: see numatwin.sim.systems.tasks.history.")
        .def("counts", counts, "Since time 0, by name: see numatwin.sim.systems.tasks.event_plane.")
        .def(
            "latency_buckets",
            [](Held& self, std::size_t query) {
                return array_of(self->latencies().at(query).buckets());
            },
            py::arg("query"), "Counts of latencies by bucket of a Histogram, from 0 on.")
        .def(
            "node_use", [](Held& self) { return use_arrays(self->node_use()); },
            "[n] CPU time in ps and bytes of local tasks.")
        .def(
            "part_use", [](Held& self) { return use_arrays(self->part_use()); },
            "The same of all parts that ever were, by number.")
        .def("parts", held<TaskModel>(&TaskModel::parts), py::arg("table"),
             "Numbers of the table's parts now.");
}

const Registration tasks_part("tasks", register_tasks);

}  // namespace

// Python's view of steady states: of queues (QueueSetup, SettledQueues), and of what tasks share
// (ServiceSetup, SettledService).

namespace {

std::vector<double> values(const Doubles& array, const char* name) {
    const auto seen = view(array, name);
    return {seen.begin(), seen.end()};
}

void register_settled_queues(py::module_& module) {
    def_struct<QueueSetup>(module, "QueueSetup",
                           "Batches of tasks, the kinds that run, and who asks for them.");
    py::class_<SettledQueues>(module, "SettledQueues", "Queues of tasks in steady state.")
        .def(py::init<const QueueSetup&>(), py::arg("setup"),
             "Raises ValueError where columns do not fit together.")
        .def(
            "settle",
            [](SettledQueues& queues, const Doubles& tasks, const Doubles& local_s,
               const Doubles& task_s) {
                queues.settle(values(tasks, "tasks"), values(local_s, "local_s"),
                              values(task_s, "task_s"));
                return array_of(queues.running);
            },
            py::arg("tasks"), py::arg("local_s"), py::arg("task_s"),
            "(F,) tasks that run where a task of each batch takes ``local_s`` (B,) on its own node "
            "and ``task_s`` (F,) as each kind; goes on from where the last call ended.")
        .def_property_readonly("state", &SettledQueues::state, "Where the search is.")
        .def("go_on", &SettledQueues::go_on, py::arg("state"), "From where one alike has ended.")
        .def_property_readonly("rates", array_at(&SettledQueues::rates))
        .def_property_readonly("present", array_at(&SettledQueues::present))
        .def_property_readonly("response_s", array_at(&SettledQueues::response_s))
        .def_property_readonly("fit", array_at(&SettledQueues::fit));
}

void register_settled_service(py::module_& module) {
    def_struct<ServiceSetup>(module, "ServiceSetup",
                             "Kinds of tasks that run, and the parts of the machine they share.");
    using Of = SettledService;
    py::class_<Of>(module, "SettledService", "How fast tasks are, in steady state.")
        .def(py::init<const ServiceSetup&>(), py::arg("setup"),
             "Raises ValueError where columns do not fit together.")
        .def(
            "solve", [](Of& served, const Doubles& count) { served.solve(view(count, "count")); },
            py::arg("count"),
            "When ``count`` (F,) tasks of each kind run; waits are looked for from the last ones.")
        .def_property_readonly("entry_s", array_at(&Of::entry_s))
        .def_property_readonly("entries_per_s", array_at(&Of::entries_per_s))
        .def_property_readonly("held_s", array_at(&Of::held_s))
        .def_property_readonly("copy_s", array_at(&Of::copy_s))
        .def_property_readonly("work_s", array_at(&Of::work_s))
        .def_property_readonly("load", array_at(&Of::load))
        .def_property_readonly("used", array_at(&Of::used))
        .def_property_readonly("entry_wait_s", array_at(&Of::entry_wait_s));
}

const Registration queues("settled queues", register_settled_queues);
const Registration service("settled service", register_settled_service);

}  // namespace

// Python's view of single scans: ScanPlays.

namespace {

using Column = py::array_t<std::int64_t, py::array::c_style | py::array::forcecast>;
using Amounts = py::array_t<double, py::array::c_style | py::array::forcecast>;

py::array_t<double> play_all(const ScanPlays& plays, const Column& state, const Column& stage,
                             const Column& home, const Amounts& entries, std::int64_t path) {
    const py::ssize_t count = state.size();
    if (stage.size() != count || home.size() != count || entries.size() != count)
        throw std::invalid_argument("play: expected columns of one length");
    py::array_t<double> found(count);
    double* const to = found.mutable_data();
    const auto *states = state.data(), *stages = stage.data(), *homes = home.data();
    const double* const amounts = entries.data();
    py::gil_scoped_release released;
    for (py::ssize_t k = 0; k < count; ++k)
        to[k] = static_cast<double>(
            plays.play(static_cast<std::uint32_t>(states[k]), static_cast<std::size_t>(stages[k]),
                       static_cast<std::size_t>(homes[k]), amounts[k], path));
    return found;
}

void register_scan_plays(py::module_& module) {
    py::class_<ScanPlays>(module, "ScanPlays", "Single scans beside settled background work.")
        .def(py::init<const TaskSetup&>(), py::arg("setup"),
             "The stages are what scans may be; the first worker scans.")
        .def("state", &ScanPlays::state, py::arg("pieces"),
             "The number of a state in which these pieces of the background go on.")
        .def("rates", &ScanPlays::rates, py::arg("state"), "Units per ps of each of its pieces.")
        .def("play", &play_all, py::arg("state"), py::arg("stage"), py::arg("home"),
             py::arg("entries"), py::arg("path"), "How long each scan takes, in ps.");
}

const Registration registration("scan plays", register_scan_plays);

}  // namespace

}  // namespace numatwin
