// A sample in the forms that inputs of a plan have.
//
//   SampleRows sample(plan);
//   tokens.sample(seed, step, number, sample.spans());
//   write(sample.of(plan::InputKind::document_positions));
#pragma once

#include "meshwork/Plan/Plan.h"
#include "runtime/io/Tokens.h"
#include <vector>

namespace meshwork::runtime {

class SampleRows {
public:
  /// Documents are read where an input of the plan is made of them.
  explicit SampleRows(const plan::Plan &plan);
  /// Where a sample goes.
  SampleSpans spans();
  /// What an input of tokens is given of the sample, as Plan.fbs says.
  std::vector<int32_t> of(plan::InputKind kind) const;
  /// How many of its targets count for the loss.
  uint32_t innerTargets() const;

private:
  /// Whether the token behind token `i` begins a document.
  bool endsDocument(size_t i) const;
  /// Neither is the target of token `i` of another document, nor does a mask
  /// leave it out.
  bool hasTarget(size_t i) const { return counts[i] && !endsDocument(i); }

  std::vector<int32_t> tokens, targets;
  std::vector<int32_t> documents; // one more, of the last target; may be empty
  std::vector<unsigned char> counts; // of targets; may be empty
};

} // namespace meshwork::runtime
