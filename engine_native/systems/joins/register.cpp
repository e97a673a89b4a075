// Distributed operators on this host: what a run is made with, and its figures.
#include "kernel/register.hpp"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include "fabric/fabric_binding.hpp"
#include "kernel/struct_binding.hpp"
#include "systems/joins/join_board.hpp"

namespace py = pybind11;

namespace numatwin::native {
namespace {

// Plain lists: the engine's processes have no NumPy.
py::list rounds(const JoinSetup& setup, const JoinBoard& board) {
    py::list found;
    for (std::uint32_t round = 0; round < setup.rounds; ++round) {
        py::list nodes;
        for (std::uint32_t node = 0; node < setup.nodes; ++node) {
            const auto& figures = board.figures(round, node);
            py::dict row;
            row["began_ns"] = figures.began_ns;
            row["ended_ns"] = figures.ended_ns;
            row["phase_ns"] =
                std::vector<std::int64_t>(figures.phase_ns.begin(), figures.phase_ns.end());
            row["cpu_ns"] = std::vector<std::int64_t>(figures.cpu_ns.begin(), figures.cpu_ns.end());
            row["tuples"] = figures.found.tuples;
            row["checksum"] = figures.found.checksum;
            row["rows"] = figures.rows;
            row["sent_bytes"] = figures.sent_bytes;
            nodes.append(row);
        }
        found.append(nodes);
    }
    return found;
}

py::array_t<std::uint64_t> rows(const JoinBoard& board) {
    const auto all = board.rows();
    py::array_t<std::uint64_t> made({static_cast<py::ssize_t>(all.size()), py::ssize_t{3}});
    auto cell = made.mutable_unchecked<2>();
    for (std::size_t k = 0; k < all.size(); ++k) {
        const auto row = static_cast<py::ssize_t>(k);
        cell(row, 0) = all[k].key;
        cell(row, 1) = all[k].first;
        cell(row, 2) = all[k].second;
    }
    return made;
}

template <class Word>
py::array_t<std::uint64_t> array_of(const std::vector<Tuple<Word>>& tuples) {
    py::array_t<std::uint64_t> made({static_cast<py::ssize_t>(tuples.size()), py::ssize_t{2}});
    auto cell = made.mutable_unchecked<2>();
    for (std::size_t k = 0; k < tuples.size(); ++k) {
        cell(static_cast<py::ssize_t>(k), 0) = tuples[k].key;
        cell(static_cast<py::ssize_t>(k), 1) = tuples[k].payload;
    }
    return made;
}

template <class Word>
py::tuple tables(const JoinSetup& setup, std::uint32_t node) {
    const auto drawn = draw_tables<Word>(setup, node);
    return py::make_tuple(array_of(drawn.inner), array_of(drawn.outer));
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
        .def(py::init<const S&, int>(), py::arg("run"), py::arg("descriptor"))
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
        py::arg("run"), py::arg("node"),
        "A node's inner and outer table, (tuples, 2) each: keys and payloads.");
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
        py::arg("run"),
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
        py::arg("run"), py::arg("descriptor"),
        "Forks: see systems/joins/cluster.py. By round and node its figures.");
}

const Registration registration("joins", register_joins);

}  // namespace

}  // namespace numatwin::native
