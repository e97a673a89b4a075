// Python's view of a described struct: made from keyword arguments, a property for each field.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <concepts>
#include <string>
#include <type_traits>
#include <vector>

#include "kernel/described.hpp"

namespace numatwin {

// What a value is to Python: vectors and the like with a shape are plain ones.
template <class Value>
struct PlainType {
    using type = Value;
};
template <class Value>
    requires requires { typename Value::Plain; }
struct PlainType<Value> {
    using type = typename Value::Plain;
};
template <class Value>
using Plain = typename PlainType<Value>::type;

// Arrays of any shape are taken row by row, where conversion loses nothing; sequences as they are.
template <class Number>
    requires std::is_arithmetic_v<Number>
void assign(std::vector<Number>& to, pybind11::handle given) {
    namespace py = pybind11;
    // Plain sequences first: looking for arrays loads NumPy, and the engine's processes have none.
    if (py::isinstance<py::list>(given) || py::isinstance<py::tuple>(given) ||
        !py::isinstance<py::array>(given)) {
        to = py::cast<std::vector<Number>>(given);
        return;
    }
    const auto array = py::reinterpret_borrow<py::array>(given);
    const char kind = array.dtype().kind();
    if (std::integral<Number> && kind != 'i' && kind != 'u' && array.size() > 0)
        throw py::cast_error("not whole numbers");
    const auto values =
        py::array_t<Number, py::array::c_style | py::array::forcecast>::ensure(array);
    if (!values) throw py::error_already_set();
    to.assign(values.data(), values.data() + values.size());
}

template <class Value>
void assign(Value& to, pybind11::handle given) {
    to = pybind11::cast<Value>(given);
}

// Sets a field from Python; raises TypeError with its name where the value is of another type.
template <class Struct, class Value>
void set_field(Struct& of, const Field<Struct, Value>& field, pybind11::handle given) {
    namespace py = pybind11;
    try {
        assign(static_cast<Plain<Value>&>(of.*field.member), given);
    } catch (const py::cast_error&) {
        throw py::type_error(std::string(field.name) + ": not of its type: " +
                             py::repr(given).cast<std::string>().substr(0, 60));
    }
}

template <class Struct>
void set_fields(Struct& of, const pybind11::dict& given) {
    for (const auto& [key, value] : given) {
        const std::string name = pybind11::str(key);
        bool known = false;
        for_each_field<Struct>([&](const auto& field) {
            if (name != field.name) return;
            set_field(of, field, value);
            known = true;
        });
        if (!known) throw pybind11::type_error("no field '" + name + "'");
    }
}

// A property for each field of a bound class, and FIELDS: their names in their order.
template <class Struct, class... Options>
void def_fields(pybind11::class_<Struct, Options...>& bound) {
    namespace py = pybind11;
    py::list names;
    for_each_field<Struct>([&](const auto& field) {
        using Value = std::remove_cvref_t<decltype(std::declval<Struct>().*field.member)>;
        names.append(field.name);
        bound.def_property(
            field.name,
            [field](const Struct& of) -> const Plain<Value>& { return of.*field.member; },
            [field](Struct& of, const py::object& given) { set_field(of, field, given); },
            field.words);
    });
    bound.attr("FIELDS") = py::tuple(names);
}

// The class, with what is said of it in `words`: made from keyword arguments.
template <class Struct>
pybind11::class_<Struct> def_struct(pybind11::module_& module, const char* name,
                                    const char* words) {
    namespace py = pybind11;
    py::class_<Struct> bound(module, name, words);
    bound.def(py::init([](const py::kwargs& given) {
        Struct made;
        set_fields(made, given);
        return made;
    }));
    def_fields(bound);
    return bound;
}

// Of a class of values: equal where all fields are, copied with other values for some, shown.
template <class Struct, class... Options>
void def_value(pybind11::class_<Struct, Options...> bound) {
    namespace py = pybind11;
    bound.def("__eq__", [](const Struct& of, const py::object& other) {
        if (!py::isinstance<Struct>(other)) return false;
        const auto& with = other.cast<const Struct&>();
        bool equal = true;
        for_each_field<Struct>(
            [&](const auto& field) { equal = equal && of.*field.member == with.*field.member; });
        return equal;
    });
    bound.def(
        "replaced",
        [](const Struct& of, const py::kwargs& given) {
            Struct made = of;
            set_fields(made, given);
            return made;
        },
        "A copy with these values in place of its own.");
    bound.def("__repr__", [](const py::object& self) {
        std::string text;
        for_each_field<Struct>([&](const auto& field) {
            text += (text.empty() ? "" : ", ") + std::string(field.name) + "=" +
                    py::repr(self.attr(field.name)).template cast<std::string>();
        });
        return py::type::of(self).attr("__name__").template cast<std::string>() + "(" + text + ")";
    });
}

}  // namespace numatwin
