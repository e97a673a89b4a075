// Python's view of random streams: Stream.
#include <pybind11/pybind11.h>

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

std::uint64_t below(Stream& stream, std::uint64_t n) {
    if (n == 0) throw std::invalid_argument("n: expected at least 1, got 0");
    return stream.below(n);
}

}  // namespace

void register_stream(py::module_& module) {
    py::class_<Stream>(module, "Stream", "A Philox4x64 stream, the same numbers as NumPy's.")
        .def(py::init<std::uint64_t, std::uint64_t>(), py::arg("key0"), py::arg("key1"))
        .def("bits", &Stream::bits)
        .def("uniform", &Stream::uniform)
        .def("uniforms", &uniforms, py::arg("count"))
        .def("below", &below, py::arg("n"))
        .def("exponential", &Stream::exponential, py::arg("mean") = 1.0);
}

}  // namespace numatwin
