// Python's view of distributions: Durations, KeyDraws.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>

#include "kernel/arrays.hpp"
#include "kernel/durations.hpp"
#include "kernel/key_draws.hpp"
#include "kernel/philox.hpp"
#include "kernel/register.hpp"

namespace py = pybind11;

namespace numatwin {
namespace {

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

void register_draws(py::module_& module) {
    py::class_<Durations>(module, "Durations",
                          R"(A distribution of times in whole picoseconds, up to 2^55 (ten hours).

Inverse transforms: a draw takes one word of its stream (none if all times are the same), and
a larger word gives no shorter time. Raises ValueError for values out of range.)")
        .def_static("deterministic", &Durations::deterministic, py::arg("time_ps"),
                    "Always the same.")
        .def_static("exponential", &Durations::exponential, py::arg("mean_ps"),
                    "Rounded to the nearest picosecond.")
        .def_static("uniform", &Durations::uniform, py::arg("low_ps"), py::arg("high_ps"),
                    "All from low to high, both included.")
        .def_property_readonly("mean_ps", &Durations::mean_ps, "The mean, exact but for rounding.")
        .def("draw", &Durations::draw, py::arg("stream"),
             "A time in picoseconds, with the next word of the stream.");
    py::class_<KeyDraws>(
        module, "KeyDraws",
        "Keys of a workload, from uniform numbers. Raises ValueError for bad ones.")
        .def_static(
            "piecewise",
            [](const Indices& breaks, const Doubles& mass) {
                return KeyDraws(PiecewiseKeys(view(breaks, "breaks"), view(mass, "mass")));
            },
            py::arg("breaks"), py::arg("mass"),
            R"(Mass[i] lies evenly on the keys breaks[i]:breaks[i + 1]; breaks [M + 1], mass [M].

Equal to PiecewiseKeys.draw of workloads/ for the same uniform.)")
        .def_static(
            "zipf",
            [](std::int64_t keys, double exponent, bool scattered) {
                return KeyDraws(ZipfKeys(keys, exponent, scattered));
            },
            py::arg("keys"), py::arg("exponent"), py::kw_only(), py::arg("scattered") = true,
            R"(As Zipf of workloads/.

Equal to its draws but where the uniform lies within 1e-13, relative, of a step between two
ranks.)")
        .def_property_readonly("keys", &KeyDraws::keys,
                               "Of the domain: keys are from 0 to keys - 1.")
        .def(
            "draw",
            [](const KeyDraws& self, Stream& stream) { return self.draw(stream.uniform()); },
            py::arg("stream"), "A key, with the next word of the stream.")
        .def("at", &draw_keys, py::arg("uniforms"), "The keys of numbers in [0, 1): [N].");
}

const Registration draws_part("draws", register_draws);

}  // namespace

// Python's view of random streams: Stream.

namespace {

Doubles uniforms(Stream& stream, std::size_t count) {
    Doubles values(static_cast<py::ssize_t>(count));
    for (double& value : written(values)) value = stream.uniform();
    return values;
}

void take_back(Stream& stream, std::uint64_t count) {
    if (count > stream.taken())
        throw std::invalid_argument("count: expected at most what was drawn, " +
                                    std::to_string(stream.taken()));
    stream.take_back(count);
}

std::uint64_t below(Stream& stream, std::uint64_t n) {
    if (n == 0) throw std::invalid_argument("n: expected at least 1, got 0");
    return stream.below(n);
}

void register_stream(py::module_& module) {
    py::class_<Stream>(
        module, "Stream",
        R"(A Philox4x64-10 stream, the same numbers as numpy.random.Philox(key=[key0, key1]).

Each draw takes one word. Whoever is handed a stream draws from a copy, from where it stands.)")
        .def(py::init<std::uint64_t, std::uint64_t>(), py::arg("key0"), py::arg("key1"))
        .def("bits", &Stream::bits, "The next 64 bits.")
        .def("uniform", &Stream::uniform,
             "The next number in [0, 1): that of numpy.random.Generator.random().")
        .def("uniforms", &uniforms, py::arg("count"),
             "The next so many numbers in [0, 1): [count].")
        .def("take_back", &take_back, py::arg("count"),
             "Takes back the last words, at most all that were drawn: they come again.")
        .def("below", &below, py::arg("n"),
             "A whole number from 0 to n - 1, all alike to within n * 2^-64.")
        .def("exponential", &Stream::exponential, py::arg("mean") = 1.0,
             "-mean * log(1 - uniform), the same bits on any machine, within 1 ulp.");
}

const Registration stream_part("stream", register_stream);

}  // namespace

}  // namespace numatwin
