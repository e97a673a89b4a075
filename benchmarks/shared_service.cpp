// A closed loop of tasks on a SharedService, compiled: what shared_service.py measures.
#include "machine/kernel/shared_service.hpp"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "kernel/simulation.hpp"

namespace py = pybind11;

namespace numatwin {
namespace {

// Instructions and separate ones, in ps, and memory, as in machine/reference/service_machine.py.
using MemoryTuple = std::tuple<std::uint32_t, double, double, double>;
using DemandTuple = std::tuple<double, double, std::vector<MemoryTuple>>;

std::uint32_t demand_of(SharedService& service, const DemandTuple& fields) {
    const auto& [instructions_ps, separate_ps, uses] = fields;
    std::vector<MemoryUse> memory;
    for (const auto& [home, read, written, slots] : uses)
        memory.push_back({home, read, written, slots});
    return service.demand({instructions_ps, separate_ps, memory, {}});
}

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

// How many tasks end before `until`, where each core does one after the other: units and the
// demand's position of those that a node's cores do, in turn, again and again.
std::uint64_t play_closed(const ServiceMachine& machine, const std::vector<DemandTuple>& demands,
                          const std::vector<std::vector<std::pair<double, std::uint32_t>>>& tasks,
                          Time until) {
    ClosedTasks model(machine, demands, tasks);
    const py::gil_scoped_release released;
    model.clock.run(model, until);
    return model.done;
}

}  // namespace
}  // namespace numatwin

PYBIND11_MODULE(shared_service_loop, module) {
    module.def("play_closed_tasks", &numatwin::play_closed);
}
