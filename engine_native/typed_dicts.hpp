// Dicts that Python knows by the names of their fields: typed.py.
#pragma once

#include <pybind11/pybind11.h>

namespace numatwin::native {

struct HostFactsDict : pybind11::dict {
    using pybind11::dict::dict;
};
struct TotalsDict : pybind11::dict {
    using pybind11::dict::dict;
};
struct ObjectMemoryDict : pybind11::dict {
    using pybind11::dict::dict;
};

}  // namespace numatwin::native

namespace pybind11::detail {

template <>
struct handle_type_name<numatwin::native::HostFactsDict> {
    static constexpr auto name = const_name("HostFacts");
};
template <>
struct handle_type_name<numatwin::native::TotalsDict> {
    static constexpr auto name = const_name("Totals");
};
template <>
struct handle_type_name<numatwin::native::ObjectMemoryDict> {
    static constexpr auto name = const_name("ObjectMemory");
};

}  // namespace pybind11::detail
