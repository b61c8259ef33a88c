// What every reader of a plan knows of its element types, and of the whole.
#pragma once

#include "meshwork/Plan/Plan.h"

namespace meshwork::plan {

/// Of one element.
constexpr int bytesOf(DType type) {
  switch (type) {
  case DType::f32:
  case DType::i32:
    return 4;
  case DType::bf16:
    return 2;
  case DType::e4m3:
  case DType::e5m2:
  case DType::i8:
    return 1;
  }
  return 0;
}

/// What is computed with, not only multiplied or moved.
constexpr bool isWideFloat(DType type) {
  return type == DType::f32 || type == DType::bf16;
}
constexpr bool isFloat8(DType type) {
  return type == DType::e4m3 || type == DType::e5m2;
}

/// Whether such an input has a number for each token of a microbatch.
constexpr bool isOfTokens(InputKind kind) {
  return kind == InputKind::tokens || kind == InputKind::targets ||
         kind == InputKind::documents ||
         kind == InputKind::document_positions ||
         kind == InputKind::inner_targets;
}

/// Whether such an input tells a rank which part of a dim it has: numbers that
/// are written once, when a plan is loaded.
constexpr bool isOfPart(InputKind kind) {
  return kind == InputKind::coordinate || kind == InputKind::extent ||
         kind == InputKind::positions;
}

/// Whether some rank has such an input.
inline bool reads(const Plan &plan, InputKind kind) {
  for (const Program *program : *plan.programs())
    if (program->inputs())
      for (const Input *input : *program->inputs())
        if (input->kind() == kind)
          return true;
  return false;
}

/// Whether a run must say where documents begin.
inline bool readsDocuments(const Plan &plan) {
  return reads(plan, InputKind::documents) ||
         reads(plan, InputKind::document_positions) ||
         reads(plan, InputKind::inner_targets);
}

} // namespace meshwork::plan
