// Python's view of SharedService, and a closed loop of tasks that measures it.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <tuple>
#include <vector>

#include "kernel/register.hpp"
#include "kernel/simulation.hpp"
#include "kernel/struct_binding.hpp"
#include "machine/kernel/shared_service.hpp"

namespace py = pybind11;

namespace numatwin {
namespace {

// The named tuples of machine/reference/service_machine.py, field by field.
using MemoryTuple = std::tuple<std::uint32_t, double, double, double>;
using LoopTuple = std::tuple<double, std::vector<MemoryTuple>>;
using DemandTuple = std::tuple<double, double, std::vector<MemoryTuple>, std::vector<LoopTuple>>;

MemoryUse memory_use(const MemoryTuple& fields) {
    const auto& [home, read, written, slots] = fields;
    return {home, read, written, slots};
}

std::uint32_t demand_of(SharedService& service, const DemandTuple& fields) {
    const auto& [instructions_ps, separate_ps, lines, loop_fields] = fields;
    const auto uses = [](const std::vector<MemoryTuple>& of) {
        std::vector<MemoryUse> memory;
        for (const MemoryTuple& use : of) memory.push_back(memory_use(use));
        return memory;
    };
    std::vector<Loop> loops;
    for (const auto& [loop_ps, loop_lines] : loop_fields)
        loops.push_back({loop_ps, uses(loop_lines)});
    return service.demand({instructions_ps, separate_ps, uses(lines), loops});
}

// Python's: with the machine that it settles by.
struct HomeOfMachine {
    HomeOfMachine(const ServiceMachine& described, std::size_t node)
        : machine((check(described, node), described)), home(machine, node) {}
    static void check(const ServiceMachine& described, std::size_t node) {
        described.check();
        service::require(node < described.read_ps.size(), "node", "one of the machine's");
    }

    ServiceMachine machine;
    MemoryHome home;
};

// Every thread does one task after the other; which ones come in turn, for each node from its own.
class ClosedTasks {
  public:
    ClosedTasks(ServiceMachine machine, const std::vector<DemandTuple>& demands,
                const std::vector<std::vector<std::pair<double, std::uint32_t>>>& tasks)
        : core_node_(machine.core_node),
          threads_(machine.core_threads),
          service_(std::move(machine)) {
        std::vector<std::uint32_t> number;
        for (const DemandTuple& demand : demands) number.push_back(demand_of(service_, demand));
        for (const auto& of_node : tasks) {
            List& list = list_.emplace_back();
            for (const auto& [units, demand] : of_node)
                list.task.push_back({units, number.at(demand)});
            if (list.task.empty()) throw std::invalid_argument("tasks: expected some by node");
        }
        for (const std::int64_t node : core_node_) list_.at(static_cast<std::size_t>(node));
        for (std::size_t core = 0; core < core_node_.size(); ++core)
            for (std::int64_t k = 0; k < threads_[core]; ++k) next(core);
        plan();
    }
    void handle(const Event&) {
        planned_ = never;
        std::uint64_t core = 0;
        while (service_.finish(clock.now(), core)) {
            ++done;
            next(core);
        }
        plan();
    }

    Simulation clock;
    std::uint64_t done = 0;

  private:
    struct Task {
        double units;
        std::uint32_t demand;
    };
    struct List {
        std::vector<Task> task;
        std::size_t next = 0;
    };

    void next(std::size_t core) {
        List& list = list_[static_cast<std::size_t>(core_node_[core])];
        const Task& task = list.task[list.next];
        if (++list.next == list.task.size()) list.next = 0;
        service_.start(clock.now(), core, task.demand, task.units, core);
    }
    // An event that comes too early only looks when the next one is due.
    void plan() {
        const Time at = service_.next_change();
        if (at >= planned_) return;
        planned_ = at;
        clock.schedule(at, 0);
    }

    Positions core_node_, threads_;
    SharedService service_;
    std::vector<List> list_;
    Time planned_ = never;
};

std::uint64_t play_closed(const ServiceMachine& machine, const std::vector<DemandTuple>& demands,
                          const std::vector<std::vector<std::pair<double, std::uint32_t>>>& tasks,
                          Time until) {
    ClosedTasks model(machine, demands, tasks);
    const py::gil_scoped_release released;
    model.clock.run(model, until);
    return model.done;
}

void register_shared_service(py::module_& module) {
    auto machine = def_struct<ServiceMachine>(module, "ServiceMachine",
                                              "What long pieces of work share; times in ps.");
    def_value(machine);
    py::class_<HomeOfMachine>(module, "MemoryHome",
                              "How long lines of a node's memory wait; times in ps.\n\n"
                              "sim/machine/reference/memory_home.py has the same calls.")
        .def(py::init<const ServiceMachine&, std::size_t>(), py::arg("machine"), py::arg("node"))
        .def(
            "use",
            [](HomeOfMachine& self, const MemoryTuple& lines, double units, bool near) {
                self.home.use(memory_use(lines), units, near);
            },
            py::arg("lines"), py::arg("units"), py::arg("near"))
        .def(
            "wait_for_link",
            [](HomeOfMachine& self, double lines, double wait_ps) {
                self.home.wait_for_link(lines, wait_ps);
            },
            py::arg("lines"), py::arg("wait_ps"))
        .def("settle_directory", [](HomeOfMachine& self) { return self.home.settle_directory(); })
        .def("settle_waits",
             [](HomeOfMachine& self) { return self.home.settle_waits(self.machine); })
        .def_property_readonly(
            "controller_wait_ps",
            [](const HomeOfMachine& self) { return self.home.controller_wait_ps(); })
        .def_property_readonly("entry_wait_ps",
                               [](const HomeOfMachine& self) { return self.home.entry_wait_ps(); })
        .def_property_readonly("room", [](const HomeOfMachine& self) { return self.home.room(); })
        .def_property_readonly("updating",
                               [](const HomeOfMachine& self) { return self.home.updating(); });
    py::class_<SharedService>(
        module, "SharedService",
        "Long pieces of work that share a machine max-min fair; times in ps.\n\n"
        "demand: the fields of PieceDemand in sim/machine/reference/service_machine.py; "
        "shared_service.py there has the same calls.")
        .def(py::init<ServiceMachine>(), py::arg("machine"))
        .def("demand", &demand_of, py::arg("demand"))
        .def("start", &SharedService::start, py::arg("now"), py::arg("core"), py::arg("demand"),
             py::arg("units"), py::arg("job"))
        .def("move", &SharedService::move, py::arg("now"), py::arg("name"), py::arg("core"))
        .def("cancel", &SharedService::cancel, py::arg("now"), py::arg("name"))
        .def("next_change", &SharedService::next_change)
        .def(
            "finish",
            [](SharedService& self, Time now) -> std::optional<std::uint64_t> {
                std::uint64_t job = 0;
                if (!self.finish(now, job)) return std::nullopt;
                return job;
            },
            py::arg("now"))
        .def("rate", &SharedService::rate, py::arg("name"))
        .def("remaining", &SharedService::remaining, py::arg("name"))
        .def("wait_ps", &SharedService::wait_ps, py::arg("node"))
        .def("entry_wait_ps", &SharedService::entry_wait_ps, py::arg("node"))
        .def("count", &SharedService::count, py::arg("now"))
        .def("lines_read", &SharedService::lines_read, py::arg("node"))
        .def("lines_written", &SharedService::lines_written, py::arg("node"))
        .def("lines", &SharedService::lines, py::arg("node"), py::arg("home"))
        .def("controller_ps", &SharedService::controller_ps, py::arg("node"))
        .def("link_ps", &SharedService::link_ps, py::arg("link"))
        .def("core_busy", &SharedService::core_busy, py::arg("core"));
    module.def("play_closed_tasks", &play_closed, py::arg("machine"), py::arg("demands"),
               py::arg("by_node"), py::arg("until_ps"),
               "How many tasks end before until_ps, where each core does one after the other.\n\n"
               "by_node: units and the demand's position of those that its cores do, "
               "in turn, again and again. Releases the GIL.");
}

const Registration registration("shared_service", register_shared_service);

}  // namespace

}  // namespace numatwin
