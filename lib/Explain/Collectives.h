// What moves between ranks in a step, and why.
#pragma once

#include "lib/Explain/Listing.h"

namespace meshwork::explain {

/// Collectives of one kind, axis, phase and cause, over one optimizer step.
struct Traffic {
  std::string kind, axis, phase, cause;
  std::vector<std::string> annotations; // keys of the spec behind it
  bool isOfLayer = false;               // it is there for a layer of the model
  uint32_t group = 1;                   // ranks that take part in each
  uint64_t count = 0;                   // per step
  uint64_t instructions = 0;            // each once
  uint64_t bufferBytes = 0; // per step: what the collectives work on
  uint64_t bytesSentPerRank = 0;
};

/// In the order of their first instruction.
std::vector<Traffic> traffic(const plan::Plan &plan,
                             const plan::Program &program,
                             const Listing &listing);

/// Why it is there: "h.*.ln_1 for h.*.attn.c_attn, which takes ..., and 2 more
/// like it".
std::string causeText(const plan::Collective &op);
/// Ranks in one group of `op`.
uint64_t groupOf(const plan::Plan &plan, const plan::Collective &op);
/// Bytes of the whole bucket on one rank: what is gathered, or the sources.
uint64_t bucketBytes(const plan::Program &program, const plan::Collective &op);

} // namespace meshwork::explain
