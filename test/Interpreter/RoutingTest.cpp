// The instructions of mixtures of experts: values small enough to see through.
#include "passes/interpreter/Routing.h"

#include <gtest/gtest.h>

using namespace meshwork::interpreter;

namespace {

using Elements = std::vector<double>;
constexpr double highest = 2147483647;

Elements elementsOf(const Tensor &tensor) { return tensor.getElements().vec(); }

TEST(Routing, Picks) {
  Tensor scores({2, 3}, Elements{1, 2, 3, 4, 5, 6}),
      choices({2, 2}, Elements{2, 0, -1, highest});
  EXPECT_EQ(elementsOf(picked(scores, choices, Tensor({2, 2}))),
            (Elements{3, 1, 0, 0}));
  Tensor equal({2, 2}, Elements{1, 1, 3, 2}),
      dout({2, 2}, Elements{1, 2, 4, 8});
  EXPECT_EQ(elementsOf(pickedGradient(equal, dout, Tensor({2, 3}))),
            (Elements{0, 3, 0, 0, 0, 8}));
}

SortedRows sorted(const Elements &choices, int64_t first, int64_t experts,
                  int64_t rows) {
  Tensor all({static_cast<int64_t>(choices.size()) / 2, 2}, choices);
  return sortedRows(
      all, first, {Tensor({rows}), Tensor({rows}), all, Tensor({experts + 1})});
}

TEST(Routing, SortsRows) {
  SortedRows all = sorted({2, 0, -1, -1, 0, 1}, 0, 3, 6);
  EXPECT_EQ(elementsOf(all.order), (Elements{1, 4, 5, 0, -1, -1}));
  EXPECT_EQ(elementsOf(all.tokens), (Elements{0, 2, 2, 0, -1, -1}));
  EXPECT_EQ(elementsOf(all.places), (Elements{3, 0, -1, -1, 1, 2}));
  EXPECT_EQ(elementsOf(all.begins), (Elements{0, 2, 3, 4}));
  SortedRows own = sorted({2, 0, -1, -1, 0, 1}, 1, 2, 3);
  EXPECT_EQ(elementsOf(own.order), (Elements{5, 0, -1}));
  EXPECT_EQ(elementsOf(own.begins), (Elements{0, 1, 2}));
  SortedRows full = sorted({1, 1, 1, 1, 0, highest}, 0, 2, 3);
  EXPECT_EQ(elementsOf(full.order), (Elements{4, 0, 1}));
  EXPECT_EQ(elementsOf(full.places), (Elements{1, 2, -1, -1, 0, -1}));
  EXPECT_EQ(elementsOf(full.begins), (Elements{0, 1, 3}));
}

TEST(Routing, TakesAndCombinesRows) {
  Tensor table({2, 2}, Elements{1, 2, 3, 4});
  EXPECT_EQ(elementsOf(takenRows(table, Tensor({3}, Elements{1, -1, 2}),
                                 Tensor({3, 2}))),
            (Elements{3, 4, 0, 0, 0, 0}));
  // Experts 4 and 5 are neighbours: their sum is 1, which 2^60 would swallow.
  Tensor src({4, 1}, Elements{0x1p60, -0x1p60, 1, 7}),
      choices({3, 3}, Elements{4, 2, 5, 4, 5, 2, 2, 3, 9}),
      places({3, 3}, Elements{0, 2, 1, 0, 1, 2, -1, highest, 3});
  EXPECT_EQ(elementsOf(combinedRows(src, places, choices, Tensor({3, 1}))),
            (Elements{1, 1, 7}));
}

TEST(Routing, MultipliesRowsOfExperts) {
  Tensor lhs({4, 1}, Elements{1, 2, 3, 4}), rhs({2, 1, 1}, Elements{10, 100}),
      across({4, 1}, Elements{1, 1, 1, 1});
  auto product = [&](const Elements &begins) {
    return elementsOf(
        groupedProduct(lhs, rhs, Tensor({3}, begins), Tensor({4, 1})));
  };
  auto gradient = [&](const Elements &begins) {
    return elementsOf(
        groupedGradient(lhs, across, Tensor({3}, begins), Tensor({2, 1, 1})));
  };
  EXPECT_EQ(product({0, 1, 3}), (Elements{10, 200, 300, 0}));
  EXPECT_EQ(gradient({0, 1, 3}), (Elements{1, 5}));
  EXPECT_EQ(product({2, 1, highest}), (Elements{0, 0, 300, 400}));
  EXPECT_EQ(gradient({2, 1, highest}), (Elements{0, 7}));
  EXPECT_EQ(product({-7, 2, 2}), (Elements{10, 20, 0, 0}));
}

} // namespace
