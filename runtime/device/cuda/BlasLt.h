// Matrix products of a plan, by cuBLASLt.
//
//   std::unique_ptr<BlasLt> blas = *BlasLt::create(*driver);
//   std::unique_ptr<BlasLtMatmul> product = *blas->prepare(request);
//   status = product->tune(stream);        // optional; overwrites dst
//   status = product->load(stream, adds);  // overwrites dst
//   status = product->run(stream, adds);   // each time
//
// Sums are kept in f32 (no TF32, split sums too) and rounded once. Where the
// library has no algorithm with a bias or an epilogue, it runs the product
// alone, and a kernel does the rest (EpilogueKernel.h).
#pragma once

#include "runtime/device/cuda/BlasLtProduct.h"
#include "runtime/device/cuda/EpilogueKernel.h"
#include <mutex>
#include <optional>

namespace meshwork::runtime::cuda {

class BlasLt;

/// One product, ready to run. Uses the memory of its request and the library's
/// handle; one thread at a time.
class BlasLtMatmul {
public:
  /// Times what the library proposes on the request's memory, and keeps the
  /// fastest: with the epilogue, and without it with the kernel beside. Writes
  /// dst, aux and the workspace, so call it before anything lives there. Equal
  /// products get the same algorithm (Tuned.h). Not while capturing. Without
  /// `tune` the library's first proposal runs, the same in every process.
  absl::Status tune(Stream stream);

  /// Runs it once, writing as `tune` does, after which it may be captured: the
  /// library loads code then, other code where it adds. An algorithm that does
  /// not run on this device after all gives way to the next.
  absl::Status load(Stream stream, bool adds);

  /// Puts the product at the end of `stream`; `adds` to what dst has, or
  /// overwrites it.
  absl::Status run(Stream stream, bool adds) const;

  /// Whether there is more to it than the product, and if so why a kernel does
  /// it; empty where the library does.
  bool hasEpilogue() const;
  std::string whyBeside() const;

private:
  friend class BlasLt;
  /// The library alone, or the product by it and the rest by a kernel.
  struct Way {
    std::unique_ptr<BlasLtProduct> product;
    std::optional<EpilogueKernel> rest;
  };
  struct Candidate {
    size_t way, algorithm;
  };
  BlasLtMatmul(const BlasLt &blas, const MatmulRequest &request)
      : blas(blas), request(request) {}
  absl::Status choose();
  absl::Status addWhole();
  absl::Status addBeside();
  void add(Way way);
  std::string key() const;
  std::string describe(const Candidate &candidate) const;
  std::optional<size_t> find(absl::string_view description) const;
  absl::Status run(const Candidate &candidate, Stream stream, bool adds) const;
  absl::StatusOr<std::string> fastest(Stream stream);

  const BlasLt &blas;
  MatmulRequest request;
  std::vector<Way> ways;
  bool triedBeside = false;
  std::string why;                   // not by the library alone
  std::vector<Candidate> candidates; // the preferred first
  size_t chosen = 0;
};

/// The library on one device. Any thread; outlives what it prepares.
class BlasLt {
public:
  /// The device's context is current.
  static absl::StatusOr<std::unique_ptr<BlasLt>> create(const Driver &driver);
  BlasLt(const BlasLt &) = delete;
  ~BlasLt();

  /// Errors as problemOf, named after the instruction; unimplemented too when
  /// the library proposes nothing, and no kernel makes up for it.
  absl::StatusOr<std::unique_ptr<BlasLtMatmul>>
  prepare(const MatmulRequest &request) const;

  /// Of the library.
  size_t version() const { return place.library.getVersion(); }

private:
  friend class BlasLtMatmul;
  BlasLt(const Driver &driver, const BlasLtProduct::Place &place)
      : driver(driver), place(place) {}
  absl::StatusOr<std::shared_ptr<EpilogueKernels>> epilogues() const;

  const Driver &driver;
  BlasLtProduct::Place place;
  mutable std::mutex mutex;
  mutable std::shared_ptr<EpilogueKernels> kernels; // once one is needed
};

} // namespace meshwork::runtime::cuda
