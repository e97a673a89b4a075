// Python's view of the stateless solver: solve_max_min.
#include <pybind11/pybind11.h>

#include "kernel/arrays.hpp"
#include "kernel/max_min.hpp"
#include "kernel/register.hpp"

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

void register_max_min(py::module_& module) {
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
}

const Registration registration("max_min", register_max_min);

}  // namespace

}  // namespace numatwin
