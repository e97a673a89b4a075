// Python's view of random streams: Stream.
#include <pybind11/pybind11.h>

#include <string>

#include "kernel/arrays.hpp"
#include "kernel/philox.hpp"
#include "kernel/register.hpp"

namespace py = pybind11;

namespace numatwin {
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

const Registration registration("stream", register_stream);

}  // namespace

}  // namespace numatwin
