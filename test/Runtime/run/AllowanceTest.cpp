// Two devices' results, as --compare-cpu holds them against each other.
#include "runtime/run/Allowance.h"
#include "gtest/gtest.h"
#include <cmath>

namespace meshwork::runtime::test {
namespace {

class Maxima {
public:
  Maxima(std::vector<int64_t> shape, std::vector<float> values)
      : shape(std::move(shape)), values(std::move(values)) {
    strides.assign(this->shape.size(), 1);
    for (size_t i = strides.size() - 1; i-- > 0;)
      strides[i] = strides[i + 1] * this->shape[i + 1];
    view = {};
    view.dtype = plan::DType::f32;
    view.shape = this->shape;
    view.strides = strides;
    view.elements = static_cast<int64_t>(this->values.size());
    view.spanBytes = this->values.size() * sizeof(float);
  }
  Maxima(const Maxima &) = delete;

  absl::Span<std::byte> bytes() {
    return {reinterpret_cast<std::byte *>(values.data()), view.spanBytes};
  }
  const std::vector<float> &joined() {
    joinMaxima(view, bytes());
    return values;
  }
  double shareTo(Maxima &got) {
    ThreadTeam team(1, {});
    return shareOfAllowance(view, bytes(), got.bytes(), false, team);
  }

private:
  std::vector<int64_t> shape, strides;
  std::vector<float> values;
  plan::ViewInfo view;
};

TEST(Allowance, partsOfMaximaAreJoinedForEachColumn) {
  Maxima numbers({3}, {1, 4, 2});
  EXPECT_EQ(numbers.joined(), (std::vector<float>{4, 4, 4}));
  Maxima columns({2, 3}, {1, 7, -5, 3, 6, -4});
  EXPECT_EQ(columns.joined(), (std::vector<float>{3, 7, -4, 3, 7, -4}));
}

TEST(Allowance, oneMaximumThatIsNoNumberIsSeen) {
  for (size_t at : {0, 1, 2}) {
    std::vector<float> values = {1, 4, 2};
    values[at] = NAN;
    Maxima parts({3}, values);
    for (float value : parts.joined())
      EXPECT_TRUE(std::isnan(value)) << at;
  }
}

TEST(Allowance, onlyTheMaximumOfAllPartsCounts) {
  Maxima expected({3}, {1, 4, 2}), otherRows({3}, {4, 0, 0}),
      wrong({3}, {3, 2, 1});
  EXPECT_GT(expected.shareTo(otherRows), 1);
  expected.joined(), otherRows.joined(), wrong.joined();
  EXPECT_EQ(expected.shareTo(otherRows), 0);
  EXPECT_GT(expected.shareTo(wrong), 1);
}

} // namespace
} // namespace meshwork::runtime::test
