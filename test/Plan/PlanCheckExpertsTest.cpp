// Bad plans, continued: instructions of mixtures of experts. Labels are the
// rules of the schedule dialect's ops.
#include "Mutants.h"
#include "lib/Plan/CheckOperands.h"
#include "meshwork/Plan/Frame.h"

namespace meshwork::plan::test {
namespace {

/// A plan of an instruction at the begin of the update, and what it is changed
/// in.
template <typename Op> struct Changed {
  PlanT plan = tinyPlan({.ranks = 4});
  ProgramT &p = *plan.programs[0];
  Op op;

  uint32_t floats(std::vector<int64_t> shape) {
    return addTensor(p, "f", BufferKind::communication, DType::f32, shape);
  }
  uint32_t halves(std::vector<int64_t> shape) {
    return addTensor(p, "h", BufferKind::communication, DType::bf16, shape);
  }
  uint32_t numbers(std::vector<int64_t> shape) {
    return addTensor(p, "n", BufferKind::communication, DType::i32, shape);
  }
  /// Another view of that one's buffer, from its begin on.
  uint32_t over(uint32_t view, DType type, std::vector<int64_t> shape) {
    return addView(p, p.views[view]->buffer, type, shape);
  }
  void stride(uint32_t view, std::vector<int64_t> strides) {
    p.views[view]->strides = strides;
  }
  absl::Status check() {
    setLossKnown(p, 2);
    insert(updateOf(p), 0, "experts", op);
    return PlanFile::fromBytes(encode(plan)).status();
  }
};

/// `make` gives a good one, each of `changes` an error with its text.
template <typename Op> struct Refusals {
  using Change = std::function<void(Changed<Op> &)>;
  Change make;

  void accepts(Change change) const {
    Changed<Op> changed;
    make(changed);
    change(changed);
    absl::Status status = changed.check();
    EXPECT_TRUE(status.ok()) << status;
  }
  void refuses(const std::string &expected, Change change) const {
    Changed<Op> changed;
    make(changed);
    change(changed);
    std::string found(changed.check().message());
    EXPECT_NE(found.find(expected), std::string::npos)
        << "expected: " << expected << "\nfound: " << found;
  }
};

TEST(PlanCheckExperts, picks) {
  using With = Changed<PickT>;
  Refusals<PickT> pick{[](With &w) {
    w.op.scores = w.floats({2, 5, 8});
    w.op.choices = w.numbers({2, 5, 3});
    w.op.out = w.floats({2, 5, 3});
  }};
  pick.accepts([](With &) {});
  pick.accepts([](With &w) { w.stride(w.op.scores, {40, 8, 1}); });
  pick.refuses("choices are f32[2,5,3], expected i32[rows...,k]",
               [](With &w) { w.op.choices = w.floats({2, 5, 3}); });
  pick.refuses("out is f32[2,5,2], expected f32[2,5,3]",
               [](With &w) { w.op.out = w.floats({2, 5, 2}); });
  pick.refuses("scores is i32[2,5,8], expected f32[rows...,experts]",
               [](With &w) { w.op.scores = w.numbers({2, 5, 8}); });
  pick.refuses("scores is f32[5,2,8], expected f32[rows...,experts]",
               [](With &w) { w.op.scores = w.floats({5, 2, 8}); });
  pick.refuses("scores is f32[], expected f32[rows...,experts]", [](With &w) {
    w.op.choices = w.numbers({3});
    w.op.out = w.floats({3});
    w.op.scores = w.floats({});
  });
  pick.refuses("scores is f32[2,5,8], expected dense rows at one stride",
               [](With &w) {
                 w.op.scores = w.floats({2, 5, 16});
                 w.p.views[w.op.scores]->shape = {2, 5, 8};
                 w.stride(w.op.scores, {80, 16, 2});
               });
  pick.refuses("choices is i32[2,5,3], expected dense rows at one stride",
               [](With &w) { w.stride(w.op.choices, {3, 6, 1}); });
  pick.refuses("out and scores share bytes of buffer", [](With &w) {
    w.op.out = w.over(w.op.scores, DType::f32, {2, 5, 3});
  });
  pick.refuses("out is view 999", [](With &w) { w.op.out = 999; });
  pick.refuses("scores is absent", [](With &w) { w.op.scores = noView; });

  using Grad = Changed<PickGradT>;
  Refusals<PickGradT> grad{[](Grad &w) {
    w.op.dscores = w.floats({5, 8});
    w.op.choices = w.numbers({5, 3});
    w.op.dout = w.floats({5, 3});
  }};
  grad.accepts([](Grad &) {});
  grad.refuses("dout is i32[5,3], expected f32[5,3]",
               [](Grad &w) { w.op.dout = w.numbers({5, 3}); });
  grad.refuses("dscores is bf16[5,8], expected f32[rows...,experts]",
               [](Grad &w) { w.op.dscores = w.halves({5, 8}); });
  grad.refuses("dout is f32[5,3], expected dense rows",
               [](Grad &w) { w.stride(w.op.dout, {1, 5}); });
  grad.refuses("dscores and dout share bytes", [](Grad &w) {
    w.op.dout = w.over(w.op.dscores, DType::f32, {5, 3});
  });
}

TEST(PlanCheckExperts, limitedChoices) {
  using With = Changed<LimitChoicesT>;
  Refusals<LimitChoicesT> limit{[](With &w) {
    w.op.choices = w.numbers({2, 6, 3});
    w.op.kept = w.numbers({2, 6, 3});
    w.op.experts = 4;
    w.op.most = 2;
    w.op.group = 6;
  }};
  limit.accepts([](With &) {});
  limit.accepts([](With &w) { w.op.group = 12; });
  limit.refuses("choices is f32[2,6,3], expected i32",
                [](With &w) { w.op.choices = w.floats({2, 6, 3}); });
  limit.refuses("choices is i32[2,6,3] with gaps",
                [](With &w) { w.stride(w.op.choices, {3, 6, 1}); });
  limit.refuses("kept is i32[12,3], expected i32[2,6,3]",
                [](With &w) { w.op.kept = w.numbers({12, 3}); });
  limit.refuses("leaves 2 choices of each of 0 experts",
                [](With &w) { w.op.experts = 0; });
  limit.refuses("leaves 2 choices of each of 4294967296 experts",
                [](With &w) { w.op.experts = int64_t{1} << 32; });
  limit.refuses("leaves 0 choices", [](With &w) { w.op.most = 0; });
  for (int64_t group : {-6, 0, 5, 24})
    limit.refuses("has groups of " + std::to_string(group) + " of 12 tokens",
                  [group](With &w) { w.op.group = group; });
  limit.refuses("kept and choices share bytes", [](With &w) {
    w.op.kept = w.over(w.op.choices, DType::i32, {2, 6, 3});
  });
}

TEST(PlanCheckExperts, sortsOfRows) {
  using With = Changed<SortRowsT>;
  Refusals<SortRowsT> sort{[](With &w) {
    w.op.choices = w.numbers({2, 5, 3});
    w.op.first_expert = w.numbers({});
    w.op.order = w.numbers({30});
    w.op.tokens = w.numbers({30});
    w.op.places = w.numbers({2, 5, 3});
    w.op.begins = w.numbers({5});
  }};
  sort.accepts([](With &) {});
  sort.accepts([](With &w) { w.op.first_expert = noView; });
  sort.accepts([](With &w) { // Two experts: a token chooses each once.
    w.op.begins = w.numbers({3});
    w.op.order = w.numbers({20});
    w.op.tokens = w.numbers({20});
  });
  sort.refuses("choices is f32[2,5,3], expected i32",
               [](With &w) { w.op.choices = w.floats({2, 5, 3}); });
  sort.refuses("choices is i32[2,5,3] with gaps, expected none",
               [](With &w) { w.stride(w.op.choices, {3, 6, 1}); });
  sort.refuses("places is i32[10,3], expected i32[2,5,3]",
               [](With &w) { w.op.places = w.numbers({10, 3}); });
  sort.refuses("choices have no dims", [](With &w) {
    w.op.choices = w.numbers({});
    w.op.places = w.numbers({});
  });
  sort.refuses("order is f32[30], expected i32",
               [](With &w) { w.op.order = w.floats({30}); });
  sort.refuses("order is i32[5,6], expected 1 dims",
               [](With &w) { w.op.order = w.numbers({5, 6}); });
  sort.refuses("tokens is i32[31], expected i32[30]",
               [](With &w) { w.op.tokens = w.numbers({31}); });
  sort.refuses("begins is i32[1], expected one more than experts",
               [](With &w) { w.op.begins = w.numbers({1}); });
  sort.refuses("has 29 rows for 10 tokens of 3 choices and 4 experts, expected "
               "at least 30",
               [](With &w) {
                 w.op.order = w.numbers({29});
                 w.op.tokens = w.numbers({29});
               });
  sort.refuses("has 29 rows for 10 tokens of 3 choices and 4 experts, expected "
               "at least 30",
               [](With &w) {
                 w.op.order = w.numbers({29});
                 w.op.tokens = w.numbers({29});
                 w.op.most_choices = 31;
               });
  sort.refuses("has rows for at most -1 choices, expected 0, for all, or more",
               [](With &w) { w.op.most_choices = -1; });
  sort.accepts([](With &w) {
    w.op.order = w.numbers({12});
    w.op.tokens = w.numbers({12});
    w.op.most_choices = 12;
  });
  sort.refuses("first_expert is i32[2], expected one i32",
               [](With &w) { w.op.first_expert = w.numbers({2}); });
  sort.refuses("tokens and order share bytes",
               [](With &w) { w.op.tokens = w.op.order; });
  sort.refuses("places and choices share bytes",
               [](With &w) { w.op.places = w.op.choices; });
}

TEST(PlanCheckExperts, assignedSlots) {
  using With = Changed<AssignSlotsT>;
  Refusals<AssignSlotsT> slots{[](With &w) {
    w.op.experts = 2;
    w.op.most_choices = 8;
    w.op.choices = w.numbers({2, 5, 3});
    w.op.slots = w.numbers({12, 4}); // three rounds of four ranks
    w.op.ranks = w.numbers({2, 5, 3});
    w.op.places = w.numbers({6, 5, 3});
    w.op.last = w.numbers({});
  }};
  slots.accepts([](With &) {});
  slots.accepts([](With &w) { w.op.ranks = w.numbers({2, 5, 3}); });
  slots.refuses("choices is f32[2,5,3], expected i32",
                [](With &w) { w.op.choices = w.floats({2, 5, 3}); });
  slots.refuses("a rank has 0 experts", [](With &w) { w.op.experts = 0; });
  slots.refuses("a rank has -1 experts", [](With &w) { w.op.experts = -1; });
  slots.refuses("ranks are i32[10,3]",
                [](With &w) { w.op.ranks = w.numbers({10, 3}); });
  slots.refuses("slots is i32[48], expected 2 dims",
                [](With &w) { w.op.slots = w.numbers({48}); });
  slots.refuses("places is i32[6,5,3] with gaps, expected none",
                [](With &w) { w.stride(w.op.places, {3, 18, 1}); });
  slots.refuses("expected a multiple of ranks",
                [](With &w) { w.op.places = w.numbers({5, 5, 3}); });
  slots.refuses("expected a multiple of ranks",
                [](With &w) { w.op.slots = w.numbers({11, 4}); });
  slots.refuses("has 3 rounds of 3 slots and 8 choices for 10 tokens with 2",
                [](With &w) { w.op.slots = w.numbers({12, 3}); });
  slots.refuses("has 3 rounds of 4 slots and 7 choices for 10 tokens with 2",
                [](With &w) { w.op.most_choices = 7; });
  slots.refuses("and -8 choices for", [](With &w) { w.op.most_choices = -8; });
  slots.refuses("places for 2 ranks of a token, expected 3", [](With &w) {
    w.op.ranks = w.numbers({2, 5, 2});
    w.op.places = w.numbers({6, 5, 2});
  });
  slots.refuses("last is i32[2], expected one i32",
                [](With &w) { w.op.last = w.numbers({2}); });
  slots.refuses("slots and choices share bytes", [](With &w) {
    w.op.slots = w.over(w.op.choices, DType::i32, {6, 5});
  });
}

TEST(PlanCheckExperts, takenAndCombinedRows) {
  using Take = Changed<TakeRowsT>;
  Refusals<TakeRowsT> take{[](Take &w) {
    w.op.table = w.floats({7, 2, 4});
    w.op.rows = w.numbers({3, 5});
    w.op.out = w.halves({3, 5, 2, 4});
  }};
  take.accepts([](Take &) {});
  take.accepts([](Take &w) { // Numbers of a list.
    w.op.table = w.floats({7});
    w.op.out = w.floats({3, 5});
  });
  take.refuses("rows is f32[3,5], expected i32",
               [](Take &w) { w.op.rows = w.floats({3, 5}); });
  take.refuses("rows is i32[3,5] with gaps",
               [](Take &w) { w.stride(w.op.rows, {1, 3}); });
  take.refuses(
      "table is i32[7,2,4] and out bf16[3,5,2,4], expected f32 or bf16",
      [](Take &w) { w.op.table = w.numbers({7, 2, 4}); });
  take.refuses("table is f32[] and out",
               [](Take &w) { w.op.table = w.floats({}); });
  take.refuses("out is f32[3,5,8], expected f32[3,5,2,4]",
               [](Take &w) { w.op.out = w.floats({3, 5, 8}); });
  take.refuses("table is f32[7,2,4], expected dense rows at one stride",
               [](Take &w) { w.stride(w.op.table, {8, 1, 2}); });
  take.refuses("out and rows share bytes", [](Take &w) {
    w.op.rows = w.over(w.op.out, DType::i32, {3, 5});
  });

  using Combine = Changed<CombineRowsT>;
  Refusals<CombineRowsT> combine{[](Combine &w) {
    w.op.src = w.halves({30, 8});
    w.op.places = w.numbers({2, 5, 3});
    w.op.choices = w.numbers({2, 5, 3});
    w.op.out = w.floats({2, 5, 8});
  }};
  combine.accepts([](Combine &) {});
  combine.refuses("places is i32[2,5,2], expected i32[2,5,3]",
                  [](Combine &w) { w.op.places = w.numbers({2, 5, 2}); });
  combine.refuses("out is f32[2,5,3,8], expected f32[2,5,8]",
                  [](Combine &w) { w.op.out = w.floats({2, 5, 3, 8}); });
  combine.refuses("src is i32[30,8] and out",
                  [](Combine &w) { w.op.src = w.numbers({30, 8}); });
  combine.refuses("src is bf16[30,8], expected dense rows",
                  [](Combine &w) { w.stride(w.op.src, {1, 30}); });
  combine.refuses("out and src share bytes", [](Combine &w) {
    w.op.out = w.floats({2, 5, 8});
    w.op.src = w.over(w.op.out, DType::bf16, {20, 8});
  });
}

TEST(PlanCheckExperts, groupedProducts) {
  using With = Changed<GroupedProductT>;
  Refusals<GroupedProductT> product{[](With &w) {
    w.op.lhs = w.halves({30, 8});
    w.op.rhs = w.halves({4, 8, 6});
    w.op.begins = w.numbers({5});
    w.op.out = w.floats({30, 6});
  }};
  product.accepts([](With &) {});
  product.accepts([](With &w) { w.stride(w.op.rhs, {48, 1, 8}); });
  product.accepts([](With &w) { w.op.out = w.halves({30, 6}); });
  product.refuses("rhs is bf16[8,6], expected 3 dims",
                  [](With &w) { w.op.rhs = w.halves({8, 6}); });
  product.refuses("lhs is bf16[6,5,8], expected 2 dims",
                  [](With &w) { w.op.lhs = w.halves({6, 5, 8}); });
  product.refuses("rhs is bf16[4,7,6], expected bf16[4,8,6]",
                  [](With &w) { w.op.rhs = w.halves({4, 7, 6}); });
  product.refuses("out is f32[29,6], expected f32[30,6]",
                  [](With &w) { w.op.out = w.floats({29, 6}); });
  product.refuses("lhs is f32[30,8] and rhs bf16[4,8,6], expected both",
                  [](With &w) { w.op.lhs = w.floats({30, 8}); });
  product.refuses(
      "out is bf16[30,6], expected f32, or bf16 beside operands of bf16",
      [](With &w) {
        w.op.lhs = w.floats({30, 8});
        w.op.rhs = w.floats({4, 8, 6});
        w.op.out = w.halves({30, 6});
      });
  product.refuses("begins is i32[4], expected i32[5]",
                  [](With &w) { w.op.begins = w.numbers({4}); });
  product.refuses("begins is f32[5], expected i32[5]",
                  [](With &w) { w.op.begins = w.floats({5}); });
  product.refuses("lhs is bf16[30,8], expected dense rows",
                  [](With &w) { w.stride(w.op.lhs, {1, 30}); });
  product.refuses("rhs is bf16[4,8,6] with inner strides 4 and 32, expected",
                  [](With &w) { w.stride(w.op.rhs, {1, 4, 32}); });
  product.refuses("out and lhs share bytes", [](With &w) {
    w.op.lhs = w.over(w.op.out, DType::bf16, {30, 8});
  });
}

TEST(PlanCheckExperts, groupedGradients) {
  using With = Changed<GroupedGradientT>;
  Refusals<GroupedGradientT> gradient{[](With &w) {
    w.op.lhs = w.halves({30, 8});
    w.op.rhs = w.halves({30, 6});
    w.op.begins = w.numbers({5});
    w.op.dst = w.floats({4, 8, 6});
    w.op.accumulate = Accumulate::no;
  }};
  gradient.accepts([](With &) {});
  gradient.accepts([](With &w) { w.stride(w.op.dst, {48, 1, 8}); });
  gradient.refuses("dst is f32[8,6], expected 3 dims",
                   [](With &w) { w.op.dst = w.floats({8, 6}); });
  gradient.refuses("rhs is bf16[29,6], expected bf16[30,6]",
                   [](With &w) { w.op.rhs = w.halves({29, 6}); });
  gradient.refuses("dst is f32[4,6,8], expected f32[4,8,6]",
                   [](With &w) { w.op.dst = w.floats({4, 6, 8}); });
  gradient.refuses("lhs is bf16[30,8] and rhs f32[30,6], expected both",
                   [](With &w) { w.op.rhs = w.floats({30, 6}); });
  gradient.refuses("begins is i32[6], expected i32[5]",
                   [](With &w) { w.op.begins = w.numbers({6}); });
  gradient.refuses("rhs is bf16[30,6], expected dense rows",
                   [](With &w) { w.stride(w.op.rhs, {1, 30}); });
  gradient.refuses("dst is f32[4,8,6] with inner strides",
                   [](With &w) { w.stride(w.op.dst, {1, 4, 32}); });
  gradient.refuses("dst and rhs share bytes", [](With &w) {
    w.op.rhs = w.over(w.op.dst, DType::bf16, {30, 6});
  });
  gradient.refuses("unknown accumulate mode 3", [](With &w) {
    w.op.accumulate = static_cast<Accumulate>(3);
  });
}

} // namespace
} // namespace meshwork::plan::test
