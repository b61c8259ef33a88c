// Bad plans, continued: shifts, shards, shapes of collectives, channels.
#include "TestPlan.h"
#include "lib/Plan/PlanFile.h"
#include "meshwork/Plan/Frame.h"
#include <functional>
#include <gtest/gtest.h>

namespace meshwork::plan::test {
namespace {
using Kind = CollectiveKind;

absl::Status check(const PlanT &plan) {
  return PlanFile::fromBytes(encode(plan)).status();
}

void expectText(const PlanT &plan, const std::string &expected) {
  absl::Status status = check(plan);
  EXPECT_FALSE(status.ok()) << "accepted: " << expected;
  EXPECT_NE(std::string(status.message()).find(expected), std::string::npos)
      << "expected: " << expected << "\nfound: " << status;
}

TEST(PlanCheck, shifts) {
  PlanT plan = tinyPlan({.ranks = 4});
  ProgramT &p = *plan.programs[0];
  uint32_t own = addView(p, 0, DType::f32, {64, 8});
  shift(p, own, {0}, 64 * 8 * 4);
  EXPECT_TRUE(check(plan).ok()) << check(plan);
  p.views[own]->shifts[0]->bytes += 4;
  expectText(plan, "f32[64,8] at offset 0, shifted by up to 6156, needs 2048");
  p.views[own]->shifts[0]->bytes = 6;
  expectText(plan, "multiple of its element");
  p.views[own]->shifts[0]->bytes = uint64_t{1} << 63;
  expectText(plan, "64 bits");
  p.views[own]->shifts[0]->axes = {1};
  expectText(plan, "axis 1 is not one of 1");
}

TEST(PlanCheck, shards) {
  PlanT good = tinyPlan({.ranks = 4});
  uint32_t own = addTensor(*good.programs[0], "own", BufferKind::optimizer,
                           DType::f32, {64, 8});
  keep(*good.programs[0]->parameters[0], "first_moment", own, {{0}, {}});
  EXPECT_TRUE(check(good).ok()) << check(good);
  auto refuse = [&](std::vector<std::vector<uint32_t>> dims,
                    const char *expected) {
    PlanT plan = good;
    keep(*plan.programs[0]->parameters[0], "first_moment", own, dims);
    expectText(plan, expected);
  };
  refuse({{}, {0}}, "first_moment is f32[64,8], expected its block [256,2]");
  refuse({}, "first_moment is f32[64,8], expected its block [256,8]");
  refuse({{0}}, "names axes for 1 dims, the shape has 2");
  refuse({{0}, {0}}, "split over axis 0 in two dims");
  refuse({{3}, {}}, "axis 3 is not");
  good.programs[0]->parameters[0]->shape = {256, 9};
  expectText(good,
             "its shape has 2304 elements, the product of file_shape is 2048");
}

TEST(PlanCheck, coordinates) {
  PlanT plan = tinyPlan({.ranks = 4});
  ProgramT &p = *plan.programs[0];
  auto add = [&](const char *name) {
    p.inputs.push_back(std::make_unique<InputT>());
    p.inputs.back()->kind = InputKind::coordinate;
    p.inputs.back()->axes = {0};
    p.inputs.back()->size = 256;
    return p.inputs.back()->view =
               addTensor(p, name, BufferKind::input, DType::i32, {1});
  };
  add("first");
  uint32_t second = add("second");
  EXPECT_TRUE(check(plan).ok()) << check(plan);
  auto &embedding = opOf<EmbeddingT>(*forwardOf(p)[0]);
  plan.vocabulary = 300; // A shard of the table need not hold it.
  embedding.first_row = second;
  EXPECT_TRUE(check(plan).ok() ||
              check(plan).message().find("the table has") != std::string::npos);
  opOf<EmbeddingGradT>(*forwardOf(p)[2]).first_row = second;
  EXPECT_TRUE(check(plan).ok()) << check(plan);
  embedding.first_row = tokens;
  expectText(plan, "first_row is i32[2,16], expected one i32");
  embedding.first_row = 999;
  expectText(plan, "first_row is view 999");
  embedding.first_row = second;
  p.inputs.back()->size = 0;
  expectText(plan, "coordinate has the size 0, expected a positive number");
  p.inputs.back()->kind = InputKind::extent;
  expectText(plan, "extent has the size 0, expected a positive number");
  p.inputs.back()->size = INT32_MAX; // Three blocks fit, and one is short.
  EXPECT_TRUE(check(plan).ok()) << check(plan);
  p.inputs.back()->kind = InputKind::coordinate;
  p.inputs[0]->size = 1;
  expectText(plan, "tokens has axes, a size or a hop");
  p.inputs[0]->size = 0;
  p.inputs[0]->hop = 1;
  expectText(plan, "tokens has axes, a size or a hop");
  p.inputs[0]->hop = 0;
  p.inputs.back()->hop = 1;
  expectText(plan, "coordinate has the hop 1, expected none");
  p.inputs.back()->kind = InputKind::positions;
  p.inputs.back()->hop = 1000;
  expectText(plan, "positions has the hop 1000, expected less than the ");
  p.inputs.back()->kind = InputKind::coordinate;
  p.inputs.back()->hop = 0;
  p.buffers.back()->persistent = false;
  expectText(plan, "does not persist, expected one that lives to the end");
}

TEST(PlanCheck, positions) {
  PlanT plan = tinyPlan({.ranks = 4});
  ProgramT &p = *plan.programs[0];
  p.inputs.push_back(std::make_unique<InputT>());
  InputT &input = *p.inputs.back();
  input.kind = InputKind::positions;
  input.axes = {0};
  input.layouts = {Layout::zigzag};
  input.size = 17; // chunks of 3, two a rank
  input.view = addTensor(p, "table", BufferKind::input, DType::i32, {6});
  EXPECT_TRUE(check(plan).ok()) << check(plan);
  input.layouts = {};
  expectText(plan, "positions is i32[6], expected i32[5]");
  input.layouts = {Layout::zigzag, Layout::block};
  expectText(plan, "positions: found 2 layouts, expected none or one for each "
                   "of 1 axes");
  input.layouts = {static_cast<Layout>(2)};
  expectText(plan, "positions: unknown layout 2");
  input.layouts = {Layout::zigzag};
  input.size = 0;
  expectText(plan, "positions has the size 0, expected a positive number");
  input.size = 17;
  p.buffers.back()->persistent = false;
  expectText(plan, "does not persist, expected one that lives to the end");
  p.buffers.back()->persistent = true;
  input.kind = InputKind::extent;
  expectText(plan, "extent is of parts with layouts, expected blocks");
  input.kind = InputKind::positions;
  p.inputs[0]->axes = {0};
  p.inputs[0]->layouts = {Layout::zigzag};
  expectText(plan, "tokens is i32[2,16], expected i32[2,4]");
}

/// A plan with one more collective at the start of the update, over 4 ranks.
struct WithCollective {
  PlanT plan = tinyPlan({.ranks = 4});
  ProgramT &p = *plan.programs[0];
  uint32_t big = tensor({10, 6}), small = tensor({3, 6});

  uint32_t tensor(std::vector<int64_t> shape) {
    return addTensor(p, "t", BufferKind::communication, DType::f32, shape);
  }
  CollectiveT &add(Kind kind, uint32_t src, uint32_t dst, int dim = 0,
                   int toDim = 0) {
    CollectiveT op;
    op.kind = kind;
    op.axes = {0};
    op.parts.push_back(transfer(src, dst, dim, toDim));
    setLossKnown(p, 2);
    return opOf<CollectiveT>(insert(updateOf(p), 0, "moved", op));
  }
};

TEST(PlanCheck, blocksThatAreCopied) {
  auto plan = [](std::vector<int64_t> src, std::vector<int64_t> dst, int dim,
                 auto change) {
    WithCollective w;
    CopyBlockT op;
    op.src = w.tensor(src);
    op.dst = w.tensor(dst);
    op.dim = dim;
    op.first = addTensor(w.p, "first", BufferKind::input, DType::i32, {1});
    setLossKnown(w.p, 2);
    InstructionT &at = insert(updateOf(w.p), 0, "cut", op);
    change(opOf<CopyBlockT>(at));
    return std::move(w.plan);
  };
  auto refuse = [&](std::vector<int64_t> dst, int dim, const char *expected,
                    auto change) {
    expectText(plan({10, 6}, dst, dim, change), expected);
  };
  auto same = [](CopyBlockT &) {};
  PlanT good = plan({10, 6}, {3, 6}, 0, same);
  EXPECT_TRUE(check(good).ok()) << check(good);
  refuse({3, 6}, 1, "dst is f32[3,6], expected f32[10,6]", same);
  refuse({3}, 0, "along dim 0, expected a dim of both", same);
  refuse({3, 6}, 2, "along dim 2, expected a dim of both", same);
  refuse({3, 6}, -1, "along dim -1, expected a dim of both", same);
  refuse({10, 6}, 0, "src and dst share buffer",
         [](CopyBlockT &op) { op.dst = op.src; });
  refuse({3, 6}, 0, "first is f32[10,6], expected one i32",
         [](CopyBlockT &op) { op.first = op.src; });
  refuse({3, 6}, 0, "first is absent",
         [](CopyBlockT &op) { op.first = plan::noView; });
}

TEST(PlanCheck, choicesOfLargestElements) {
  auto plan = [](auto change) {
    WithCollective w;
    TopKT op;
    op.scores = w.tensor({2, 5, 8});
    op.valid = w.tensor({2, 5});
    op.choices =
        addTensor(w.p, "c", BufferKind::activations, DType::i32, {2, 5, 3});
    op.groups = 4;
    op.kept_groups = 2;
    op.group_score = GroupScore::two_best;
    setLossKnown(w.p, 2);
    change(opOf<TopKT>(insert(updateOf(w.p), 0, "choose", op)), w);
    return std::move(w.plan);
  };
  auto refuse = [&](const char *expected, auto change) {
    expectText(plan(change), expected);
  };
  using With = WithCollective;
  PlanT good = plan([](TopKT &, With &) {});
  EXPECT_TRUE(check(good).ok()) << check(good);
  PlanT plain = plan([](TopKT &op, With &) {
    op.valid = noView;
    op.groups = op.kept_groups = 1;
  });
  EXPECT_TRUE(check(plain).ok()) << check(plain);
  const char *types = ", expected i32[rows...,k] from f32[rows...,experts]";
  refuse(types, [](TopKT &op, With &) { op.scores = tokens; });
  refuse(types, [](TopKT &op, With &w) { op.choices = w.tensor({2, 5, 3}); });
  refuse(types, [](TopKT &op, With &w) { op.scores = w.tensor({5, 2, 8}); });
  refuse(types, [](TopKT &op, With &w) { op.scores = w.tensor({10, 8}); });
  refuse("scores and choices share buffer", [](TopKT &op, With &w) {
    op.choices =
        addView(w.p, w.p.views[op.scores]->buffer, DType::i32, {2, 5, 3});
  });
  refuse(
      "has stride 2, smaller than the 3 elements it steps over",
      [](TopKT &op, With &w) { w.p.views[op.choices]->strides = {15, 2, 1}; });
  refuse("choices is view 999", [](TopKT &op, With &) { op.choices = 999; });
  refuse("scores is absent", [](TopKT &op, With &) { op.scores = noView; });
  refuse("valid is f32[2,5,8], expected f32[2,5]",
         [](TopKT &op, With &) { op.valid = op.scores; });
  refuse("has 3 groups of 8 experts", [](TopKT &op, With &) { op.groups = 3; });
  for (int64_t groups : {int64_t{0}, int64_t{-4}, INT64_MIN, INT64_MAX})
    refuse("groups of 8 experts, expected a divisor of these",
           [&](TopKT &op, With &) { op.groups = groups; });
  for (int64_t kept : {int64_t{0}, int64_t{5}, int64_t{-1}, INT64_MAX})
    refuse("groups, expected 1 to 4",
           [&](TopKT &op, With &) { op.kept_groups = kept; });
  refuse("adds the two best of a group of one expert",
         [](TopKT &op, With &) { op.groups = 8; });
  refuse("makes 3 choices, expected 1 to 2",
         [](TopKT &op, With &) { op.kept_groups = 1; });
  refuse("unknown group score 2", [](TopKT &op, With &) {
    op.group_score = static_cast<GroupScore>(2);
  });
}

TEST(PlanCheck, shapesOfCollectives) {
  auto accept = [](Kind kind, std::vector<int64_t> src,
                   std::vector<int64_t> dst, int dim, int toDim) {
    WithCollective w;
    w.add(kind, w.tensor(src), w.tensor(dst), dim, toDim);
    EXPECT_TRUE(check(w.plan).ok()) << check(w.plan);
  };
  accept(Kind::all_gather, {3, 6}, {10, 6}, 0, 0);
  accept(Kind::all_gather, {3, 6}, {12, 6}, 0, 0);
  accept(Kind::reduce_scatter, {10, 6}, {10, 2}, 1, 0);
  accept(Kind::all_to_all, {3, 6}, {10, 2}, 0, 1);
  accept(Kind::all_to_all, {8, 6}, {8, 6}, 0, 0);
  auto refuse = [](Kind kind, std::vector<int64_t> src,
                   std::vector<int64_t> dst, int dim, int toDim,
                   const char *expected) {
    WithCollective w;
    w.add(kind, w.tensor(src), w.tensor(dst), dim, toDim);
    expectText(w.plan, expected);
  };
  refuse(Kind::all_gather, {3, 6}, {13, 6}, 0, 0,
         "one block is f32[3,6], expected f32[4,6], 1/4 of dim 0 of f32[13,6]");
  refuse(Kind::all_gather, {3, 6}, {10, 6}, 2, 0, "dim is 2");
  refuse(Kind::all_gather, {3, 6}, {10, 6}, -1, 0, "dim is -1");
  refuse(Kind::all_gather, {3, 6}, {10, 6}, 0, 1, "to_dim is 1");
  refuse(Kind::reduce_scatter, {10, 6}, {2, 6}, 0, 0, "expected f32[3,6]");
  refuse(Kind::all_to_all, {3, 6}, {10, 3}, 0, 1, "expected f32[10,2]");
  refuse(Kind::all_to_all, {6, 6}, {6, 6}, 0, 0, "one shape that 4 divides");
  refuse(Kind::all_reduce, {3, 6}, {3, 6}, 1, 0, "this kind has none");
  refuse(Kind::permute, {3, 6}, {3, 6}, 0, 0,
         "permute has 0 sources, expected 4");
}

TEST(PlanCheck, fieldsOfCollectives) {
  auto refuse = [](std::function<void(CollectiveT &)> change,
                   const char *expected, uint32_t channel = 0) {
    WithCollective w;
    change(w.add(Kind::all_gather, w.small, w.big));
    updateOf(w.p)[0]->channel = channel;
    expectText(w.plan, expected);
  };
  refuse([](auto &op) { op.sources = {0}; }, "only permute has sources");
  refuse([](auto &op) { op.reduction = Reduction::max; }, "reduces nothing");
  refuse([](auto &op) { op.any_order = true; },
         "all_gather with sum in any order, expected the sum of");
  refuse([](auto &) {}, "channel 9, expected at most 8", /*channel=*/9);
  WithCollective w;
  auto &op = w.add(Kind::permute, w.small, w.tensor({3, 6}));
  op.sources = {1, 2, 3, 0};
  EXPECT_TRUE(check(w.plan).ok()) << check(w.plan);
  op.sources = {1, 2, 3, 4};
  expectText(w.plan, "the source 4 in groups of 4");
  op.sources = {1, 2, 3, UINT32_MAX}; // none
  EXPECT_TRUE(check(w.plan).ok()) << check(w.plan);
}

TEST(PlanCheck, sharedBytesOfCollectives) {
  // In place: the block is the rank's own part of the whole.
  for (Kind kind : {Kind::all_gather, Kind::reduce_scatter}) {
    WithCollective w;
    uint32_t whole = w.tensor({12, 6});
    uint32_t buffer = w.p.views[whole]->buffer;
    uint32_t block = addView(w.p, buffer, DType::f32, {3, 6});
    bool gathers = kind == Kind::all_gather;
    w.add(kind, gathers ? block : whole, gathers ? whole : block);
    expectText(w.plan, "share bytes in a way");
    shift(w.p, block, {0}, 3 * 6 * 4);
    EXPECT_TRUE(check(w.plan).ok()) << check(w.plan);
    // Ten rows: the last block ends past them, but still in the buffer.
    w.p.views[whole]->shape = {10, 6};
    EXPECT_TRUE(check(w.plan).ok()) << check(w.plan);
    w.p.views[whole]->shape = {12, 6};
    w.p.views[block]->shifts[0]->bytes = 2 * 6 * 4;
    expectText(w.plan, "share bytes in a way");
  }
  // Along an inner dim an uneven last block would end in the next row.
  WithCollective w;
  uint32_t whole = w.tensor({6, 12});
  uint32_t block = addView(w.p, w.p.views[whole]->buffer, DType::f32, {6, 3});
  w.p.views[block]->strides = {12, 1};
  shift(w.p, block, {0}, 3 * 4);
  w.add(Kind::all_gather, block, whole, 1);
  EXPECT_TRUE(check(w.plan).ok()) << check(w.plan);
  w.p.views[whole]->shape = {6, 10};
  expectText(w.plan, "share bytes in a way");
}

TEST(PlanCheck, partsOfOneBucketMayInterleave) {
  WithCollective w;
  uint32_t whole = w.tensor({6, 12});
  auto columns = [&](int64_t first) {
    uint32_t view = addView(w.p, w.p.views[whole]->buffer, DType::f32, {6, 4},
                            static_cast<uint64_t>(first) * 4);
    w.p.views[view]->strides = {12, 1};
    return view;
  };
  uint32_t a = columns(0), b = columns(4), c = columns(7);
  auto &op = w.add(Kind::all_reduce, a, a);
  op.parts.push_back(transfer(b, b));
  EXPECT_TRUE(check(w.plan).ok()) << check(w.plan);
  op.parts.push_back(transfer(c, c));
  expectText(w.plan, "parts 1 and 2 share bytes");
}

TEST(PlanCheck, waits) {
  WithCollective w;
  w.add(Kind::all_gather, w.small, w.big);
  updateOf(w.p)[0]->channel = 2;
  expectText(w.plan, "update[0] \"moved\" is not waited for before loss_known");
  setLossKnown(w.p, 0);
  expectText(w.plan, "is not waited for before the end of its list");
  auto &wait = opOf<WaitT>(insert(updateOf(w.p), 1, "wait", waitFor(2, 1)));
  setLossKnown(w.p, 3);
  EXPECT_TRUE(check(w.plan).ok()) << check(w.plan);
  setLossKnown(w.p, 1);
  expectText(w.plan, "before loss_known");
  setLossKnown(w.p, 3);
  wait.count = 2;
  expectText(w.plan, "waits for the first 2 of channel 2, which has started 1");
  wait.count = 0;
  expectText(w.plan, "waits for the first 0");
  wait = waitFor(1, 1);
  expectText(w.plan, "waits for the first 1 of channel 1");
  wait = waitFor(0, 1);
  expectText(w.plan, "waits for channel 0");
}

// Between start and Wait: reading the source is fine, all else is not.
TEST(PlanCheck, whatIsUnderwayIsNotTouched) {
  auto plan = [](auto op) {
    WithCollective w;
    w.add(Kind::all_gather, w.small, w.big);
    updateOf(w.p)[0]->channel = 1;
    insert(updateOf(w.p), 1, "between", op(w));
    insert(updateOf(w.p), 2, "wait", waitFor(1, 1));
    setLossKnown(w.p, 4);
    return std::move(w.plan);
  };
  auto copy = [](WithCollective &w, uint32_t from, uint32_t to) {
    CollectiveT op;
    op.kind = Kind::permute;
    op.axes = {0};
    op.sources = {0, 1, 2, 3};
    op.parts.push_back(transfer(from, to));
    return op;
  };
  PlanT reads =
      plan([&](auto &w) { return copy(w, w.small, w.tensor({3, 6})); });
  EXPECT_TRUE(check(reads).ok()) << check(reads);
  expectText(plan([&](auto &w) { return copy(w, w.tensor({3, 6}), w.small); }),
             "dst writes buffer \"t\", which update[0] \"moved\" still reads; "
             "expected a Wait for channel 1, count 1, before");
  expectText(plan([&](auto &w) { return copy(w, w.big, w.tensor({10, 6})); }),
             "src reads buffer \"t\", which update[0] \"moved\" still writes");
  expectText(plan([](auto &w) {
               FillT fill;
               fill.dst = w.big;
               return fill;
             }),
             "dst writes buffer");
}

TEST(PlanCheck, buffersLiveToTheWait) {
  WithCollective w;
  w.add(Kind::all_gather, w.small, w.big);
  updateOf(w.p)[0]->channel = 1;
  insert(updateOf(w.p), 1, "wait", waitFor(1, 1));
  setLossKnown(w.p, 3);
  BufferT &big = *w.p.buffers[w.p.views[w.big]->buffer];
  big.persistent = false;
  EXPECT_TRUE(check(w.plan).ok()) << check(w.plan);
  // Another begins between the start and the Wait.
  uint32_t other = w.tensor({8, 6});
  BufferT &late = *w.p.buffers[w.p.views[other]->buffer];
  late.persistent = false;
  late.offset = big.offset;
  FillT fill;
  fill.dst = other;
  insert(updateOf(w.p), 1, "late", fill);
  setLossKnown(w.p, 4);
  expectText(w.plan, "live from update[0] to update[2]");
}

// Two classes of ranks start the same collectives on two channels; a channel
// keeps its own order, so it does not matter which one is started first.
TEST(PlanCheck, channelsAreRehearsed) {
  auto make = [](uint32_t first, uint32_t second) {
    WithCollective w;
    w.add(Kind::all_gather, w.small, w.big);
    uint32_t src = w.tensor({2, 2}), dst = w.tensor({8, 2});
    w.add(Kind::all_gather, src, dst);
    updateOf(w.p)[1]->channel = 1;
    updateOf(w.p)[0]->channel = 2;
    insert(updateOf(w.p), 2, "wait 1", waitFor(1, 1));
    insert(updateOf(w.p), 3, "wait 2", waitFor(2, 1));
    setLossKnown(w.p, 5);
    w.plan.programs.push_back(std::make_unique<ProgramT>(w.p));
    setPrograms(w.plan, {0, 1, 0, 1});
    ProgramT &q = *w.plan.programs[1];
    std::swap(updateOf(q)[0], updateOf(q)[1]);
    updateOf(q)[0]->channel = first;
    updateOf(q)[1]->channel = second;
    return std::move(w.plan);
  };
  EXPECT_TRUE(check(make(1, 2)).ok()) << check(make(1, 2));
  expectText(make(2, 1), "do not match");
  PlanT inline_ = make(1, 2);
  ProgramT &q = *inline_.programs[1];
  updateOf(q).erase(updateOf(q).begin() + 2, updateOf(q).begin() + 4);
  for (size_t i : {0, 1})
    updateOf(q)[i]->channel = 0;
  setLossKnown(q, 3);
  expectText(inline_, "would wait forever");
}

} // namespace
} // namespace meshwork::plan::test
