// Python's view of failures of models: ModelError.
#include <pybind11/pybind11.h>

#include "register.hpp"
#include "simulation.hpp"

namespace py = pybind11;

namespace numatwin {

void register_running(py::module_& module) {
    py::register_exception<ModelError>(module, "ModelError", PyExc_RuntimeError);
}

}  // namespace numatwin
