// Python's view of random streams: Stream.
#include <pybind11/pybind11.h>

#include "philox.hpp"
#include "register.hpp"

namespace py = pybind11;

namespace numatwin {

void register_stream(py::module_& module) {
    py::class_<Stream>(module, "Stream", "A Philox4x64 stream, the same numbers as NumPy's.")
        .def(py::init<std::uint64_t, std::uint64_t>(), py::arg("key0"), py::arg("key1"))
        .def("bits", &Stream::bits)
        .def("uniform", &Stream::uniform);
}

}  // namespace numatwin
