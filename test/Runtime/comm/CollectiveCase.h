// A collective of random shape with its answer; run by the tests of each
// transport.
#pragma once

#include "runtime/comm/Mesh.h"
#include "runtime/comm/Transport.h"
#include <random>

namespace meshwork::runtime::test {

/// A strided tensor with memory around it that must stay as it is.
struct TestTensor {
  std::vector<uint32_t> memory; // both element types, and gaps
  Strided view;

  double at(const std::vector<int64_t> &index) const;
  void set(const std::vector<int64_t> &index, double value);
};

class CollectiveCase {
public:
  /// Any part of a case is a function of `kind` and `seed`, so that processes
  /// which make it apart agree.
  CollectiveCase(plan::CollectiveKind kind, uint32_t seed,
                 std::vector<std::vector<uint32_t>> meshes = {});

  CollectiveRequest request(uint32_t rank) const;
  /// All memory that `rank`'s tensors lie in, for transports that move it
  /// elsewhere.
  std::vector<std::vector<uint32_t> *> memories(uint32_t rank);
  /// What `rank` has that it should not have, "" when all is right.
  /// f32 elements may be off by `tolerance`, for sums in another order.
  std::string firstDifference(uint32_t rank, double tolerance = 0) const;
  std::string firstDifference() const;
  std::string describe() const;

  static constexpr double maxValue = 7159; // of an f32 or bf16 element

  plan::CollectiveKind kind;
  std::vector<uint32_t> mesh, axes, sources;
  plan::Reduction reduction = plan::Reduction::sum;
  bool inPlace = false;
  uint32_t ranks = 1, group = 1;

private:
  struct Part {
    plan::DType dtype;
    size_t dim = 0, toDim = 0;
    std::vector<int64_t> src, dst;                // shapes
    std::vector<TestTensor> srcs, dsts, expected; // by rank
  };
  int64_t pick(int64_t low, int64_t high);
  void chooseGroup(std::vector<std::vector<uint32_t>> meshes);
  void chooseShapes(Part &part);
  void allocate(Part &part);
  void allocateInPlace(Part &part);
  TestTensor make(plan::DType dtype, const std::vector<int64_t> &shape,
                  bool dense);
  void fill(Part &part);
  void work(Part &part);
  double valueFor(const Part &part, uint32_t rank,
                  const std::vector<int64_t> &index) const;

  std::mt19937 random;
  std::vector<Part> parts;
};

} // namespace meshwork::runtime::test
