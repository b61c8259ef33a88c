// Matrix products of a plan, by cuBLASLt.
//
//   std::unique_ptr<BlasLt> blas = *BlasLt::create(*driver, device);
//   std::unique_ptr<BlasLtMatmul> product = *blas->prepare(request);
//   status = product->tune(stream);        // optional; overwrites dst
//   status = product->run(stream, adds);   // each time
//
// Sums are kept in f32 (no TF32, split sums too) and rounded once.
#pragma once

#include "absl/status/statusor.h"
#include "runtime/device/cuda/BlasLtLibrary.h"
#include "runtime/device/cuda/BlasLtProblem.h"
#include "runtime/device/cuda/Driver.h"
#include <memory>
#include <string>
#include <vector>

namespace meshwork::runtime::cuda {

/// One product, ready to run. Uses the memory of its request and the library's
/// handle; one thread at a time.
class BlasLtMatmul {
public:
  BlasLtMatmul(const BlasLtMatmul &) = delete;
  ~BlasLtMatmul();

  /// Times what the library proposes, on the request's memory, and keeps the
  /// fastest: writes dst and the workspace, so call it before anything lives
  /// there. Equal products are timed once in a process and get the same
  /// algorithm; other threads wait for that. Not while capturing.
  /// Without it the library's first proposal runs, the same in every process.
  absl::Status tune(Stream stream);

  /// Puts the product at the end of `stream`; `adds` to what dst has, or
  /// overwrites it. May be captured into a graph, after it has run once: the
  /// library loads code then.
  absl::Status run(Stream stream, bool adds);

private:
  friend class BlasLt;
  BlasLtMatmul(const Driver &driver, const BlasLtLibrary &library,
               blas::Handle handle, Device device, BlasLtProblem problem,
               std::string name);
  absl::Status describe();
  absl::Status propose();
  absl::StatusOr<blas::Preference> makePreference() const;
  absl::Status describe(const ColumnMatrix &matrix, int type,
                        blas::MatrixLayout &layout);
  absl::StatusOr<size_t> fastest(Stream stream);
  absl::StatusOr<float> timeMs(size_t candidate, Stream stream);
  absl::Status run(const blas::HeuristicResult &candidate, Stream stream,
                   bool adds);
  std::string what(const char *call) const;

  const Driver &driver;
  const BlasLtLibrary &library;
  blas::Handle handle;
  Device device;
  BlasLtProblem problem;
  std::string name;
  blas::MatmulDesc desc = nullptr;
  blas::MatrixLayout a = nullptr, b = nullptr, d = nullptr;
  std::vector<blas::HeuristicResult> candidates; // the library's best first
  size_t chosen = 0;
};

/// The library on one device. Any thread; outlives what it prepares.
class BlasLt {
public:
  /// The device's context is current.
  static absl::StatusOr<std::unique_ptr<BlasLt>> create(const Driver &driver,
                                                        Device device);
  BlasLt(const BlasLt &) = delete;
  ~BlasLt();

  /// Errors as problemOf, named after the instruction; unimplemented too when
  /// the library proposes nothing.
  absl::StatusOr<std::unique_ptr<BlasLtMatmul>>
  prepare(const MatmulRequest &request) const;

  /// What `tune` has found in this process, as text, for other processes to
  /// `adopt`: all ranks then run the same algorithms.
  static std::string choices();
  static void adopt(absl::string_view choices);

private:
  BlasLt(const Driver &driver, const BlasLtLibrary &library,
         blas::Handle handle, Device device)
      : driver(driver), library(library), handle(handle), device(device) {}

  const Driver &driver;
  const BlasLtLibrary &library;
  blas::Handle handle;
  Device device;
};

} // namespace meshwork::runtime::cuda
