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

}  // namespace

void register_max_min(py::module_& module) {
    module.def("solve_max_min", &solve_max_min, py::arg("capacity"), py::arg("row_ptr"),
               py::arg("resource"), py::arg("coefficient"), py::arg("cap"), py::arg("weight"),
               "Share resources among flows, max-min fair: (rate[F], binding[F], use[R]).");
}

}  // namespace numatwin
