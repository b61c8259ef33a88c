// Whether views of two programs are alike, as far as what moves between them
// goes.
#pragma once

#include "lib/Plan/Views.h"
#include <algorithm>

namespace meshwork::plan {

template <typename T>
bool sameNumbers(const flatbuffers::Vector<T> *a,
                 const flatbuffers::Vector<T> *b) {
  return std::equal(orEmpty(a).begin(), orEmpty(a).end(), orEmpty(b).begin(),
                    orEmpty(b).end());
}

inline bool sameShape(const View &a, const View &b) {
  return a.dtype() == b.dtype() && sameNumbers(a.shape(), b.shape());
}

inline bool sameLayout(const View &a, const View &b) {
  return sameShape(a, b) && sameNumbers(a.strides(), b.strides());
}

} // namespace meshwork::plan
