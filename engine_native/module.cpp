// The compiled engine: what the register files of all folders add to it.
#include <pybind11/pybind11.h>

#include "kernel/register.hpp"

PYBIND11_MODULE(_engine, module) {
    module.doc() = "Engines on this host: real threads, real memory, real time.";
    numatwin::Registration::run(module);
}
