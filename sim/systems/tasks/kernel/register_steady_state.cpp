// Python's view of steady states: of queues (QueueSetup, SettledQueues), and of what tasks share
// (ServiceSetup, SettledService).
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "kernel/arrays.hpp"
#include "kernel/register.hpp"
#include "kernel/struct_binding.hpp"
#include "systems/tasks/kernel/settled_queues.hpp"
#include "systems/tasks/kernel/settled_service.hpp"

namespace py = pybind11;

namespace numatwin {
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
        .def_property_readonly("rates",
                               [](const SettledQueues& queues) { return array_of(queues.rates); })
        .def_property_readonly("present",
                               [](const SettledQueues& queues) { return array_of(queues.present); })
        .def_property_readonly(
            "response_s", [](const SettledQueues& queues) { return array_of(queues.response_s); })
        .def_property_readonly("fit",
                               [](const SettledQueues& queues) { return array_of(queues.fit); });
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
        .def_property_readonly("entry_s", [](const Of& served) { return array_of(served.entry_s); })
        .def_property_readonly("entries_per_s",
                               [](const Of& served) { return array_of(served.entries_per_s); })
        .def_property_readonly("held_s", [](const Of& served) { return array_of(served.held_s); })
        .def_property_readonly("copy_s", [](const Of& served) { return array_of(served.copy_s); })
        .def_property_readonly("work_s", [](const Of& served) { return array_of(served.work_s); })
        .def_property_readonly("load", [](const Of& served) { return array_of(served.load); })
        .def_property_readonly("used", [](const Of& served) { return array_of(served.used); })
        .def_property_readonly("wait_s", [](const Of& served) { return array_of(served.wait_s); })
        .def_property_readonly("entry_wait_s",
                               [](const Of& served) { return array_of(served.entry_wait_s); });
}

const Registration queues("settled queues", register_settled_queues);
const Registration service("settled service", register_settled_service);

}  // namespace
}  // namespace numatwin
