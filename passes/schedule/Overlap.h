// How overlap is decided and written.
#pragma once

#include "passes/schedule/Order.h"

namespace meshwork::schedule {

/// Rough speeds of one rank: what overlaps with what depends on ratios, and a
/// plan must not depend on the machine that compiles it.
struct Speeds {
  double flops;    // a second
  double memory;   // bytes a second
  double link;     // bytes a second that a rank sends
  double latency;  // seconds, of one collective
  double handOver; // seconds that hidden time must gain to be worth it
};

/// A few cores; handing over wakes a thread.
inline constexpr Speeds cpuSpeeds{1e11, 1e10, 5e9, 20e-6, 50e-6};
/// A datacenter GPU (half of an H100's dense bf16 peak, three quarters of its
/// memory's) whose link is one adapter of 400 Gb/s, not NVLink: a gather that
/// starts early costs some memory, one that starts late stops the GPU. Handing
/// over is an event between two streams.
inline constexpr Speeds cudaSpeeds{5e14, 2.5e12, 5e10, 20e-6, 5e-6};

/// Seconds that an instruction takes; of a collective among as many ranks as
/// `ranksOf` says.
double secondsOf(::mlir::Operation *instruction,
                 ::llvm::function_ref<int64_t(CollectiveOp)> ranksOf,
                 const Speeds &speeds);

/// Waits for the collectives among `instructions`, those of `block` in order,
/// that have a channel.
void insertWaits(::mlir::Block &block,
                 ::llvm::ArrayRef<::mlir::Operation *> instructions);

} // namespace meshwork::schedule
