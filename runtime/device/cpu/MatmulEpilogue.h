// The work of plan::Matmul beside its product (Plan.fbs, Epilogue), done after
// it. Plans for a GPU that are compared with a CPU have it, and so do plans
// told to have it.
#pragma once

#include "meshwork/Plan/Plan.h"
#include "runtime/device/cpu/Prepare.h"
#include "runtime/device/cpu/Tensor.h"

namespace meshwork::runtime::cpu {

class MatmulEpilogue {
public:
  static absl::StatusOr<MatmulEpilogue> of(const plan::Matmul &op,
                                           const ProgramOnRank &program);
  /// Where the product goes: what GELU is applied to, if that is kept, else
  /// dst.
  static uint32_t productOf(const plan::Matmul &op);

  /// After the product, on the team's threads.
  void run(ThreadTeam &team, std::byte *arena) const;

private:
  void applyGelu(ThreadTeam &team, std::byte *arena) const;
  void addUp(ThreadTeam &team, std::byte *arena) const;

  plan::Epilogue kind = plan::Epilogue::none;
  bool hasAux = false;
  Tensor dst, aux, summed; // summed: [what sums are of, what is summed]
};

} // namespace meshwork::runtime::cpu
