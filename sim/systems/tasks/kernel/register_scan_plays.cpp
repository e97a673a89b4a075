// Python's view of single scans: ScanPlays.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "kernel/register.hpp"
#include "systems/tasks/kernel/scan_plays.hpp"

namespace py = pybind11;

namespace numatwin {
namespace {

using Column = py::array_t<std::int64_t, py::array::c_style | py::array::forcecast>;
using Amounts = py::array_t<double, py::array::c_style | py::array::forcecast>;

py::array_t<double> play_all(const ScanPlays& plays, const Column& state, const Column& stage,
                             const Column& home, const Amounts& entries, std::int64_t path) {
    const py::ssize_t count = state.size();
    if (stage.size() != count || home.size() != count || entries.size() != count)
        throw std::invalid_argument("play: expected columns of one length");
    py::array_t<double> found(count);
    double* const to = found.mutable_data();
    const auto *states = state.data(), *stages = stage.data(), *homes = home.data();
    const double* const amounts = entries.data();
    py::gil_scoped_release released;
    for (py::ssize_t k = 0; k < count; ++k)
        to[k] = static_cast<double>(
            plays.play(static_cast<std::uint32_t>(states[k]), static_cast<std::size_t>(stages[k]),
                       static_cast<std::size_t>(homes[k]), amounts[k], path));
    return found;
}

void register_scan_plays(py::module_& module) {
    py::class_<ScanPlays>(module, "ScanPlays", "Single scans beside settled background work.")
        .def(py::init<const TaskSetup&>(), py::arg("setup"),
             "The stages are what scans may be; the first worker scans.")
        .def("state", &ScanPlays::state, py::arg("pieces"),
             "The number of a state in which these pieces of the background go on.")
        .def("rates", &ScanPlays::rates, py::arg("state"), "Units per ps of each of its pieces.")
        .def("play", &play_all, py::arg("state"), py::arg("stage"), py::arg("home"),
             py::arg("entries"), py::arg("path"), "How long each scan takes, in ps.");
}

const Registration registration("scan plays", register_scan_plays);

}  // namespace
}  // namespace numatwin
