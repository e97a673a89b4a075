// The compiled kernel: what the register files of all folders add to it, and Python's view of
// running models: failures (ModelError), the rows of traces.
#include <pybind11/pybind11.h>

#include "kernel/register.hpp"
#include "kernel/running.hpp"

PYBIND11_MODULE(_kernel, module) {
    using namespace numatwin;
    module.doc() =
        "numatwin's compiled kernel (C++20): max-min fair shares, random streams, event models.";
    PYBIND11_NUMPY_DTYPE(TraceRow, time_ps, event, subject, data);
    pybind11::register_exception<ModelError>(module, "ModelError", PyExc_RuntimeError);
    Registration::run(module);
}
