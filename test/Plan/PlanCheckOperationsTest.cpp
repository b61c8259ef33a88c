// Bad plans, continued: operations, and collectives that never meet.
#include "Mutants.h"
#include "lib/Plan/PlanCheck.h"
#include "meshwork/Plan/Frame.h"
#include <cmath>

namespace meshwork::plan::test {
namespace {

TEST(PlanCheck, operations) {
  expectRefused(cpuPlan,
                {
                    {"unknown or absent operation",
                     [](PlanT &, ProgramT &p) { forwardOf(p)[0]->op.Reset(); }},
                    {"\"wte\": table is view 99",
                     [](PlanT &, ProgramT &p) {
                       microbatchOp<EmbeddingT>(p, 0).table = 99;
                     }},
                    {"ids are f32",
                     [](PlanT &, ProgramT &p) {
                       microbatchOp<EmbeddingT>(p, 0).ids = weight;
                     }},
                    {"out is",
                     [](PlanT &, ProgramT &p) {
                       microbatchOp<EmbeddingT>(p, 0).out = weight;
                     }},
                    {"the table is i32",
                     [](PlanT &, ProgramT &p) {
                       microbatchOp<EmbeddingT>(p, 0).table = tokens;
                     }},
                    {"the table has 256 rows, the vocabulary 300",
                     [](PlanT &p, ProgramT &) { p.vocabulary = 300; }},
                    {"rhs is f32[256,8]",
                     [](PlanT &, ProgramT &p) {
                       microbatchOp<MatmulT>(p, 1).rhs = weight;
                     }},
                    {"rhs is f32[1,1,1]",
                     [](PlanT &, ProgramT &p) {
                       microbatchOp<MatmulT>(p, 1).rhs = lossCell;
                     }},
                    {"bias is",
                     [](PlanT &, ProgramT &p) {
                       microbatchOp<MatmulT>(p, 1).bias = random;
                     }},
                    {"there is a lhs_scale, expected none",
                     [](PlanT &, ProgramT &p) {
                       microbatchOp<MatmulT>(p, 1).lhs_scale = lossCell;
                     }},
                    {"there is an aux, expected none without an epilogue",
                     [](PlanT &, ProgramT &p) {
                       microbatchOp<MatmulT>(p, 1).aux = lossCell;
                     }},
                    {"unknown epilogue 5",
                     [](PlanT &, ProgramT &p) {
                       microbatchOp<MatmulT>(p, 1).epilogue =
                           static_cast<Epilogue>(5);
                     }},
                    {"has a GELU and adds to dst",
                     [](PlanT &, ProgramT &p) {
                       microbatchOp<MatmulT>(p, 1).epilogue = Epilogue::gelu;
                     }},
                    {"there is no aux, expected one of gelu_grad",
                     [](PlanT &, ProgramT &p) {
                       auto &op = microbatchOp<MatmulT>(p, 1);
                       op.epilogue = Epilogue::gelu_grad;
                       op.accumulate = Accumulate::no;
                     }},
                    {"expected dense rows a multiple of 8 elements apart",
                     [](PlanT &, ProgramT &p) {
                       auto &op = microbatchOp<MatmulT>(p, 1);
                       op.epilogue = Epilogue::gelu;
                       op.accumulate = Accumulate::no;
                       op.aux = rateCell;
                     }},
                    {"aux shares buffer",
                     [](PlanT &, ProgramT &p) {
                       auto &op = microbatchOp<MatmulT>(p, 1);
                       op.epilogue = Epilogue::gelu;
                       op.accumulate = Accumulate::no;
                       op.aux = lossCell;
                     }},
                    {"there is no aux, expected one of sum_lhs",
                     [](PlanT &, ProgramT &p) {
                       microbatchOp<MatmulT>(p, 1).epilogue = Epilogue::sum_lhs;
                     }},
                    {"aux is f32[1,1,1], expected f32[1]",
                     [](PlanT &, ProgramT &p) {
                       auto &op = microbatchOp<MatmulT>(p, 1);
                       op.epilogue = Epilogue::sum_rhs;
                       op.aux = rateCell;
                     }},
                    {"it has a bias and the epilogue sum_lhs",
                     [](PlanT &, ProgramT &p) {
                       auto &op = microbatchOp<MatmulT>(p, 1);
                       op.epilogue = Epilogue::sum_lhs;
                       op.bias = random;
                     }},
                    {"or both of 8 bits and not both e5m2",
                     [](PlanT &, ProgramT &p) {
                       p.views[microbatchOp<MatmulT>(p, 1).lhs]->dtype =
                           DType::e4m3;
                     }},
                    {"unknown accumulate",
                     [](PlanT &, ProgramT &p) {
                       microbatchOp<MatmulT>(p, 1).accumulate =
                           static_cast<Accumulate>(3);
                     }},
                    {"inner strides",
                     [](PlanT &, ProgramT &p) {
                       p.views[gradRow]->shape = {1, 2, 4};
                       p.views[gradRow]->strides = {64, 8, 2};
                       p.views[gradColumn]->shape = {1, 4, 1};
                       p.views[gradColumn]->strides = {4, 1, 1};
                       p.views[gradNormCell]->shape = {1, 2, 1};
                       p.views[gradNormCell]->strides = {2, 1, 1};
                       p.views[gradNormCell]->buffer = 0;
                     }},
                    {"unknown accumulate",
                     [](PlanT &, ProgramT &p) {
                       microbatchOp<EmbeddingGradT>(p, 2).accumulate =
                           static_cast<Accumulate>(3);
                     }},
                    {"4 frequencies",
                     [](PlanT &, ProgramT &p) {
                       opOf<RotaryTableT>(*onceOf(p)[1]).cos = weightColumn;
                     }},
                    {"sin is",
                     [](PlanT &, ProgramT &p) {
                       opOf<RotaryTableT>(*onceOf(p)[1]).sin = weight;
                     }},
                    {"not finite",
                     [](PlanT &, ProgramT &p) {
                       opOf<RotaryTableT>(*onceOf(p)[1]).scale = NAN;
                     }},
                    {"fills i32",
                     [](PlanT &, ProgramT &p) {
                       opOf<FillT>(*onceOf(p)[0]).dst = tokens;
                     }},
                    {"kernel 0 does not exist",
                     [](PlanT &, ProgramT &p) {
                       LaunchT launch;
                       launch.args = {weight};
                       launch.num_outputs = 1;
                       launch.items = 1;
                       forwardOf(p)[0]->op.Set(std::move(launch));
                     }},
                });
}

/// A good program with one kernel launch.
void addLaunch(PlanT &plan, ProgramT &p, std::vector<uint32_t> args,
               uint32_t outputs, uint64_t items) {
  plan.code = {1};
  plan.kernels.push_back(std::make_unique<KernelT>());
  plan.kernels[0]->symbol = "k";
  plan.kernels[0]->num_args = 2;
  plan.kernels[0]->items = 4;
  plan.kernels[0]->arg_bytes = {8192, 1024};
  LaunchT launch;
  launch.args = std::move(args);
  launch.num_outputs = outputs;
  launch.items = items;
  onceOf(p)[0]->op.Set(std::move(launch));
}

TEST(PlanCheck, launches) {
  PlanT good = tinyPlan();
  addLaunch(good, *good.programs[0], {weight, ones}, 1, 4);
  EXPECT_TRUE(PlanFile::fromBytes(encode(good)).ok());
  expectRefused(cpuPlan, {
                             {"takes 2",
                              [](PlanT &plan, ProgramT &p) {
                                addLaunch(plan, p, {weight}, 1, 4);
                              }},
                             {"num_outputs is 3",
                              [](PlanT &plan, ProgramT &p) {
                                addLaunch(plan, p, {weight, ones}, 3, 4);
                              }},
                             {"num_outputs is 0",
                              [](PlanT &plan, ProgramT &p) {
                                addLaunch(plan, p, {weight, ones}, 0, 4);
                              }},
                             {"work items",
                              [](PlanT &plan, ProgramT &p) {
                                addLaunch(plan, p, {weight, ones}, 1, 0);
                              }},
                             {"it has 5 work items, kernel \"k\" 4",
                              [](PlanT &plan, ProgramT &p) {
                                addLaunch(plan, p, {weight, ones}, 1, 5);
                              }},
                             {"tells the bytes of 1",
                              [](PlanT &plan, ProgramT &p) {
                                addLaunch(plan, p, {weight, ones}, 1, 4);
                                plan.kernels[0]->arg_bytes.pop_back();
                              }},
                             {"arg 0 is f32[2,16,8], 1024 bytes from first to "
                              "last, kernel \"k\" expects 8192",
                              [](PlanT &plan, ProgramT &p) {
                                addLaunch(plan, p, {x, ones}, 1, 4);
                              }},
                             {"view 77",
                              [](PlanT &plan, ProgramT &p) {
                                addLaunch(plan, p, {weight, 77}, 1, 4);
                              }},
                         });
}

/// Attention over x seen as [2, 16, heads, 4]; returns the operation.
AttentionT &addAttention(ProgramT &p) {
  auto add = [&](uint32_t like, std::vector<int64_t> shape,
                 std::vector<int64_t> strides) {
    p.views.push_back(std::make_unique<ViewT>(*p.views[like]));
    p.views.back()->shape = std::move(shape);
    p.views.back()->strides = std::move(strides);
    return static_cast<uint32_t>(p.views.size() - 1);
  };
  AttentionT op;
  op.q = add(ones, {2, 16, 2, 4}, {128, 8, 4, 1});
  op.k = op.v = add(ones, {2, 16, 1, 4}, {128, 8, 4, 1});
  op.out = add(weight, {2, 16, 2, 4}, {128, 8, 4, 1});
  op.lse = add(cos, {2, 2, 16}, {32, 16, 1});
  op.part = std::make_unique<AttentionPartT>();
  op.part->scale = 0.5f;
  onceOf(p)[1]->op.Set(std::move(op));
  return opOf<AttentionT>(*onceOf(p)[1]);
}

TEST(PlanCheck, attention) {
  PlanT good = tinyPlan();
  addAttention(*good.programs[0]);
  auto file = PlanFile::fromBytes(encode(good));
  EXPECT_TRUE(file.ok()) << file.status();
  expectRefused(
      cpuPlan,
      {
          {"lse is", [](PlanT &, ProgramT &p) { addAttention(p).lse = loss; }},
          {"v is",
           [](PlanT &, ProgramT &p) {
             auto &op = addAttention(p);
             op.v = op.q;
           }},
          {"window is -1",
           [](PlanT &, ProgramT &p) { addAttention(p).part->window = -1; }},
          {"cap is -1",
           [](PlanT &, ProgramT &p) { addAttention(p).part->cap = -1; }},
          {"scale is",
           [](PlanT &, ProgramT &p) {
             addAttention(p).part->scale = INFINITY;
           }},
          {"not a multiple of 2 key heads",
           [](PlanT &, ProgramT &p) {
             auto &op = addAttention(p);
             p.views[op.k]->shape[2] = 2;
             for (uint32_t view : {op.q, op.out}) {
               p.views[view]->shape[2] = 3;
               p.views[view]->strides = {192, 12, 4, 1};
               p.views[view]->buffer = 0;
             }
             p.views[op.lse]->shape[1] = 3;
             p.views[op.lse]->strides[0] = 48;
           }},
          {"keep_scale",
           [](PlanT &, ProgramT &p) {
             auto &dropout = addAttention(p).part->dropout;
             dropout = std::make_unique<DropoutT>();
             dropout->random = random;
           }},
          {"dropout.random",
           [](PlanT &, ProgramT &p) {
             auto &dropout = addAttention(p).part->dropout;
             dropout = std::make_unique<DropoutT>();
             dropout->keep_scale = 2;
             dropout->random = tokens;
           }},
      });
}

CollectiveT &collective(ProgramT &p) {
  return opOf<CollectiveT>(*updateOf(p)[1]);
}

void addPart(ProgramT &p, uint32_t src, uint32_t dst, int32_t dim = 0,
             int32_t toDim = 0) {
  collective(p).parts.push_back(transfer(src, dst, dim, toDim));
}
void setPart(ProgramT &p, uint32_t src, uint32_t dst, int32_t dim = 0,
             int32_t toDim = 0) {
  collective(p).parts.clear();
  addPart(p, src, dst, dim, toDim);
}

TEST(PlanCheck, collectivesAlone) {
  expectRefused(
      cpuPlan,
      {
          {"unknown collective",
           [](PlanT &, ProgramT &p) {
             collective(p).kind = static_cast<CollectiveKind>(8);
           }},
          {"needs an axis",
           [](PlanT &, ProgramT &p) { collective(p).axes.clear(); }},
          {"needs an axis and a part",
           [](PlanT &, ProgramT &p) { collective(p).parts.clear(); }},
          {"axis 1 is not",
           [](PlanT &, ProgramT &p) { collective(p).axes = {1}; }},
          {"named twice",
           [](PlanT &, ProgramT &p) { collective(p).axes = {0, 0}; }},
          {"share bytes",
           [](PlanT &, ProgramT &p) { addPart(p, gradient, gradient); }},
          {"it reduces e4m3[8], expected f32, bf16 or i32",
           [](PlanT &, ProgramT &p) {
             uint32_t view = addTensor(p, "eight bits", BufferKind::weights,
                                       DType::e4m3, {8});
             setPart(p, view, view);
           }},
          {"one element type",
           [](PlanT &, ProgramT &p) { setPart(p, gradient, tokens); }},
          {"as many dims",
           [](PlanT &, ProgramT &p) { setPart(p, gradient, loss); }},
      });
}

/// A second program for the last rank, a copy of the first.
ProgramT &lastRank(PlanT &plan) {
  plan.programs.push_back(std::make_unique<ProgramT>(*plan.programs[0]));
  setPrograms(plan, {0, 0, 0, 1});
  return *plan.programs[1];
}

TEST(PlanCheck, collectivesMeet) {
  PlanT good = tinyPlan({.ranks = 4});
  lastRank(good);
  auto file = PlanFile::fromBytes(encode(good));
  EXPECT_TRUE(file.ok()) << file.status();
  expectRefused(
      cpuPlan,
      {
          {"do not match",
           [](PlanT &p, ProgramT &) {
             auto &q = lastRank(p);
             std::swap(updateOf(q)[0], updateOf(q)[1]);
           }},
          {"ranks 0 (update[0] \"loss\") and 3",
           [](PlanT &p, ProgramT &) {
             auto &q = lastRank(p);
             updateOf(q).erase(updateOf(q).begin());
             setLossKnown(q, 0);
           }},
          {"would wait forever",
           [](PlanT &p, ProgramT &) {
             auto &q = lastRank(p);
             updateOf(q).erase(updateOf(q).begin() + 1);
           }},
          {"do not match",
           [](PlanT &p, ProgramT &) {
             ProgramT &q = lastRank(p);
             setPart(q, cos, sin);
             collective(q).kind = CollectiveKind::permute;
             collective(q).sources = {1, 2, 3, 0};
           }},
          {"do not match",
           [](PlanT &p, ProgramT &) {
             collective(lastRank(p)).reduction = Reduction::max;
           }},
          {"part 0 has another type",
           [](PlanT &p, ProgramT &) { setPart(lastRank(p), ones, ones); }},
          {"one has 1 parts",
           [](PlanT &p, ProgramT &) { addPart(lastRank(p), ones, ones); }},
      });
}

// Two programs along "pp", each over all of "dp": one rank of each stands for
// all, however many there are, and what does not match is found by it.
TEST(PlanCheck, costsTheSameForAnyNumberOfRanks) {
  for (uint32_t ranks : {8u, 8192u}) {
    PlanT plan = tinyPlan({.ranks = ranks});
    addAxis(plan, "pp", 2);
    plan.programs.push_back(std::make_unique<ProgramT>(*plan.programs[0]));
    plan.program_axes = {1};
    plan.program_numbers = {0, 1};
    auto check = [&](uint64_t &rehearsed) {
      std::vector<unsigned char> bytes = encode(plan);
      return checkPlan(*GetPlan(bytes.data() + plan::frameBytes), &rehearsed);
    };
    uint64_t rehearsed = 0;
    absl::Status good = check(rehearsed);
    EXPECT_TRUE(good.ok()) << good;
    EXPECT_EQ(rehearsed, 2u);
    ProgramT &q = *plan.programs[1];
    std::swap(updateOf(q)[0], updateOf(q)[1]);
    EXPECT_TRUE(check(rehearsed).ok()); // They meet along "dp" alone.
    for (ProgramT *p : {plan.programs[0].get(), &q})
      for (size_t i : {0, 1})
        opOf<CollectiveT>(*updateOf(*p)[i]).axes = {0, 1};
    EXPECT_NE(check(rehearsed).message().find(
                  "collectives of ranks 0 (update[0] \"loss\") and 1 "
                  "(update[0] \"gradients\") do not match"),
              std::string::npos);
    EXPECT_EQ(rehearsed, 2u);
  }
}

// Ranks 0..3 on a 2x2 mesh, each of two classes enters its row and its column
// in another order: all pairs match, and all four wait in a circle.
TEST(PlanCheck, circularWaitIsFound) {
  PlanT plan = tinyPlan({.ranks = 4});
  plan.mesh[0]->size = 2;
  plan.mesh.push_back(std::make_unique<AxisT>());
  plan.mesh[1]->name = "tp";
  plan.mesh[1]->size = 2;
  plan.batch_axes = {0, 1};
  plan.programs.push_back(std::make_unique<ProgramT>(*plan.programs[0]));
  ProgramT &rowFirst = *plan.programs[0], &columnFirst = *plan.programs[1];
  collective(rowFirst).axes = {1};
  opOf<CollectiveT>(*updateOf(rowFirst)[0]).axes = {0};
  collective(columnFirst).axes = {1};
  opOf<CollectiveT>(*updateOf(columnFirst)[0]).axes = {0};
  setPrograms(plan, {0, 1, 1, 0});
  EXPECT_TRUE(PlanFile::fromBytes(encode(plan)).ok());
  std::swap(updateOf(columnFirst)[0], updateOf(columnFirst)[1]);
  auto file = PlanFile::fromBytes(encode(plan));
  ASSERT_FALSE(file.ok());
  EXPECT_NE(std::string(file.status().message()).find("wait forever"),
            std::string::npos)
      << file.status();
}

} // namespace
} // namespace meshwork::plan::test
