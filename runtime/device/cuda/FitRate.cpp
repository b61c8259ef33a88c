#include "runtime/device/cuda/FitRate.h"
#include <algorithm>

namespace meshwork::runtime::cuda {

FittedRate fitRate(absl::Span<const TimedWork> work) {
  if (work.empty())
    return {};
  // Minimizes the sum of (a F / t + b / t - 1)^2: a = 1 / R, b = halfSize / R.
  double x = 0, y = 0, xx = 0, xy = 0, yy = 0;
  for (const TimedWork &one : work) {
    double f = one.flops / one.seconds, g = 1 / one.seconds;
    x += f;
    y += g;
    xx += f * f;
    xy += f * g;
    yy += g * g;
  }
  double determinant = xx * yy - xy * xy;
  double a = (x * yy - y * xy) / determinant,
         b = (xx * y - xy * x) / determinant;
  if (determinant > 1e-9 * xx * yy && a > 0 && b >= 0)
    return {1 / a, b / a};
  if (determinant > 1e-9 * xx * yy && a > 0)
    return {xx / x, 0};
  // Times do not grow with the work: the largest says most.
  return {work.back().flops / work.back().seconds, 0};
}

double halfOf(double smaller, double smallerRate, double larger,
              double largerRate, double most) {
  // r1 (s1 + h) / s1 = r2 (s2 + h) / s2
  double gain = largerRate - smallerRate,
         slope = smallerRate / smaller - largerRate / larger;
  if (gain <= 0)
    return 0;
  return slope <= gain / most ? most : gain / slope;
}

} // namespace meshwork::runtime::cuda
