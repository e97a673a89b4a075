// Python's view of running models: failures (ModelError), the rows of traces.
#include <pybind11/pybind11.h>

#include "kernel/register.hpp"
#include "kernel/running.hpp"

namespace py = pybind11;

namespace numatwin {
namespace {

void register_running(py::module_& module) {
    PYBIND11_NUMPY_DTYPE(TraceRow, time_ps, event, subject, data);
    py::register_exception<ModelError>(module, "ModelError", PyExc_RuntimeError);
}

const Registration registration("running", register_running);

}  // namespace

}  // namespace numatwin
