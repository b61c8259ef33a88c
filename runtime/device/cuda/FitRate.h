// A rate of work whose small pieces are slower, from pieces of several sizes.
#pragma once

#include "absl/types/span.h"

namespace meshwork::runtime::cuda {

struct TimedWork {
  double flops, seconds;
};

/// Work of F flops takes (F + halfSize) / flops seconds.
struct FittedRate {
  double flops = 0, halfSize = 0;
};

/// The one whose times are off by the smallest parts of them, by least squares;
/// halfSize is never below 0. Of nothing it is nothing.
FittedRate fitRate(absl::Span<const TimedWork> work);

/// h, where a rate of two sizes is r = R size / (size + h): of rates that grow
/// with size, but by less. Else 0, or no more than `most`.
double halfOf(double smaller, double smallerRate, double larger,
              double largerRate, double most);

} // namespace meshwork::runtime::cuda
