// Python's view of water-filling.
#include <pybind11/pybind11.h>

#include "kernel/arrays.hpp"
#include "kernel/register.hpp"
#include "kernel/water_filling.hpp"

namespace py = pybind11;

namespace numatwin {
namespace {

Doubles shares_of(const Doubles& height, const Doubles& cost) {
    Doubles share(height.size());
    water_filling(view(height, "height"), view(cost, "cost"), written(share));
    return share;
}

void register_water_filling(py::module_& module) {
    module.def("water_filling", &shares_of, py::arg("height"), py::arg("cost"),
               R"(Shares of 1 that raise columns to one level: share[N].

Column k stands at height[k], and rises by cost[k] for each unit that it gets. The lowest ones are
filled up to a common level; columns above it get nothing. The sum is 1 but for rounding.

Raises ValueError for no column, for arrays of different lengths, for a cost that is not above 0
and for a height that is no number.)");
}

const Registration registration("water_filling", register_water_filling);

}  // namespace

}  // namespace numatwin
