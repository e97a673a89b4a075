// The compiled kernel: what the register files of all folders add to it.
#include <pybind11/pybind11.h>

#include "kernel/register.hpp"

PYBIND11_MODULE(_kernel, module) {
    module.doc() =
        "numatwin's compiled kernel (C++20): max-min fair shares, random streams, event models.";
    numatwin::Registration::run(module);
}
