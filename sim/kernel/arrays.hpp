// NumPy arrays as spans, for the register functions.
#pragma once

#include <pybind11/numpy.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace numatwin {

// Arrays of these very types are read in place; others are converted where that loses nothing.
using Doubles = pybind11::array_t<double, pybind11::array::c_style>;
using Indices = pybind11::array_t<std::int64_t, pybind11::array::c_style>;

template <typename T>
std::span<const T> view(const pybind11::array_t<T, pybind11::array::c_style>& array,
                        const char* name) {
    if (array.ndim() != 1) {
        throw std::invalid_argument(std::string(name) + ": expected one dimension, got " +
                                    std::to_string(array.ndim()));
    }
    return {array.data(), static_cast<std::size_t>(array.size())};
}

template <typename T>
std::span<T> written(pybind11::array_t<T, pybind11::array::c_style>& array) {
    return {array.mutable_data(), static_cast<std::size_t>(array.size())};
}

// A copy, as an array.
template <typename T>
pybind11::array_t<T> array_of(const std::vector<T>& values) {
    return pybind11::array_t<T>(static_cast<pybind11::ssize_t>(values.size()), values.data());
}

// Of a vector that a class has, for a property of it.
template <typename T, class Of>
auto array_at(std::vector<T> Of::* member) {
    return [member](const Of& of) { return array_of(of.*member); };
}

// Of rows of one length: [rows, width].
template <typename T, std::size_t width>
pybind11::array_t<T> table_of(const std::vector<std::array<T, width>>& rows) {
    pybind11::array_t<T> table({rows.size(), width});
    T* to = table.mutable_data();
    for (const auto& row : rows) to = std::copy(row.begin(), row.end(), to);
    return table;
}

template <typename Get>
auto column_of(std::size_t size, Get get) {
    pybind11::array_t<decltype(get(std::size_t{0}))> values(static_cast<pybind11::ssize_t>(size));
    for (std::size_t k = 0; k < size; ++k) values.mutable_data()[k] = get(k);
    return values;
}

// A column of the given length, or one number for all of it.
class Column {
  public:
    Column(const Doubles& array, std::size_t size, const char* name)
        : data_(array.data()), step_(array.ndim() == 0 ? 0 : 1) {
        if (step_ == 1 && view(array, name).size() != size) {
            throw std::invalid_argument(std::string(name) + ": expected " + std::to_string(size) +
                                        " entries, got " + std::to_string(array.size()));
        }
    }
    double operator[](std::size_t index) const { return data_[index * step_]; }

  private:
    const double* data_;
    std::size_t step_;
};

}  // namespace numatwin
