// Python's view of functions of arrays: max-min and water-filling solvers, traffic of links, means
// of a binomially distributed number.
#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernel/arrays.hpp"
#include "kernel/binomial.hpp"
#include "kernel/link_rows.hpp"
#include "kernel/max_min.hpp"
#include "kernel/register.hpp"
#include "kernel/water_filling.hpp"

namespace py = pybind11;

namespace numatwin {
namespace {

py::tuple solve_max_min(const Doubles& capacity, const Indices& row_ptr, const Indices& resource,
                        const Doubles& coefficient, const Doubles& cap, const Doubles& weight) {
    const MaxMinProblem problem{view(capacity, "capacity"), view(row_ptr, "row_ptr"),
                                view(resource, "resource"), view(coefficient, "coefficient"),
                                view(cap, "cap"),           view(weight, "weight")};
    Doubles rate(cap.size());
    Indices binding(cap.size());
    Doubles use(capacity.size());
    const MaxMinShares shares{written(rate), written(binding), written(use)};
    {
        const py::gil_scoped_release released;
        thread_local MaxMinSolver solver;
        problem.validate();
        solver.solve(problem, shares);
    }
    return py::make_tuple(rate, binding, use);
}

Doubles shares_of(const Doubles& height, const Doubles& cost) {
    Doubles share(height.size());
    water_filling(view(height, "height"), view(cost, "cost"), written(share));
    return share;
}

Doubles link_rows_of(const Indices& link, const Indices& from, const Indices& to, std::size_t nodes,
                     std::size_t links, const Doubles& factor, const Doubles& value) {
    Doubles total(static_cast<py::ssize_t>(nodes * links));
    const std::span<double> sums = written(total);
    std::fill(sums.begin(), sums.end(), 0.0);
    const LinkUses uses{view(link, "link"), view(from, "start"), view(to, "end")};
    link_rows(uses, nodes, links, view(factor, "factor"), view(value, "value"), sums);
    return total;
}

py::tuple parts_of(std::int64_t trials, std::int64_t size, const Doubles& chances) {
    const BinomialParts means(trials, size);
    const auto given = view(chances, "chances");
    Doubles parts(chances.size()), squares(chances.size()), begun(chances.size());
    for (std::size_t k = 0; k < given.size(); ++k) {
        const auto found = means(given[k]);
        written(parts)[k] = found.parts;
        written(squares)[k] = found.squares;
        written(begun)[k] = found.begun;
    }
    return py::make_tuple(parts, squares, begun);
}

void register_functions(py::module_& module) {
    module.def("solve_max_min", &solve_max_min, py::arg("capacity"), py::arg("row_ptr"),
               py::arg("resource"), py::arg("coefficient"), py::arg("cap"), py::arg("weight"),
               "Share resources among flows, max-min fair: (rate[F], binding[F], use[R]).",
               R"(Share resources among flows, max-min fair: (rate[F], binding[F], use[R]).

Flow f uses coefficient[k] * rate[f] of resource[k], for k in row_ptr[f]:row_ptr[f + 1]; a
resource that appears twice adds up. All rate / weight rise together; a flow stops when one of
its resources is full (binding: that resource's index) or at its cap (binding: -1). Ties go to
caps first, then to the lowest index.

Shapes: capacity [R], row_ptr [F + 1], resource and coefficient [NNZ], cap and weight [F].
Units are the caller's: cap and rate share one, capacity is coefficient * rate. A capacity may
be 0 (then its users rest) or infinite; a cap may be 0 or infinite; a weight is above 0.
The result is exact but for rounding: no resource is overused by more than 1e-12 of itself.
Releases the GIL; float64 and int64 arrays are read without a copy.

Raises ValueError, naming the first wrong value, for shapes and values out of range and for a
flow with neither a finite cap nor a resource of finite capacity.)");
    module.def("water_filling", &shares_of, py::arg("height"), py::arg("cost"),
               R"(Shares of 1 that raise columns to one level: share[N].

Column k stands at height[k], and rises by cost[k] for each unit that it gets. The lowest ones are
filled up to a common level; columns above it get nothing. The sum is 1 but for rounding.

Raises ValueError for no column, for arrays of different lengths, for a cost that is not above 0
and for a height that is no number.)");
    module.def("link_rows", &link_rows_of, py::arg("link"), py::arg("start"), py::arg("end"),
               py::arg("nodes"), py::arg("links"), py::arg("factor"), py::arg("value"),
               R"(What each link carries for each of n rows: total[links * n].

In row r, factor[i * n + r] * value[j * n + r] goes from node i to node j. Use k says that the
route from start[k] to end[k] takes link[k]; products are added up in the order of the uses.

Raises ValueError for arrays that do not fit together, and for indices out of range.)");
    module.def(
        "binomial_parts", &parts_of, py::arg("trials"), py::arg("size"), py::arg("chances"),
        R"(Means of a binomially distributed number in parts: (parts[N], squares[N], begun[N]).

Of the successes in so many trials of each chance, put into parts of the size one after another: how
many parts there are on average, the mean sum of the squares of what they hold, and how likely the
last one is not full.

Raises ValueError for trials or a size below 1, and for a chance that is not 0 to 1.)");
}

const Registration registration("functions", register_functions);

}  // namespace

}  // namespace numatwin
