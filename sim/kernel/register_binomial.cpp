// Python's view of means of a binomially distributed number.
#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>

#include "kernel/arrays.hpp"
#include "kernel/binomial.hpp"
#include "kernel/register.hpp"

namespace py = pybind11;

namespace numatwin {
namespace {

py::tuple parts_of(std::int64_t trials, std::int64_t size, const Doubles& chances) {
    const BinomialParts means(trials, size);
    const auto given = view(chances, "chances");
    Doubles parts(chances.size()), squares(chances.size()), begun(chances.size());
    for (std::size_t k = 0; k < given.size(); ++k) {
        const auto found = means(given[k]);
        written(parts)[k] = found.parts;
        written(squares)[k] = found.squares;
        written(begun)[k] = found.begun;
    }
    return py::make_tuple(parts, squares, begun);
}

void register_binomial(py::module_& module) {
    module.def(
        "binomial_parts", &parts_of, py::arg("trials"), py::arg("size"), py::arg("chances"),
        R"(Means of a binomially distributed number in parts: (parts[N], squares[N], begun[N]).

Of the successes in so many trials of each chance, put into parts of the size one after another: how
many parts there are on average, the mean sum of the squares of what they hold, and how likely the
last one is not full.

Raises ValueError for trials or a size below 1, and for a chance that is not 0 to 1.)");
}

const Registration registration("binomial", register_binomial);

}  // namespace

}  // namespace numatwin
