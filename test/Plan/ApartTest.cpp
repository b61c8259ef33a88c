// Every two slices of a small tensor: apart() against a set of their elements.
#include "meshwork/Plan/Apart.h"

#include <gtest/gtest.h>
#include <set>

using namespace meshwork::layout;

namespace {
constexpr int64_t sizes[] = {2, 3, 4}, strides[] = {12, 4, 1};

struct Slice {
  std::array<int64_t, 3> begin, shape;
  int64_t offset() const {
    return begin[0] * strides[0] + begin[1] * strides[1] + begin[2];
  }
};

std::vector<Slice> slices() {
  std::vector<Slice> all = {{}};
  for (size_t dim = 0; dim < 3; ++dim) {
    std::vector<Slice> longer;
    for (Slice slice : all)
      for (int64_t begin = 0; begin < sizes[dim]; ++begin)
        for (int64_t size = 1; begin + size <= sizes[dim]; ++size) {
          slice.begin[dim] = begin;
          slice.shape[dim] = size;
          longer.push_back(slice);
        }
    all = std::move(longer);
  }
  return all;
}

std::set<int64_t> elementsOf(const Slice &slice) {
  std::set<int64_t> elements;
  for (int64_t i = 0; i < slice.shape[0]; ++i)
    for (int64_t j = 0; j < slice.shape[1]; ++j)
      for (int64_t k = 0; k < slice.shape[2]; ++k)
        elements.insert(slice.offset() + i * strides[0] + j * strides[1] + k);
  return elements;
}

bool meet(const std::set<int64_t> &a, const std::set<int64_t> &b) {
  return std::any_of(a.begin(), a.end(),
                     [&](int64_t x) { return b.contains(x); });
}

TEST(Apart, IsExactForSlicesOfOneTensor) {
  std::vector<Slice> all = slices();
  std::vector<std::set<int64_t>> elements;
  for (const Slice &slice : all)
    elements.push_back(elementsOf(slice));
  for (size_t a = 0; a < all.size(); ++a)
    for (size_t b = 0; b < all.size(); ++b) {
      int64_t distance = all[b].offset() - all[a].offset();
      if (distance >= 0)
        ASSERT_EQ(
            apart({all[a].shape, strides}, {all[b].shape, strides}, distance),
            !meet(elements[a], elements[b]))
            << "slices " << a << " and " << b;
    }
}

TEST(Apart, IsInDoubtWhereNoGridHoldsBoth) {
  // Elements 0, 3, 6 and 1, 5, 9 share none, but lie in no grid of two strides.
  int64_t shape[] = {3}, threes[] = {3}, fours[] = {4};
  EXPECT_FALSE(apart({shape, threes}, {shape, fours}, 1));
  // Whatever strides a file holds, the answer comes.
  std::vector<int64_t> many(40, 2), steps;
  for (int64_t i = 0; i < 40; ++i)
    steps.push_back((int64_t{1} << 40) + 7 * i);
  EXPECT_FALSE(apart({many, steps}, {many, steps}, 12345678901));
}
} // namespace
