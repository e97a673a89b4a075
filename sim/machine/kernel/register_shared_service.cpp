// Python's view of SharedService, and a closed loop of tasks that measures it.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "kernel/register.hpp"
#include "kernel/simulation.hpp"
#include "machine/kernel/shared_service.hpp"

namespace py = pybind11;

namespace numatwin {
namespace {

// The named tuples of machine/reference/shared_service.py, field by field.
using MachineTuple =
    std::tuple<Numbers, Numbers, Numbers, std::pair<Numbers, Numbers>, Positions, Positions,
               Positions, Positions, std::tuple<Positions, Positions, std::int64_t>>;
using MemoryTuple = std::tuple<std::uint32_t, double, double>;
using PieceTuple = std::tuple<double, double, double, double, std::vector<MemoryTuple>>;

ServiceMachine machine_of(const MachineTuple& of) {
    const auto& [read, write, latency, curve, core_node, core_threads, data, request, routes] = of;
    const auto& [entering, predecessor, vertices] = routes;
    return {read,      write,        latency, {curve.first, curve.second},
            core_node, core_threads, data,    request,
            entering,  predecessor,  vertices};
}

// A piece with its own copy of what it says of memory.
struct OwnPiece {
    explicit OwnPiece(const PieceTuple& of) {
        const auto& [units, instructions_ps, separate_ps, slots, lines] = of;
        for (const auto& [home, read, written] : lines) memory.push_back({home, read, written});
        piece = {units, instructions_ps, separate_ps, slots, memory};
    }
    OwnPiece(const OwnPiece&) = delete;
    OwnPiece& operator=(const OwnPiece&) = delete;

    std::vector<PieceMemory> memory;
    Piece piece;
};

// Every core does one piece after the other; which ones come in turn.
class ClosedPieces {
  public:
    ClosedPieces(ServiceMachine machine, const std::vector<PieceTuple>& pieces)
        : cores_(machine.core_node.size()), service_(std::move(machine)) {
        for (const PieceTuple& piece : pieces) piece_.push_back(std::make_unique<OwnPiece>(piece));
        if (piece_.empty()) throw std::invalid_argument("pieces: expected at least one");
        for (std::size_t core = 0; core < cores_; ++core) next(core);
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
    void next(std::size_t core) {
        service_.start(clock.now(), core, piece_[begun_++ % piece_.size()]->piece, core);
    }
    // An event that comes too early only looks when the next one is due.
    void plan() {
        const Time at = service_.next_change();
        if (at >= planned_) return;
        planned_ = at;
        clock.schedule(at, 0);
    }

    std::size_t cores_;
    SharedService service_;
    std::vector<std::unique_ptr<OwnPiece>> piece_;
    std::size_t begun_ = 0;
    Time planned_ = never;
};

std::uint64_t play_closed(const MachineTuple& machine, const std::vector<PieceTuple>& pieces,
                          Time until) {
    ClosedPieces model(machine_of(machine), pieces);
    const py::gil_scoped_release released;
    model.clock.run(model, until);
    return model.done;
}

void register_shared_service(py::module_& module) {
    py::class_<SharedService>(
        module, "SharedService",
        "Long pieces of work that share a machine max-min fair; times in ps.\n\n"
        "machine, piece: the fields of ServiceMachine and Piece in "
        "sim/machine/reference/shared_service.py, which has the same calls.")
        .def(py::init([](const MachineTuple& machine) {
                 return std::make_unique<SharedService>(machine_of(machine));
             }),
             py::arg("machine"))
        .def(
            "start",
            [](SharedService& self, Time now, std::size_t core, const PieceTuple& piece,
               std::uint64_t job) { return self.start(now, core, OwnPiece(piece).piece, job); },
            py::arg("now"), py::arg("core"), py::arg("piece"), py::arg("job"))
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
        .def("count", &SharedService::count, py::arg("now"))
        .def("lines_read", &SharedService::lines_read, py::arg("node"))
        .def("lines_written", &SharedService::lines_written, py::arg("node"))
        .def("controller_ps", &SharedService::controller_ps, py::arg("node"))
        .def("link_ps", &SharedService::link_ps, py::arg("link"))
        .def("core_busy", &SharedService::core_busy, py::arg("core"));
    module.def("play_closed_pieces", &play_closed, py::arg("machine"), py::arg("pieces"),
               py::arg("until_ps"),
               "How many pieces end before until_ps, where each core does one after the other.\n\n"
               "They come in turn, again and again. Releases the GIL.");
}

const Registration registration("shared_service", register_shared_service);

}  // namespace

}  // namespace numatwin
