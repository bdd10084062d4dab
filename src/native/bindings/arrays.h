// Arrays between Python and the kernels: shapes in the signatures, memory passed without a copy, checked lengths.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "bindings/lock.h"
#include "correspondences.h"

namespace caransac {

namespace nb = nanobind;

// nanobind copies arrays of another type or order. Arrays must be aligned; the Python code that checks callers' arrays
// ensures it.
template <class T, class... Shape>
using In = nb::ndarray<const T, nb::shape<Shape{}...>, nb::c_contig, nb::device::cpu>;
template <int N>
using Dim = std::integral_constant<nb::ssize_t, N>;
using Any = Dim<-1>;
template <class T>
using Out = nb::ndarray<nb::numpy, T, nb::c_contig>;

using Points = In<double, Any, Dim<2>>;
using Numbers = In<double, Any>;
using Indices = In<int, Any>;

// Passes a vector's memory to numpy without a copy.
template <class T>
Out<T> to_numpy(std::vector<T>&& values, std::initializer_list<size_t> shape) {
    auto owned = std::make_unique<std::vector<T>>(std::move(values));
    T* data = owned->data();
    nb::capsule owner(owned.release(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return Out<T>(data, shape, owner);
}

// Uninitialised memory for numpy: zeros that are overwritten would cost as much time as a narrow layer.
template <class T>
class Buffer {
  public:
    explicit Buffer(size_t size) : data_(new T[size]) {}
    T* data() { return data_.get(); }
    Out<T> to_numpy(const std::vector<size_t>& shape) && {
        T* data = data_.get();
        nb::capsule owner(data_.release(), [](void* p) noexcept { delete[] static_cast<T*>(p); });
        return Out<T>(data, shape.size(), shape.data(), owner);
    }

  private:
    std::unique_ptr<T[]> data_;
};

inline void require(bool condition, const char* message) {
    if (!condition) throw std::invalid_argument(message);
}

// The kernels count in 32 bits. Arrays longer than one per cent of that range are a mistake anyway.
inline int count_of(size_t length) {
    require(length <= 20'000'000, "arrays must not have more than 20 million rows");
    return static_cast<int>(length);
}

// Kernels for 3D points read a column that other problems lack.
inline void require_dimensions(const Correspondences& correspondences, int dimensions) {
    require(correspondences.dimensions() == dimensions,
            dimensions == 3 ? "correspondences must match points in space" : "correspondences must match two images");
}

// Copies indices before it checks them, so that nobody can change them in between.
template <class Array>
std::vector<int> checked_indices(const Array& indices, int end, const char* message) {
    std::vector<int> copied(indices.data(), indices.data() + indices.size());
    for (const int i : copied) require(0 <= i && i < end, message);
    return copied;
}

// One function for each file of bindings.
void bind_correspondences(nb::module_& m);
void bind_solvers(nb::module_& m);
void bind_refine_options(nb::module_& m);
void bind_models(nb::module_& m);
void bind_lenses(nb::module_& m);
void bind_photographs(nb::module_& m);
void bind_sampler(nb::module_& m);
void bind_selection(nb::module_& m);
void bind_learned(nb::module_& m);

}  // namespace caransac
