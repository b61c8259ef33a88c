// Estimates and conflicts on which overlap is decided.
#pragma once

#include "dialects/schedule/Schedule.h"

namespace meshwork::schedule {

/// Rough speeds of one CPU rank: what overlaps with what depends on ratios, and
/// a plan must not depend on the machine that compiles it.
struct Speeds {
  double flops = 1e11;    // a second
  double memory = 1e10;   // bytes a second
  double link = 5e9;      // bytes a second that a rank sends
  double latency = 20e-6; // seconds, of one collective
  double handOver =
      50e-6; // seconds that hidden time must gain to be worth a thread
};

/// Seconds that an instruction takes; of a collective among `ranks`.
double secondsOf(::mlir::Operation *instruction, int64_t ranks,
                 const Speeds &speeds);

/// Whether one writes bytes that the other touches. Bytes within one buffer
/// are told apart by their range on the first rank, unless a shift moves them.
bool conflict(::mlir::Operation *a, ::mlir::Operation *b);

/// Moves an instruction and its views in front of `before`, or to the end of
/// `block` when that is null.
void moveInstruction(::mlir::Operation *instruction, ::mlir::Block *block,
                     ::mlir::Operation *before);

} // namespace meshwork::schedule
