// Python's view of distributions: Durations, Spread, TurnSetup, KeyDraws.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "kernel/arrays.hpp"
#include "kernel/durations.hpp"
#include "kernel/key_draws.hpp"
#include "kernel/register.hpp"
#include "kernel/spread.hpp"
#include "machine/disturbances/kernel/turns.hpp"

namespace py = pybind11;

namespace numatwin {
namespace {

Durations empirical(const Indices& times_ps, const Doubles& weight) {
    const auto times = view(times_ps, "times_ps");
    const Column column(weight, times.size(), "weight");
    std::vector<double> weights(times.size());
    for (std::size_t k = 0; k < weights.size(); ++k) weights[k] = column[k];
    return Durations::empirical(times, weights);
}

Indices draw_keys(const KeyDraws& draws, const Doubles& uniforms) {
    const auto uniform = view(uniforms, "uniforms");
    Indices keys(uniforms.size());
    const auto key = written(keys);
    for (std::size_t k = 0; k < key.size(); ++k) {
        if (!(uniform[k] >= 0 && uniform[k] < 1))
            throw std::invalid_argument("uniforms: expected numbers in [0, 1)");
        key[k] = draws.draw(uniform[k]);
    }
    return keys;
}

}  // namespace

void register_draws(py::module_& module) {
    py::class_<Durations>(module, "Durations", "A distribution of times in picoseconds.")
        .def_static("deterministic", &Durations::deterministic, py::arg("time_ps"))
        .def_static("exponential", &Durations::exponential, py::arg("mean_ps"))
        .def_static("uniform", &Durations::uniform, py::arg("low_ps"), py::arg("high_ps"))
        .def_static("empirical", &empirical, py::arg("times_ps"),
                    py::arg("weight") = py::float_(1.0))
        .def_property_readonly("mean_ps", &Durations::mean_ps)
        .def("draw", &Durations::draw, py::arg("stream"));
    py::class_<Spread>(module, "Spread", "How a step's time varies around its mean.")
        .def(py::init<std::vector<double>, std::vector<double>>(), py::arg("share"),
             py::arg("factor"))
        .def("draw", &Spread::draw, py::arg("mean_ps"), py::arg("stream"));
    py::class_<TurnSetup>(module, "TurnSetup", "When others have a processor.")
        .def(py::init<double, std::vector<double>, std::vector<double>>(), py::arg("every_ps"),
             py::arg("length_ps"), py::arg("share"))
        .def_readonly("every_ps", &TurnSetup::every_ps)
        .def_readonly("length_ps", &TurnSetup::length_ps)
        .def_readonly("share", &TurnSetup::share);
    py::class_<KeyDraws>(module, "KeyDraws", "A distribution of keys.")
        .def_static(
            "piecewise",
            [](const Indices& breaks, const Doubles& mass) {
                return KeyDraws(PiecewiseKeys(view(breaks, "breaks"), view(mass, "mass")));
            },
            py::arg("breaks"), py::arg("mass"))
        .def_static(
            "zipf",
            [](std::int64_t keys, double exponent, bool scattered) {
                return KeyDraws(ZipfKeys(keys, exponent, scattered));
            },
            py::arg("keys"), py::arg("exponent"), py::kw_only(), py::arg("scattered") = true)
        .def_property_readonly("keys", &KeyDraws::keys)
        .def(
            "draw",
            [](const KeyDraws& self, Stream& stream) { return self.draw(stream.uniform()); },
            py::arg("stream"))
        .def("at", &draw_keys, py::arg("uniforms"));
}

}  // namespace numatwin
