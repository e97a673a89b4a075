// Python's view of streaming quantiles: Histogram.
#include <pybind11/pybind11.h>

#include "kernel/arrays.hpp"
#include "kernel/register.hpp"
#include "kernel/statistics.hpp"

namespace py = pybind11;

namespace numatwin {
namespace {

void require(bool holds, const char* what, const char* expected) {
    if (!holds) throw std::invalid_argument(std::string(what) + ": expected " + expected);
}

void add(Histogram& self, std::int64_t value, std::uint64_t count) {
    require(value >= 0, "value", "at least 0");
    self.add(value, count);
}

void add_even(Histogram& self, std::int64_t low, std::int64_t high, std::uint64_t count) {
    require(low >= 0 && high >= low, "low, high", "0 <= low <= high");
    self.add_even(low, high, count);
}

void add_all(Histogram& self, const Indices& values) {
    for (const std::int64_t value : view(values, "values")) add(self, value, 1);
}

std::int64_t quantile(const Histogram& self, double q) {
    require(q >= 0 && q <= 1, "q", "from 0 to 1");
    return self.quantile(q);
}

// Where the buckets with counts begin, and their counts.
py::tuple buckets(const Histogram& self) {
    const auto& counts = self.buckets();
    py::ssize_t used = 0;
    for (const auto count : counts) used += count > 0;
    Indices first(used), number(used);
    const auto firsts = written(first), numbers = written(number);
    std::size_t k = 0;
    for (std::size_t b = 0; b < counts.size(); ++b) {
        if (counts[b] == 0) continue;
        firsts[k] = Histogram::first_of(b);
        numbers[k++] = static_cast<std::int64_t>(counts[b]);
    }
    return py::make_tuple(first, number);
}

void register_statistics(py::module_& module) {
    py::class_<Histogram> histogram(module, "Histogram",
                                    R"(Streaming quantiles of whole numbers from 0 to 2^63 - 1.

Counts are kept in buckets whose width is 2^-7 of their power of two: a quantile is off by at
most ``relative_error`` of itself. Count, mean, least and greatest are exact. Raises ValueError
for values out of range.)");
    histogram.attr("relative_error") = Histogram::relative_error;
    histogram.def(py::init<>())
        .def("add", &add, py::arg("value"), py::arg("count") = 1, "Add a value so many times.")
        .def("add_even", &add_even, py::arg("low"), py::arg("high"), py::arg("count"),
             "Spread a count evenly over all values from low to high, both included.")
        .def("add_all", &add_all, py::arg("values"), "Add values [N].")
        .def("merge", &Histogram::merge, py::arg("other"), "Add all that the other has seen.")
        .def("quantile", &quantile, py::arg("q"),
             "The value of rank ceil(q * count), from 1; q from 0 to 1. 0 if there is none.")
        .def("buckets", &buckets,
             "(where a bucket begins, its count), for the buckets that have one.")
        .def_property_readonly("count", &Histogram::count)
        .def_property_readonly("mean", &Histogram::mean)
        .def_property_readonly("least", &Histogram::least)
        .def_property_readonly("greatest", &Histogram::greatest);
}

const Registration registration("statistics", register_statistics);

}  // namespace

}  // namespace numatwin
