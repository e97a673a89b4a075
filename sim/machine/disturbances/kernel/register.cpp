// Python's view of disturbances.
#include "kernel/register.hpp"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "machine/disturbances/kernel/disturbances.hpp"

namespace py = pybind11;

namespace numatwin {
namespace {

void register_disturbances(py::module_& module) {
    py::class_<Disturbances>(module, "Disturbances",
                             R"(What others do to cores, none by default: see Interruptions in
machine/disturbances/facts.py. keys: a Philox key for each core. Raises ValueError where
every_ps is not above 0, a length_ps is below 0, or share does not end at 1.)")
        .def(py::init([](double every_ps, std::vector<double> length_ps, std::vector<double> share,
                         const StreamKeys& keys) {
                 if (keys.empty()) return Disturbances();
                 return Disturbances({every_ps, std::move(length_ps), std::move(share)},
                                     streams_of(keys));
             }),
             py::arg("every_ps") = 0.0, py::arg("length_ps") = std::vector<double>(),
             py::arg("share") = std::vector<double>(), py::arg("keys") = StreamKeys());
}

const Registration registration("disturbances", register_disturbances);

}  // namespace

}  // namespace numatwin
