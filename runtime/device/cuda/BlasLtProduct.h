// One product as the library runs it: its description, and the algorithms that
// the library proposes, its best first.
#pragma once

#include "absl/status/statusor.h"
#include "runtime/device/cuda/BlasLtLibrary.h"
#include "runtime/device/cuda/BlasLtProblem.h"
#include "runtime/device/cuda/Driver.h"
#include <memory>
#include <string>
#include <vector>

namespace meshwork::runtime::cuda {

class BlasLtProduct {
public:
  struct Place {
    const BlasLtLibrary &library;
    blas::Handle handle;
  };
  /// unimplemented when the library proposes nothing. `name` is that of the
  /// instruction, for messages.
  static absl::StatusOr<std::unique_ptr<BlasLtProduct>>
  create(const Place &place, BlasLtProblem problem, std::string name);
  BlasLtProduct(const BlasLtProduct &) = delete;
  ~BlasLtProduct();

  /// At least one.
  const std::vector<blas::HeuristicResult> &algorithms() const {
    return proposals;
  }
  std::string key() const { return problem.key(); }
  absl::Status run(size_t proposal, Stream stream, bool adds) const;

private:
  BlasLtProduct(const Place &place, BlasLtProblem problem, std::string name)
      : place(place), problem(std::move(problem)), name(std::move(name)) {}
  absl::Status describe();
  absl::Status propose();
  absl::StatusOr<blas::Preference> makePreference() const;
  absl::Status describe(const ColumnMatrix &matrix, int type,
                        blas::MatrixLayout &layout);
  std::string what(const char *call) const;

  Place place;
  BlasLtProblem problem;
  std::string name;
  blas::MatmulDesc desc = nullptr;
  blas::MatrixLayout a = nullptr, b = nullptr, d = nullptr;
  std::vector<blas::HeuristicResult> proposals;
};

} // namespace meshwork::runtime::cuda
