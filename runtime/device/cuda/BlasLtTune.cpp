// Which of the ways to run a product is fastest here, found by trying them.
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/device/cuda/BlasLt.h"
#include "runtime/device/cuda/Tuned.h"
#include <cstring>

namespace meshwork::runtime::cuda {

std::string BlasLtMatmul::key() const {
  return absl::StrCat(ways[0].product->key(), ways[0].rest ? " beside" : "");
}

/// The algorithm itself: its place among the proposals may be another's in a
/// process or a version to come.
std::string BlasLtMatmul::describe(const Candidate &candidate) const {
  const Way &way = ways[candidate.way];
  const blas::Algorithm &algorithm =
      way.product->algorithms()[candidate.algorithm].algorithm;
  std::string bytes(sizeof(algorithm), '\0');
  std::memcpy(bytes.data(), &algorithm, sizeof(algorithm));
  return absl::StrCat(way.rest ? "beside:" : "whole:",
                      absl::BytesToHexString(bytes));
}

std::optional<size_t> BlasLtMatmul::find(absl::string_view description) const {
  for (size_t i = 0; i < candidates.size(); ++i)
    if (describe(candidates[i]) == description)
      return i;
  return std::nullopt;
}

absl::Status BlasLtMatmul::tune(Stream stream) {
  if (hasEpilogue() && !triedBeside)
    addBeside().IgnoreError(); // There is a way without it.
  if (!ways[0].rest)
    why = "faster here than cuBLASLt's epilogue";
  if (candidates.size() == 1)
    return absl::OkStatus();
  absl::StatusOr<std::string> choice = Tuned::ofProcess().get(
      key(), [&](absl::string_view text) { return find(text).has_value(); },
      [&] { return fastest(stream); });
  MESHWORK_RETURN_IF_ERROR(choice.status());
  chosen = *find(*choice);
  return absl::OkStatus();
}

absl::StatusOr<std::string> BlasLtMatmul::fastest(Stream stream) {
  size_t best = 0;
  MESHWORK_ASSIGN_OR_RETURN(
      best, fastestOf(blas.driver, stream, candidates.size(), [&](size_t i) {
        return run(candidates[i], stream, /*adds=*/false);
      }));
  return describe(candidates[best]);
}

} // namespace meshwork::runtime::cuda
