// Curves of a run, short enough to draw.
#include "lib/Report/Parts.h"
#include <algorithm>

namespace meshwork::report {
namespace {
/// Of one curve: more than a screen has columns.
constexpr size_t mostPoints = 2000;

/// Of each stretch of steps the least and the greatest value, so that no spike
/// is lost.
std::vector<size_t> shownOf(const Metrics::Series &series) {
  size_t count = series.values.size();
  std::vector<size_t> shown;
  size_t stretches = count <= mostPoints ? count : mostPoints / 2;
  for (size_t i = 0; i < stretches; ++i) {
    auto begin =
        series.values.begin() + static_cast<ptrdiff_t>(i * count / stretches);
    auto end = series.values.begin() +
               static_cast<ptrdiff_t>((i + 1) * count / stretches);
    auto [least, greatest] = std::minmax_element(begin, end);
    auto first = static_cast<size_t>(std::min(least, greatest) -
                                     series.values.begin()),
         last = static_cast<size_t>(std::max(least, greatest) -
                                    series.values.begin());
    shown.push_back(first);
    if (last != first)
      shown.push_back(last);
  }
  return shown;
}

Json seriesJson(const Metrics::Series &series) {
  Json points = Json::array();
  for (size_t i : shownOf(series))
    points.push_back(
        Json::array({series.steps[i], series.values[i], series.runs[i]}));
  Json object{{"count", series.values.size()},
              {"not_finite", series.notFinite},
              {"points", std::move(points)}};
  if (!series.values.empty()) {
    object["first"] = series.values.front();
    object["last"] = series.values.back();
    object["least"] =
        *std::min_element(series.values.begin(), series.values.end());
  }
  return object;
}
} // namespace

Json metricsJson(const Metrics &metrics) {
  Json series = Json::object();
  for (const auto &[key, one] : metrics.series)
    if (!one.values.empty() || one.notFinite > 0)
      series[key] = seriesJson(one);
  return {{"lines", metrics.lines},
          {"series_left_out", metrics.leftOut},
          {"series", std::move(series)}};
}

} // namespace meshwork::report
