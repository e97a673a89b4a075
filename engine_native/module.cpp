// The Python module of the engine: its table of contents.
#include "register.hpp"

PYBIND11_MODULE(_engine, module) {
    module.doc() = "ERIS and RSI on this host: real threads, real memory, real time.";
    numatwin::native::register_engine(module);
    numatwin::native::register_host(module);
    numatwin::native::register_measure(module);
    numatwin::native::register_rsi(module);
}
