// Python's view of the stateless solver: solve_max_min.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include "max_min.hpp"
#include "register.hpp"

namespace py = pybind11;

namespace numatwin {
namespace {

// Arrays of these very types are read in place; others are converted where that loses nothing.
using Doubles = py::array_t<double, py::array::c_style>;
using Indices = py::array_t<std::int64_t, py::array::c_style>;

template <typename T>
std::span<const T> view(const py::array_t<T, py::array::c_style>& array, const char* name) {
    if (array.ndim() != 1) {
        throw std::invalid_argument(std::string(name) + ": expected one dimension, got " +
                                    std::to_string(array.ndim()));
    }
    return {array.data(), static_cast<std::size_t>(array.size())};
}

template <typename T>
std::span<T> written(py::array_t<T, py::array::c_style>& array) {
    return {array.mutable_data(), static_cast<std::size_t>(array.size())};
}

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
