// Attention as its definition says it, slowly, in double precision.
#pragma once

#include "test/Runtime/cpu/TestProgram.h"

namespace meshwork::runtime::test {

struct AttentionCase {
  int64_t b = 1, s = 64, heads = 2, kvHeads = 2, d = 64;
  bool causal = false;
  int64_t window = 0;
  float scale = 0.125f, cap = 0;
  DType dtype = DType::f32;
  double rate = 0;                     // of dropout
  int32_t firstSample = 3;             // global
  std::vector<int64_t> documents = {}; // begin here too; b further in sample b
  std::vector<int64_t> rows =
      {}; // queries that are there, -1: padding; none: all
  std::vector<int64_t> keys = {}; // of the sequence that k has, likewise
  bool f32Results = false;        // beside bf16 operands
  bool fused = false; // q, k, v are slices of one [b, s, 3, heads, d]
  bool empty = false; // no values are written

  int64_t queries() const {
    return rows.empty() ? s : static_cast<int64_t>(rows.size());
  }
  int64_t queryOf(int64_t row) const { return rows.empty() ? row : rows[row]; }
  int64_t keyRows() const {
    return keys.empty() ? s : static_cast<int64_t>(keys.size());
  }
  int64_t keyOf(int64_t row) const { return keys.empty() ? row : keys[row]; }
  DType resultType() const { return f32Results ? DType::f32 : dtype; }
};

/// Of the keys that are there; `whole...` of all keys of the sequence.
struct AttentionReference {
  Values out, lse, wholeOut, wholeLse, dq, dk, dv;
};

struct AttentionProblem {
  explicit AttentionProblem(const AttentionCase &shape);
  /// Forward and backward from the inputs in the program.
  AttentionReference reference() const;
  /// Gives backward what it takes of whole rows; where all keys are there,
  /// these are forward's results.
  void writeWhole(const AttentionReference &reference);

  AttentionCase shape;
  TestProgram program;
  plan::AttentionT forward;
  plan::AttentionGradT backward;

private:
  void addOperands();
  void addFused();
  void addDropout(plan::AttentionPartT &to);
  void addDocuments(plan::AttentionPartT &to);
  void addPositions(plan::AttentionPartT &to);
  void writeInputs();
  Values ofKeys(const Values &whole) const;

  Values wholeK, wholeV; // with all keys
};

} // namespace meshwork::runtime::test
