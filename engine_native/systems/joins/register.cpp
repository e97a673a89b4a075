// Distributed operators on this host: what a run is made with, and its figures.
#include "kernel/register.hpp"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include "fabric/fabric_binding.hpp"
#include "kernel/struct_binding.hpp"
#include "systems/joins/join_board.hpp"

namespace py = pybind11;
using namespace py::literals;

namespace numatwin::native {
namespace {

// Plain lists: the engine's processes have no NumPy.
py::list rounds(const JoinSetup& setup, const JoinBoard& board) {
    py::list found;
    for (std::uint32_t round = 0; round < setup.rounds; ++round) {
        py::list nodes;
        for (std::uint32_t node = 0; node < setup.nodes; ++node) {
            const auto& figures = board.figures(round, node);
            nodes.append(py::dict("began_ns"_a = figures.began_ns, "ended_ns"_a = figures.ended_ns,
                                  "phase_ns"_a = figures.phase_ns, "cpu_ns"_a = figures.cpu_ns,
                                  "tuples"_a = figures.found.tuples,
                                  "checksum"_a = figures.found.checksum, "rows"_a = figures.rows,
                                  "sent_bytes"_a = figures.sent_bytes));
        }
        found.append(nodes);
    }
    return found;
}

py::array_t<std::uint64_t> rows(const JoinBoard& board) {
    using R = ResultRow;
    return array_of<std::uint64_t>(board.rows(), &R::key, &R::first, &R::second);
}

template <class Word>
py::tuple tables(const JoinSetup& setup, std::uint32_t node) {
    using T = Tuple<Word>;
    const auto drawn = draw_tables<Word>(setup, node);
    return py::make_tuple(array_of<std::uint64_t>(drawn.inner, &T::key, &T::payload),
                          array_of<std::uint64_t>(drawn.outer, &T::key, &T::payload));
}

void register_joins(py::module_& module) {
    using S = JoinSetup;
    auto run =
        def_struct<S>(module, "JoinRun", "What a run of a distributed operator is made with.");
    def_fabric_options<S>(run);
    run.def("check", &S::check, "Raises ValueError where a field is not as it must be.")
        .def_property_readonly("board_bytes",
                               [](const S& setup) { return JoinBoard::bytes(setup); });
    py::class_<JoinBoard>(module, "JoinBoard", "What the nodes of a run share.")
        .def(py::init<const S&, int>(), "run"_a, "descriptor"_a)
        .def("rows", &rows,
             R"((rows, 3): key and both payloads of a join; key, tuples and sum of a group. In no
order.)");
    module.def(
        "join_tables",
        [](const S& run, std::uint32_t node) {
            run.check();
            return run.tuple_bytes == 8 ? tables<std::uint32_t>(run, node)
                                        : tables<std::uint64_t>(run, node);
        },
        "run"_a, "node"_a, "A node's inner and outer table, (tuples, 2) each: keys and payloads.");
    module.def(
        "join_by_threads",
        [](const S& run) {
            run.check();
            JoinBoard board(run);
            {
                const py::gil_scoped_release released;
                run_as_threads(run, board);
            }
            return py::make_tuple(rounds(run, board), rows(board));
        },
        "run"_a,
        R"(All nodes as threads of this process. By round and node its figures; the rows that were
kept. Raises RuntimeError, also where a tuple was lost or taken twice.)");
    module.def(
        "join_by_processes",
        [](const S& run, int descriptor) {
            run.check();
            JoinBoard board(run, descriptor);
            run_as_processes(run, board);
            return rounds(run, board);
        },
        "run"_a, "descriptor"_a,
        "Forks: see systems/joins/cluster.py. By round and node its figures.");
}

const Registration registration("joins", register_joins);

}  // namespace

}  // namespace numatwin::native
