// Bad plans: mesh, buffers, views, inputs, results, parameters.
#include "Mutants.h"
#include "meshwork/Plan/Frame.h"
#include <cmath>

namespace meshwork::plan::test {
namespace {

/// Files of the table, [256, 8], one more.
FilePieceT &addPiece(ProgramT &program, const char *pattern, int32_t counted,
                     std::vector<int64_t> begin, std::vector<int64_t> extent) {
  auto piece = std::make_unique<FilePieceT>();
  piece->pattern = pattern;
  piece->counted = counted;
  piece->shape = extent;
  if (counted == 0)
    piece->shape.erase(piece->shape.begin());
  piece->begin = std::move(begin);
  piece->extent = std::move(extent);
  program.parameters[0]->files.push_back(std::move(piece));
  return *program.parameters[0]->files.back();
}

TEST(PlanCheck, meshAndBatch) {
  expectRefused(
      cpuPlan,
      {
          {"of size 0", [](PlanT &p, ProgramT &) { p.mesh[0]->size = 0; }},
          {"2^24", [](PlanT &p, ProgramT &) { p.mesh[0]->size = 0xffffffff; }},
          {"no programs", [](PlanT &p, ProgramT &) { p.programs.clear(); }},
          {"program_numbers has 3 entries, expected 4",
           [](PlanT &p, ProgramT &) { setPrograms(p, {0, 0, 0}); }},
          {"names program 1",
           [](PlanT &p, ProgramT &) { setPrograms(p, {0, 0, 0, 1}); }},
          {"global batch is 17",
           [](PlanT &p, ProgramT &) { p.global_batch = 17; }},
          {"global batch", [](PlanT &p, ProgramT &) { p.batch_axes.clear(); }},
          {"batch axis 0", [](PlanT &p, ProgramT &) { p.batch_axes = {0, 0}; }},
          {"batch axis 5", [](PlanT &p, ProgramT &) { p.batch_axes = {5}; }},
          {"at least 1 of each",
           [](PlanT &p, ProgramT &) { p.microbatches = 0; }},
          {"at least 1 of each",
           [](PlanT &p, ProgramT &) { p.vocabulary = 0; }},
          {"expected i32[2,17]", [](PlanT &p, ProgramT &) { p.sequence = 17; }},
          {"unknown device",
           [](PlanT &p, ProgramT &) { p.device = static_cast<Device>(9); }},
          {"unknown compute",
           [](PlanT &p, ProgramT &) { p.compute = DType::i32; }},
          {"no symbol",
           [](PlanT &p, ProgramT &) {
             p.kernels.push_back(std::make_unique<KernelT>());
           }},
          {"no code",
           [](PlanT &p, ProgramT &) {
             p.kernels.push_back(std::make_unique<KernelT>());
             p.kernels[0]->symbol = "k";
           }},
      });
}

TEST(PlanCheck, buffers) {
  expectRefused(
      cpuPlan,
      {
          {"multiple of 64",
           [](PlanT &, ProgramT &p) { p.buffers[1]->offset += 4; }},
          {"leaves the arena",
           [](PlanT &, ProgramT &p) { p.arena_bytes -= 64; }},
          {"leaves the arena",
           [](PlanT &, ProgramT &p) { p.buffers[0]->offset = ~63ull; }},
          {"workspace_bytes_per_thread is 4294967295, expected at most 64 MiB",
           [](PlanT &, ProgramT &p) {
             p.workspace_bytes_per_thread = 4294967295;
           }},
          {"unknown kind",
           [](PlanT &, ProgramT &p) {
             p.buffers[0]->kind = static_cast<BufferKind>(77);
           }},
          {"share bytes",
           [](PlanT &, ProgramT &p) {
             p.buffers[2]->offset = p.buffers[0]->offset;
           }},
          {"\"wte gradient\"",
           [](PlanT &, ProgramT &p) { p.buffers[1]->offset -= 64; }},
          {"share bytes",
           [](PlanT &, ProgramT &p) { p.buffers[0]->size_bytes += 1; }},
          {"before anything was written",
           [](PlanT &, ProgramT &p) {
             std::swap(forwardOf(p)[0], forwardOf(p)[1]);
           }},
          // A gradient that shares bytes with x looks free before the third
          // instruction of a microbatch, but the second microbatch adds to it.
          {"live from forward[2] to update[3]) share bytes",
           [](PlanT &, ProgramT &p) {
             p.buffers[1]->persistent = false;
             p.buffers[2]->offset = p.buffers[1]->offset;
           }},
      });
}

// "y" begins after the last instruction that reads x, or with it.
TEST(PlanCheck, sharedBytesOfSeparateLivesAreFine) {
  for (size_t begin : {3, 1}) {
    PlanT plan = tinyPlan();
    ProgramT &p = *plan.programs[0];
    p.buffers.push_back(std::make_unique<BufferT>(*p.buffers[2]));
    FillT fill;
    fill.dst = addView(p, static_cast<uint32_t>(p.buffers.size() - 1),
                       DType::f32, {2, 16, 8});
    insert(forwardOf(p), begin, "y", fill);
    auto file = PlanFile::fromBytes(encode(plan));
    EXPECT_EQ(file.ok(), begin == 3) << file.status();
  }
}

// Microbatch 1 begins before microbatch 0 has ended, and x has one copy.
PlanT interleaved() {
  PlanT plan = tinyPlan();
  ProgramT &p = *plan.programs[0];
  p.actions = {Action(1, 0), Action(2, 0), Action(2, 1),
               Action(3, 0), Action(3, 1), Action(4, 0)};
  auto &last = forwardOf(p).back();
  listOf(p, ListKind::backward).push_back(std::move(last));
  forwardOf(p).pop_back();
  return plan;
}

TEST(PlanCheck, listsAndActions) {
  expectRefused(
      cpuPlan,
      {
          {"list 3 is of unknown kind 99",
           [](PlanT &, ProgramT &p) {
             p.lists[3]->kind = static_cast<ListKind>(99);
           }},
          {"list 3 is of unknown kind 6", // a number that means nothing
           [](PlanT &, ProgramT &p) {
             p.lists[3]->kind = static_cast<ListKind>(6);
           }},
          {"list 3 is of unknown kind 12", // likewise
           [](PlanT &, ProgramT &p) {
             p.lists[3]->kind = static_cast<ListKind>(12);
           }},
          {"list 4 is update of stage 1, which",
           [](PlanT &, ProgramT &p) { p.lists[4]->stage = 1; }},
          {"send has 0 instructions, expected one send",
           [](PlanT &, ProgramT &p) { p.lists[3]->kind = ListKind::send; }},
          {"lists 2 and 3 are both forward",
           [](PlanT &, ProgramT &p) { p.lists[3]->kind = ListKind::forward; }},
          {"there are 5 actions, expected 6: 2 microbatches of 2 lists",
           [](PlanT &, ProgramT &p) { p.actions.pop_back(); }},
          {"there are 0 actions",
           [](PlanT &, ProgramT &p) { p.actions.clear(); }},
          {"action 1 runs list 9, there are 5",
           [](PlanT &, ProgramT &p) { p.actions[1] = Action(9, 0); }},
          {"action 1 is of microbatch 2, there are 2",
           [](PlanT &, ProgramT &p) { p.actions[1] = Action(2, 2); }},
          {"action 1 runs backward of microbatch 0, expected forward next",
           [](PlanT &, ProgramT &p) { std::swap(p.actions[1], p.actions[2]); }},
          {"action 3 runs forward of microbatch 0, expected nothing more of it",
           [](PlanT &, ProgramT &p) { p.actions[3] = Action(2, 0); }},
          {"action 5 runs update for microbatch 1",
           [](PlanT &, ProgramT &p) { p.actions[5] = Action(4, 1); }},
          {"action 4 runs update, expected step first and update last",
           [](PlanT &, ProgramT &p) { std::swap(p.actions[4], p.actions[5]); }},
          {"action 0 runs once",
           [](PlanT &, ProgramT &p) { p.actions[0] = Action(0, 0); }},
          {"loss_known is absent",
           [](PlanT &, ProgramT &p) { p.loss_known.reset(); }},
          {"loss_known is instruction 0 of action 2, expected one of action 5",
           [](PlanT &, ProgramT &p) {
             p.loss_known = std::make_unique<Moment>(2, 0);
           }},
      });
}

// What lives from forward to backward needs a copy for each microbatch that is
// under way, and so do tokens.
TEST(PlanCheck, whatNeedsSeveralCopiesIsRefused) {
  PlanT plan = interleaved();
  ProgramT &p = *plan.programs[0];
  auto file = PlanFile::fromBytes(encode(plan));
  ASSERT_FALSE(file.ok());
  EXPECT_NE(
      file.status().message().find(
          "buffer \"tokens\" is used by 2 microbatches at once, but has 1"),
      std::string::npos)
      << file.status();
  auto &backward = listOf(p, ListKind::backward);
  backward.insert(backward.begin(), std::move(forwardOf(p).back()));
  forwardOf(p).pop_back(); // "mean" reads x.
  file = PlanFile::fromBytes(encode(plan));
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.status().message().find(
                "buffer \"x\" is used by 2 microbatches at once"),
            std::string::npos)
      << file.status();
}

// One for each is enough, and then the plan is one like others.
TEST(PlanCheck, copiesLieSideBySide) {
  PlanT plan = tinyPlan();
  ProgramT &p = *plan.programs[0];
  p.actions = {Action(1, 0), Action(2, 0), Action(2, 1),
               Action(3, 0), Action(3, 1), Action(4, 0)};
  auto file = PlanFile::fromBytes(encode(plan));
  EXPECT_TRUE(file.ok()) << file.status();
  p.buffers[0]->copies = 0;
  EXPECT_FALSE(PlanFile::fromBytes(encode(plan)).ok());
  p.buffers[0]->copies = 3;
  file = PlanFile::fromBytes(encode(plan));
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.status().message().find("has 3 copies, expected one or more"),
            std::string::npos)
      << file.status();
}

TEST(PlanCheck, views) {
  expectRefused(
      cpuPlan,
      {
          {"buffer 99 does not exist",
           [](PlanT &, ProgramT &p) { p.views[0]->buffer = 99; }},
          {"unknown element type",
           [](PlanT &, ProgramT &p) {
             p.views[0]->dtype = static_cast<DType>(7);
           }},
          {"8192 bytes", [](PlanT &, ProgramT &p) { p.views[0]->offset = 4; }},
          {"has 8192",
           [](PlanT &, ProgramT &p) { p.views[0]->offset = ~0ull; }},
          {"not a multiple of its element",
           [](PlanT &, ProgramT &p) {
             p.views[0]->offset = 2;
             p.views[0]->shape[0] = 1;
           }},
          {"size 0", [](PlanT &, ProgramT &p) { p.views[0]->shape[0] = 0; }},
          {"size -1", [](PlanT &, ProgramT &p) { p.views[0]->shape[0] = -1; }},
          {"stride 0",
           [](PlanT &, ProgramT &p) { p.views[0]->strides[0] = 0; }},
          {"64 bits",
           [](PlanT &, ProgramT &p) { p.views[0]->shape[0] = INT64_MAX; }},
          {"64 bits",
           [](PlanT &, ProgramT &p) { p.views[0]->strides[0] = INT64_MAX; }},
          {"sizes and",
           [](PlanT &, ProgramT &p) { p.views[0]->strides.pop_back(); }},
          {"at most 8",
           [](PlanT &, ProgramT &p) {
             p.views[0]->shape.assign(9, 1);
             p.views[0]->strides.assign(9, 1);
           }},
          {"steps over",
           [](PlanT &, ProgramT &p) { p.views[0]->strides[0] = 7; }},
      });
}

TEST(PlanCheck, inputsResultsParameters) {
  expectRefused(
      cpuPlan,
      {
          {"tokens is view 99",
           [](PlanT &, ProgramT &p) { p.inputs[0]->view = 99; }},
          {"tokens is absent",
           [](PlanT &, ProgramT &p) { p.inputs[0]->view = plan::noView; }},
          {"tokens is there twice",
           [](PlanT &, ProgramT &p) { p.inputs[1]->kind = InputKind::tokens; }},
          {"unknown kind",
           [](PlanT &, ProgramT &p) {
             p.inputs[1]->kind = static_cast<InputKind>(50);
           }},
          {"expected one f32",
           [](PlanT &, ProgramT &p) { p.inputs[2]->view = tokens; }},
          {"random is",
           [](PlanT &, ProgramT &p) { p.inputs[5]->view = tokens; }},
          {"there is no loss",
           [](PlanT &, ProgramT &p) { p.results.erase(p.results.begin()); }},
          {"loss is there twice",
           [](PlanT &, ProgramT &p) { p.results[1]->kind = ResultKind::loss; }},
          {"loss is f32[256,8]",
           [](PlanT &, ProgramT &p) { p.results[0]->view = weight; }},
          {"loss_known is instruction 9",
           [](PlanT &, ProgramT &p) { setLossKnown(p, 9); }},
          {"update[3] \"optimizer\" writes \"wte\", which outlives the step, "
           "before the loss is known",
           [](PlanT &, ProgramT &p) { setLossKnown(p, 4); }},
          {"update[3] \"norm\" writes \"gradient norm\" when weights may have "
           "changed",
           [](PlanT &, ProgramT &p) {
             std::swap(updateOf(p)[2], updateOf(p)[3]);
           }},
          {"loss: buffer \"loss\" does not persist",
           [](PlanT &, ProgramT &p) { p.buffers[3]->persistent = false; }},
          {"tokens: buffer \"tokens\" does not persist",
           [](PlanT &, ProgramT &p) { p.buffers[4]->persistent = false; }},
          {"name of 0 bytes",
           [](PlanT &, ProgramT &p) { p.parameters[0]->name = ""; }},
          {"is there twice",
           [](PlanT &, ProgramT &p) {
             p.parameters.push_back(
                 std::make_unique<ParameterT>(*p.parameters[0]));
           }},
          {"product of file_shape",
           [](PlanT &, ProgramT &p) {
             p.parameters[0]->file_shape = {256, 9};
           }},
          {"file_shape has the size 0",
           [](PlanT &, ProgramT &p) { p.parameters[0]->file_shape = {0}; }},
          {"more elements",
           [](PlanT &, ProgramT &p) {
             p.parameters[0]->file_shape = {INT64_MAX, INT64_MAX};
           }},
          {"expected each in one file",
           [](PlanT &, ProgramT &p) {
             addPiece(p, "x.{}", 0, {0, 0}, {7, 8});
           }},
          {"both hold the element [255,0]",
           [](PlanT &, ProgramT &p) {
             addPiece(p, "x.{}", 0, {0, 0}, {256, 8});
             addPiece(p, "y", -1, {255, 0}, {1, 8});
           }},
          {"does not lie in [256,8]",
           [](PlanT &, ProgramT &p) {
             addPiece(p, "x.{}", 0, {int64_t{1} << 62, 0},
                      {int64_t{1} << 62, 8});
           }},
          {"at most 65536 and a number from 0",
           [](PlanT &, ProgramT &p) {
             addPiece(p, "x.{}", 0, {0, 0}, {256, 8}).first = INT64_MAX;
           }},
          {"counts dim 7",
           [](PlanT &, ProgramT &p) {
             addPiece(p, "x.{}", 7, {0, 0}, {256, 8});
           }},
          {"counts dim -7",
           [](PlanT &, ProgramT &p) {
             addPiece(p, "x", -7, {0, 0}, {256, 8});
           }},
          {"name of 0 bytes",
           [](PlanT &, ProgramT &p) { addPiece(p, "", -1, {0, 0}, {256, 8}); }},
          {"expected {} once",
           [](PlanT &, ProgramT &p) {
             addPiece(p, "x{}", 0, {0, 0}, {256, 8});
           }},
          {"product fits 63 bits",
           [](PlanT &, ProgramT &p) {
             addPiece(p, "x.{}", 0, {0, 0}, {256, 8}).shape = {INT64_MAX, 9};
           }},
          {"all of them in the form that is written",
           [](PlanT &, ProgramT &p) {
             addPiece(p, "x.{}", 0, {0, 0}, {256, 8}).offset = {0};
           }},
          {"their files \"x.{}\" and \"x.3\" may be of the same name",
           [](PlanT &, ProgramT &p) {
             p.parameters.push_back(
                 std::make_unique<ParameterT>(*p.parameters[0]));
             p.parameters[1]->name = "x.3";
             addPiece(p, "x.{}", 0, {0, 0}, {256, 8});
           }},
          {"has 65 files",
           [](PlanT &, ProgramT &p) {
             for (int i = 0; i < 65; ++i)
               addPiece(p, "x", -1, {0, 0}, {256, 8});
           }},
          {"a form of 0 files",
           [](PlanT &, ProgramT &p) {
             p.parameters[0]->other_files.push_back(
                 std::make_unique<OtherFilesT>());
           }},
          {"9 other forms",
           [](PlanT &, ProgramT &p) {
             for (int i = 0; i < 9; ++i)
               p.parameters[0]->other_files.push_back(
                   std::make_unique<OtherFilesT>());
           }},
          {"unknown init",
           [](PlanT &, ProgramT &p) {
             p.parameters[0]->init = static_cast<InitKind>(9);
           }},
          {"init has the numbers",
           [](PlanT &, ProgramT &p) { p.parameters[0]->init_b = INFINITY; }},
          {"standard deviation",
           [](PlanT &, ProgramT &p) { p.parameters[0]->init_b = -1; }},
          {"master is absent",
           [](PlanT &, ProgramT &p) {
             p.views.push_back(std::make_unique<ViewT>(*p.views[weight]));
             p.views.back()->dtype = DType::bf16;
             keep(*p.parameters[0], "weight",
                  static_cast<uint32_t>(p.views.size() - 1));
             drop(*p.parameters[0], "master");
           }},
          {"does not persist",
           [](PlanT &, ProgramT &p) { p.buffers[0]->persistent = false; }},
          {"first_moment is i32",
           [](PlanT &, ProgramT &p) {
             p.views.push_back(std::make_unique<ViewT>(*p.views[weight]));
             p.views.back()->dtype = DType::i32;
             keep(*p.parameters[0], "first_moment",
                  static_cast<uint32_t>(p.views.size() - 1));
           }},
          {"weight is absent",
           [](PlanT &, ProgramT &p) { drop(*p.parameters[0], "weight"); }},
          {"2 states of the role master, expected one",
           [](PlanT &, ProgramT &p) {
             keep(*p.parameters[0], "second", weight).role = StateRole::master;
           }},
          {"state \"gradient\" is there twice",
           [](PlanT &, ProgramT &p) {
             keep(*p.parameters[0], "other", weight).name = "gradient";
           }},
          {"it has 19 states, expected at most 16",
           [](PlanT &, ProgramT &p) {
             for (char c = 'a'; c < 'q'; ++c)
               keep(*p.parameters[0], std::string(1, c).c_str(), weight);
           }},
          {"a state is called \"Momentum\", expected at most 32",
           [](PlanT &, ProgramT &p) {
             keep(*p.parameters[0], "Momentum", weight);
           }},
          {"a state is called \"\"",
           [](PlanT &, ProgramT &p) { keep(*p.parameters[0], "", weight); }},
          {"other has the unknown role 9",
           [](PlanT &, ProgramT &p) {
             keep(*p.parameters[0], "other", weight).role =
                 static_cast<StateRole>(9);
           }},
          {"momentum begins with nan",
           [](PlanT &, ProgramT &p) {
             keep(*p.parameters[0], "momentum", weight).initial = NAN;
           }},
          {"gradient is a number, which only an optimizer's state may be",
           [](PlanT &, ProgramT &p) {
             stateOf(*p.parameters[0], "gradient").part->is_number = true;
           }},
          {"momentum is f32",
           [](PlanT &, ProgramT &p) {
             keep(*p.parameters[0], "momentum", weight).part->is_number = true;
           }},
          {"gradient begins with 1, expected 0",
           [](PlanT &, ProgramT &p) {
             stateOf(*p.parameters[0], "gradient").initial = 1;
           }},
          {"momentum is absent",
           [](PlanT &, ProgramT &p) {
             keep(*p.parameters[0], "momentum", weight).part = nullptr;
           }},
          {"bias_correction has the base nan",
           [](PlanT &, ProgramT &p) { p.inputs[3]->base = NAN; }},
          {"bias_correction has the base 1, expected one from 0 to below 1",
           [](PlanT &, ProgramT &p) { p.inputs[4]->base = 1; }},
          {"learning_rate has the base 0.5, expected none",
           [](PlanT &, ProgramT &p) { p.inputs[2]->base = 0.5f; }},
      });
}

} // namespace
} // namespace meshwork::plan::test
