// What Python sees of a compiled module: each source file registers its own part.
//
//     const Registration registration("noun", register_noun);  // at the end of register_noun.cpp
//
// adds a part to the module that this file is linked into; no list names it.
#pragma once

#include <pybind11/pybind11.h>

#include <map>
#include <string>

namespace numatwin {

// Built while the module is loaded, before its PYBIND11_MODULE runs.
class Registration {
  public:
    using Function = void (*)(pybind11::module_&);

    Registration(const char* name, Function function) { all().emplace(name, function); }

    // By name, so that the order does not depend on the linker's.
    static void run(pybind11::module_& module) {
        for (const auto& [name, function] : all()) function(module);
    }

  private:
    static std::multimap<std::string, Function>& all() {
        static std::multimap<std::string, Function> found;
        return found;
    }
};

}  // namespace numatwin
