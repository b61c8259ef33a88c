// Bad plans, continued: where documents begin, as an input and as what
// attention reads; which queries its rows are.
#include "Mutants.h"

namespace meshwork::plan::test {
namespace {

/// x seen as [2, 16, heads, 4].
uint32_t headsOf(ProgramT &p, uint32_t view, int64_t heads) {
  uint32_t added =
      addView(p, p.views[view]->buffer, DType::f32, {2, 16, heads, 4});
  p.views[added]->strides = {128, 8, 4, 1};
  return added;
}

/// Causal attention of x that reads the documents, and the gradient of it, as
/// the last two instructions of a microbatch.
PlanT documentsPlan() {
  PlanT plan = tinyPlan({.ranks = 4});
  ProgramT &p = *plan.programs[0];
  uint32_t documents = addDocuments(plan);
  AttentionT op;
  op.q = headsOf(p, x, 2);
  op.k = op.v = headsOf(p, x, 1);
  uint32_t out =
      addTensor(p, "out", BufferKind::activations, DType::f32, {2, 16, 8});
  op.out = headsOf(p, out, 2);
  op.lse = addTensor(p, "lse", BufferKind::activations, DType::f32, {2, 2, 16});
  op.part = std::make_unique<AttentionPartT>();
  op.part->scale = 0.5f;
  op.part->causal = true;
  op.part->documents = documents;
  AttentionGradT grad;
  grad.q = op.q;
  grad.k = grad.v = op.k;
  grad.out = grad.dout = op.out;
  grad.lse = op.lse;
  grad.dq = headsOf(
      p, addTensor(p, "dq", BufferKind::activations, DType::f32, {2, 16, 8}),
      2);
  for (uint32_t *to : {&grad.dk, &grad.dv})
    *to = headsOf(p,
                  addTensor(p, "dk or dv", BufferKind::activations, DType::f32,
                            {2, 16, 8}),
                  1);
  grad.part = std::make_unique<AttentionPartT>(*op.part);
  insert(forwardOf(p), 3, "attention", std::move(op));
  insert(forwardOf(p), 4, "attention (gradient)", std::move(grad));
  return plan;
}

AttentionT &attention(ProgramT &p) { return microbatchOp<AttentionT>(p, 3); }
AttentionGradT &gradient(ProgramT &p) {
  return microbatchOp<AttentionGradT>(p, 4);
}
InputT &documents(ProgramT &p) { return *p.inputs.back(); }

TEST(PlanCheck, documentsAsAnInput) {
  expectRefused(
      documentsPlan,
      {
          {"inputs: documents is there twice",
           [](PlanT &, ProgramT &p) {
             p.inputs.push_back(std::make_unique<InputT>(documents(p)));
           }},
          {"inputs: documents is view 99",
           [](PlanT &, ProgramT &p) { documents(p).view = 99; }},
          {"inputs: documents is i32[3], expected i32 of 2 dims",
           [](PlanT &, ProgramT &p) { documents(p).view = random; }},
          {"inputs: documents is f32[2,16], expected i32 of 2 dims",
           [](PlanT &, ProgramT &p) {
             documents(p).view = addView(p, 0, DType::f32, {2, 16});
           }},
          {"inputs: documents is not contiguous",
           [](PlanT &, ProgramT &p) {
             documents(p).view = addView(p, 0, DType::i32, {2, 16});
             p.views.back()->strides = {1, 2};
           }},
          {"inputs: documents has axes, a size or a hop",
           [](PlanT &, ProgramT &p) { documents(p).size = 16; }},
          {"inputs: documents: buffer \"documents\" does not persist",
           [](PlanT &, ProgramT &p) {
             p.buffers[p.views[documents(p).view]->buffer]->persistent = false;
           }},
      });
}

/// Rows of queries and of keys: positions that are numbers of tokens.
uint32_t rows(ProgramT &p) {
  return addView(p, p.views[tokens]->buffer, DType::i32, {16});
}

TEST(PlanCheck, keysThatAttentionReads) {
  expectRefused(
      documentsPlan,
      {
          {"\"attention\": has 16 keys in all but no key positions",
           [](PlanT &, ProgramT &p) { attention(p).part->total_keys = 16; }},
          {"\"attention\": has key positions but none of its queries",
           [](PlanT &, ProgramT &p) {
             attention(p).part->key_positions = rows(p);
           }},
          {"key positions is i32[3], expected i32[16]",
           [](PlanT &, ProgramT &p) {
             attention(p).part->positions = rows(p);
             attention(p).part->key_positions = random;
           }},
          {"has 0 keys in all, expected 1 to 2147483648",
           [](PlanT &, ProgramT &p) {
             attention(p).part->positions = attention(p).part->key_positions =
                 rows(p);
           }},
          {"\"attention (gradient)\": has 2147483649 keys in all, expected 1 "
           "to "
           "2147483648",
           [](PlanT &, ProgramT &p) {
             gradient(p).part->positions = gradient(p).part->key_positions =
                 rows(p);
             gradient(p).part->total_keys = (int64_t{1} << 31) + 1;
           }},
          {"key_positions is view 999",
           [](PlanT &, ProgramT &p) {
             attention(p).part->key_positions = 999;
           }},
      });
}

TEST(PlanCheck, documentsThatAttentionReads) {
  expectRefused(
      documentsPlan,
      {
          {"\"attention\": documents is f32[2,16], expected i32[2,16]",
           [](PlanT &, ProgramT &p) {
             attention(p).part->documents = addView(p, 0, DType::f32, {2, 16});
           }},
          {"documents is i32[3], expected i32[2,16]",
           [](PlanT &, ProgramT &p) { attention(p).part->documents = random; }},
          {"documents is i32[16,2], expected i32[2,16]",
           [](PlanT &, ProgramT &p) {
             attention(p).part->documents =
                 addView(p, p.views[tokens]->buffer, DType::i32, {16, 2});
           }},
          {", expected no gaps",
           [](PlanT &, ProgramT &p) {
             uint32_t gaps = addView(p, 0, DType::i32, {2, 16});
             p.views[gaps]->strides = {32, 1};
             attention(p).part->documents = gaps;
           }},
          {"documents is view 99",
           [](PlanT &, ProgramT &p) { attention(p).part->documents = 99; }},
          {"\"attention\": has documents but is not causal",
           [](PlanT &, ProgramT &p) { attention(p).part->causal = false; }},
          {"\"attention (gradient)\": has documents but is not causal",
           [](PlanT &, ProgramT &p) { gradient(p).part->causal = false; }},
          {"\"attention (gradient)\": documents is i32[3]",
           [](PlanT &, ProgramT &p) { gradient(p).part->documents = random; }},
      });
}

TEST(PlanCheck, positionsThatAttentionReads) {
  auto shortKeys = [](ProgramT &p, const AttentionT &op) {
    p.views[op.k]->shape[1] = 12; // k and v are one view
  };
  expectRefused(
      documentsPlan,
      {
          {"\"attention\": positions is i32[3], expected i32[16]",
           [](PlanT &, ProgramT &p) { attention(p).part->positions = random; }},
          {"\"attention (gradient)\": positions is i32[3], expected i32[16]",
           [](PlanT &, ProgramT &p) { gradient(p).part->positions = random; }},
          {"positions is view 99",
           [](PlanT &, ProgramT &p) { attention(p).part->positions = 99; }},
          {"positions are i32[16], expected no gaps",
           [](PlanT &, ProgramT &p) {
             attention(p).part->positions = addView(p, 0, DType::i32, {16});
             p.views.back()->strides = {2};
           }},
          {"\"attention\": k is f32[2,12,1,4], expected f32[2,16,1,4]",
           [=](PlanT &, ProgramT &p) { shortKeys(p, attention(p)); }},
      });
}

/// As many rows as there are positions, and none for -1.
TEST(PlanCheck, rowsThatDocumentsLookUp) {
  auto lookUp = [](ProgramT &p, InputKind kind) {
    documents(p).kind = kind;
    microbatchOp<EmbeddingT>(p, 0).ids = documents(p).view;
  };
  expectRefused(
      documentsPlan,
      {
          {"the table has 8 rows, the sequence 16 positions",
           [=](PlanT &, ProgramT &p) {
             lookUp(p, InputKind::document_positions);
             auto &op = microbatchOp<EmbeddingT>(p, 0);
             op.table =
                 addView(p, p.views[op.table]->buffer, DType::f32, {8, 8});
           }},
          {"ids are inner_targets, which may be -1, expected rows of the table",
           [=](PlanT &, ProgramT &p) { lookUp(p, InputKind::inner_targets); }},
      });
}

TEST(PlanCheck, countsOfTargets) {
  auto count = [](ProgramT &p, uint32_t view) {
    documents(p).kind = InputKind::target_counts;
    documents(p).view = view;
  };
  expectRefused(
      documentsPlan,
      {
          {"inputs: target_counts is i32[2,16], expected f32 of 1 dim",
           [=](PlanT &, ProgramT &p) { count(p, documents(p).view); }},
          {"inputs: target_counts is f32[3], expected f32[2]",
           [=](PlanT &, ProgramT &p) {
             count(p,
                   addTensor(p, "counts", BufferKind::input, DType::f32, {3}));
           }},
          {"inputs: target_counts has axes, a size or a hop",
           [=](PlanT &, ProgramT &p) {
             count(p,
                   addTensor(p, "counts", BufferKind::input, DType::f32, {2}));
             documents(p).axes = {0};
           }},
      });
}

// Nobody writes them.
TEST(PlanCheck, documentsAreThereWhenRead) {
  expectRefused(
      documentsPlan,
      {
          {"\"attention\": part.documents reads buffer \"documents\" before "
           "anything was written to it",
           [](PlanT &, ProgramT &p) {
             p.buffers[p.views[documents(p).view]->buffer]->persistent = false;
             p.inputs.pop_back();
           }},
      });
}

} // namespace
} // namespace meshwork::plan::test
