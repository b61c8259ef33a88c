// What makeOperation chooses from.
#pragma once

#include "runtime/device/cuda/Operation.h"

namespace meshwork::runtime::cuda {

using OperationOr = absl::StatusOr<std::unique_ptr<Operation>>;

OperationOr makeLaunch(const plan::Instruction &instruction,
                       const OperationContext &context);
/// Of Instruction.kernels.
OperationOr makeKernels(const plan::Instruction &instruction,
                        const OperationContext &context);
/// By cuDNN, or as makeKernels.
OperationOr makeAttention(const plan::Instruction &instruction,
                          const OperationContext &context);
OperationOr makeCopy(const plan::Instruction &instruction,
                     const OperationContext &context);
OperationOr makeMatmul(const plan::Instruction &instruction,
                       const OperationContext &context);
/// Filled on the host with the same bits as on the CPU.
OperationOr makeRotaryTable(const plan::Instruction &instruction,
                            const OperationContext &context);

} // namespace meshwork::runtime::cuda
