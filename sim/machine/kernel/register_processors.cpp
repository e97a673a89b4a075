// Python's view of the processors that processes share: SharedProcessors, for tests against the
// reference.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "kernel/register.hpp"
#include "kernel/running.hpp"
#include "kernel/struct_binding.hpp"
#include "machine/kernel/processors.hpp"

namespace py = pybind11;

namespace numatwin {
namespace {

// Processes that are given work and moved from outside; what ends is written down.
class SharedProcessors {
  public:
    SharedProcessors(const ProcessorSetup& setup, std::size_t processes)
        : processes_(processes), processors_(setup, processes, {run_over, tick, wake_over}) {
        if (processors_.count() == 0)
            throw std::invalid_argument("count: expected at least one processor");
    }

    void handle(const Event& event) {
        if (event.kind == done)
            ended.emplace_back(clock.now(), event.subject);
        else
            processors_.handle(clock, event);
    }
    void submit(std::uint32_t process, Time ps, std::uint32_t job, std::uint32_t sender) {
        require(process);
        if (sender != Processors::none) require(sender);
        processors_.submit(clock, process, ps, done, job, sender);
    }
    void move(std::uint32_t process, std::uint32_t to) {
        require(process);
        processors_.move(clock, process, to);
    }
    std::vector<double> busy_ps() const { return doubles(processors_.busy_ps(clock.now())); }
    std::vector<double> processors_busy_ps() const {
        return doubles(processors_.processors_busy_ps(clock.now()));
    }

    Simulation clock;
    std::vector<std::tuple<Time, std::uint32_t>> ended;

  private:
    enum Kind : std::uint32_t { run_over, tick, wake_over, done };

    void require(std::uint32_t process) const {
        if (process >= processes_)
            throw std::invalid_argument("process: expected one of those made");
    }
    static std::vector<double> doubles(const std::vector<Wide>& values) {
        std::vector<double> found;
        for (const Wide value : values) found.push_back(static_cast<double>(value));
        return found;
    }

    std::size_t processes_;
    Processors processors_;
};

void register_processors(py::module_& module) {
    using Model = Runnable<SharedProcessors>;
    auto setup = def_struct<ProcessorSetup>(module, "ProcessorSetup",
                                            "Processors of one host that processes share by "
                                            "Linux's rules (EEVDF), and what that costs them, in "
                                            "their own time: sim/machine/reference/processors.py.");
    def_value(setup);
    py::class_<Model> model(
        module, "SharedProcessors",
        R"(Processors that processes share (EEVDF), given work and moved from outside.

See sim/machine/reference/processors.py.)");
    model
        .def(py::init([](const ProcessorSetup& setup, std::size_t processes) {
                 return std::make_unique<Model>(setup, processes);
             }),
             py::arg("setup"), py::arg("processes"))
        .def(
            "submit",
            [](Model& self, std::uint32_t process, Time ps, std::uint32_t job,
               std::int64_t sender) {
                self->submit(process, ps, job,
                             sender < 0 ? Processors::none : static_cast<std::uint32_t>(sender));
            },
            py::arg("process"), py::arg("ps"), py::arg("job"), py::arg("sender") = -1)
        .def(
            "move",
            [](Model& self, std::uint32_t process, std::uint32_t to) { self->move(process, to); },
            py::arg("process"), py::arg("to"))
        .def_property_readonly("ended", [](Model& self) { return self->ended; })
        .def("busy_ps", [](Model& self) { return self->busy_ps(); })
        .def("processors_busy_ps", [](Model& self) { return self->processors_busy_ps(); });
    def_running<SharedProcessors>(model);
}

const Registration registration("processors", register_processors);

}  // namespace

}  // namespace numatwin
