// Python's view of the traffic of links.
#include <pybind11/pybind11.h>

#include <algorithm>

#include "kernel/arrays.hpp"
#include "kernel/link_rows.hpp"
#include "kernel/register.hpp"

namespace py = pybind11;

namespace numatwin {
namespace {

Doubles link_rows_of(const Indices& link, const Indices& from, const Indices& to, std::size_t nodes,
                     std::size_t links, const Doubles& factor, const Doubles& value) {
    Doubles total(static_cast<py::ssize_t>(nodes * links));
    const std::span<double> sums = written(total);
    std::fill(sums.begin(), sums.end(), 0.0);
    const LinkUses uses{view(link, "link"), view(from, "start"), view(to, "end")};
    link_rows(uses, nodes, links, view(factor, "factor"), view(value, "value"), sums);
    return total;
}

void register_link_rows(py::module_& module) {
    module.def("link_rows", &link_rows_of, py::arg("link"), py::arg("start"), py::arg("end"),
               py::arg("nodes"), py::arg("links"), py::arg("factor"), py::arg("value"),
               R"(What each link carries for each of n rows: total[links * n].

In row r, factor[i * n + r] * value[j * n + r] goes from node i to node j. Use k says that the
route from start[k] to end[k] takes link[k]; products are added up in the order of the uses.

Raises ValueError for arrays that do not fit together, and for indices out of range.)");
}

const Registration registration("link_rows", register_link_rows);

}  // namespace

}  // namespace numatwin
