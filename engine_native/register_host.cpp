// What the module was built with.
#include "register.hpp"

namespace numatwin::native {

void register_host(pybind11::module_& module) {
#ifdef NUMATWIN_UCX
    module.attr("HAS_UCX") = true;
#else
    module.attr("HAS_UCX") = false;
#endif
}

}  // namespace numatwin::native
