// What is much slower than its like, in words.
#pragma once

#include "runtime/selftest/Links.h"

namespace meshwork::runtime {

/// `link` of class `between` ("two hosts") against the others of it: below half
/// of the median bandwidth, or above ten times the median latency. Of up to
/// two pairs nothing can be told.
std::vector<std::string> slowLinks(const std::vector<PairLink> &links,
                                   const std::string &between);

/// Ranks that do less than 0.7 of the median rank's work a second.
///   what  "products in f32"
std::vector<std::string> slowRanks(const std::vector<double> &rates,
                                   const std::string &what);

} // namespace meshwork::runtime
