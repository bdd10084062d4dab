// Models as arrays of Python, with shape (..., 3, columns of their kind).
#pragma once

#include <utility>
#include <vector>

#include "arrays.h"
#include "model_kinds.h"

namespace caransac {

template <class Kind>
using ModelIn = In<double, Dim<3>, Dim<Kind::kColumns>>;
template <class Kind>
using Models = In<double, Any, Dim<3>, Dim<Kind::kColumns>>;

template <class Kind>
typename Kind::Model model_at(const Models<Kind>& models, size_t i) {
    return Kind::read(models.data() + 3 * Kind::kColumns * i);
}

template <class Kind>
std::vector<typename Kind::Model> read_models(const Models<Kind>& models) {
    std::vector<typename Kind::Model> own;
    own.reserve(models.shape(0));
    for (size_t i = 0; i < models.shape(0); ++i) own.push_back(model_at<Kind>(models, i));
    return own;
}

template <class Kind>
Out<double> write_models(const std::vector<typename Kind::Model>& models) {
    Buffer<double> result(3 * Kind::kColumns * models.size());
    for (size_t i = 0; i < models.size(); ++i) Kind::write(models[i], result.data() + 3 * Kind::kColumns * i);
    return std::move(result).to_numpy({models.size(), 3, Kind::kColumns});
}

}  // namespace caransac
