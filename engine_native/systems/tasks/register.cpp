// Queries as tasks on this host: what an engine is made with, its answers and its counts.
#include "kernel/register.hpp"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include "kernel/struct_binding.hpp"
#include "systems/tasks/engine.hpp"

namespace py = pybind11;

namespace numatwin::native {
namespace {

using tasks::TaskEngine;
using Words = py::array_t<std::uint64_t>;

/// A column's values by row, as the dictionaries have them.
Words values(const TaskEngine& engine, std::size_t at, std::size_t column) {
    const std::shared_ptr<const tasks::TaskTable> held = engine.table(at);
    const tasks::TaskTable& table = *held;
    Words found(static_cast<py::ssize_t>(table.rows()));
    std::uint64_t* into = found.mutable_data();
    for (std::size_t p = 0; p < table.parts(); ++p) {
        const tasks::PartColumn& part = table.part(p).column(column);
        for (std::uint64_t row = 0; row < table.part(p).rows(); ++row) *into++ = part.value(row);
    }
    return found;
}

py::tuple answer(TaskEngine& engine, std::uint32_t query) {
    tasks::Answer found;
    {
        const py::gil_scoped_release released;
        found = engine.answer(query);
    }
    py::list columns;
    for (const std::vector<std::uint64_t>& column : found.columns)
        columns.append(Words(static_cast<py::ssize_t>(column.size()), column.data()));
    return py::make_tuple(found.entries, columns);
}

void register_tasks(py::module_& module) {
    py::enum_<tasks::Kind>(module, "TaskKind", "What the tasks of a stage do.")
        .value("SCAN", tasks::Kind::scan)
        .value("MATERIALISE", tasks::Kind::materialise)
        .value("DICTIONARIES", tasks::Kind::dictionaries)
        .value("AGGREGATE", tasks::Kind::aggregate)
        .value("MERGE", tasks::Kind::merge)
        .value("BUILD", tasks::Kind::build)
        .value("PROBE", tasks::Kind::probe);
    def_struct<tasks::ColumnSpec>(module, "TaskColumn",
                                  "A column: ids of a dictionary, or values.");
    def_struct<tasks::PartSpec>(module, "TaskPart", "Rows of a table on one node.");
    def_struct<tasks::TableSpec>(module, "TaskTable", "A table by column.");
    def_struct<tasks::StageSpec>(module, "TaskStage", "A stage of a query.");
    def_struct<tasks::QuerySpec>(module, "TaskQuery", "A kind of query.");
    def_struct<tasks::EngineSpec>(module, "TaskEngineSpec", "Tables, queries and workers.");
    const auto released = py::call_guard<py::gil_scoped_release>();
    py::class_<TaskEngine>(module, "TaskEngine", R"(Workers and their tables, which are drawn.

Raises MemoryError, and ValueError for a CPU that the host has not.)")
        .def(py::init<tasks::EngineSpec>(), py::arg("spec"), released)
        .def("begin", &TaskEngine::begin, py::arg("keys"), released,
             "All clients ask; ``keys`` of the streams of those that draw from the mix.")
        .def("stop", &TaskEngine::stop, released, "Clients ask no more, and have their answers.")
        .def("set_shares", &TaskEngine::set_shares, py::arg("shares"), "Of queries, in the mix.")
        .def("allow", &TaskEngine::allow, py::arg("classes"), "Which may be stolen from now on.")
        .def(
            "answer", &answer, py::arg("query"),
            R"(One query, while no client asks: entries; arrays of values by column, or of groups how
many rows, their key, sums; of a join's pairs rows of both tables.)")
        .def("values", &values, py::arg("table"), py::arg("column"), "By row.")
        .def(
            "tally", &TaskEngine::tally, py::arg("worker"),
            R"(A worker's sums: of each class tasks done, of these stolen, and ns; of each node tasks
stolen from there, and bytes asked of its memory.)")
        .def("thread", &TaskEngine::thread, py::arg("worker"),
             "The operating system's number of its thread; 0 before it has begun.")
        .def("migrations", &TaskEngine::migrations, py::arg("worker"),
             "Of its thread, to another processor; below 0: the operating system does not tell.")
        .def("made", &TaskEngine::made, py::arg("task_class"), "Tasks.")
        .def("class_Bps", &TaskEngine::class_Bps, py::arg("task_class"),
             "That a task asks of memory, on average; below 0 before the first has ended.")
        .def("answered", &TaskEngine::answered, "By query: how many times, and ns in all.")
        .def(
            "waiting", [](const TaskEngine& engine) { return engine.scheduler().waiting(); },
            "By node: tasks in its queue, and workers without any.")
        .def("latencies", &TaskEngine::latencies, py::arg("query"), py::arg("start"),
             "In ns, of answers from one on.")
        .def("rows_scanned", &TaskEngine::rows_scanned, py::arg("table"), py::arg("part"),
             "By all answered queries together.")
        .def("move", &TaskEngine::move, py::arg("number"), py::arg("table"), py::arg("part"),
             py::arg("host_node"), "In the background: a part's pages to a node of this host.")
        .def("remake", &TaskEngine::remake, py::arg("number"), py::arg("table"), py::arg("parts"),
             "In the background: a table's rows in twice as many parts, or in one.")
        .def("arrived", &TaskEngine::arrived, released, "Numbers of what has ended since then.")
        .def("swap", &TaskEngine::swap, py::arg("table"), released,
             "Queries that begin from now on use what was remade.")
        .def("hold", &TaskEngine::hold, py::arg("table"), py::arg("part"), released,
             "Its tasks wait until it is placed.")
        .def("place", &TaskEngine::place, py::arg("table"), py::arg("part"), py::arg("node"),
             released, "Its tasks are queued there from now on.")
        .def("local_use", &TaskEngine::local_use, released,
             "Of tasks that were not stolen, (ns, bytes): by node, then by part of each table.")
        .def("check", &TaskEngine::check, "Raises what has gone wrong in a worker.");
}

const Registration registration("tasks", register_tasks);

}  // namespace

}  // namespace numatwin::native
