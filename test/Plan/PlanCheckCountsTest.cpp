// Counted repeats: the way through their turns, and bad plans.
#include "Mutants.h"
#include "lib/Plan/ProgramLives.h"
#include "lib/Plan/Repeats.h"

namespace meshwork::plan::test {
namespace {

/// The places that run, with these counts one after the other.
std::vector<uint32_t> placesOf(const Repeats &repeats,
                               std::vector<int32_t> counts) {
  std::vector<Turn> turns = repeats.turns();
  std::vector<uint32_t> places;
  Gates gates;
  auto read = [&](const Turn &) -> absl::StatusOr<int32_t> {
    int32_t count = counts.front();
    counts.erase(counts.begin());
    return count;
  };
  for (uint32_t at = 0; at < turns.size();)
    if (turns[at].isGate()) {
      auto next = gates.pass(turns, at, read);
      if (!next.ok())
        return {UINT32_MAX};
      at = *next;
    } else
      places.push_back(at++);
  EXPECT_TRUE(counts.empty());
  return places;
}

// a, repeat at most 3 times { b, c }, d: places a, gate, b, c, gate, b, c,
// gate, b, c, gate, d.
TEST(Gates, endTurnsEarly) {
  Repeats repeats({{2, 4, 3, true}}, 5);
  EXPECT_EQ(placesOf(repeats, {0}), std::vector<uint32_t>({0, 11}));
  EXPECT_EQ(placesOf(repeats, {2}), std::vector<uint32_t>({0, 2, 3, 5, 6, 11}));
  EXPECT_EQ(placesOf(repeats, {3}),
            std::vector<uint32_t>({0, 2, 3, 5, 6, 8, 9, 11}));
  for (int32_t bad : {-1, 4, INT32_MIN, INT32_MAX})
    EXPECT_EQ(placesOf(repeats, {bad}), std::vector<uint32_t>({UINT32_MAX}));
}

// Twice { at most 2 times { a } }: the inner count is read in each outer turn.
TEST(Gates, nest) {
  Repeats counted({{1, 3, 2, true}, {2, 3, 2, true}}, 3);
  // gate, (gate a gate a gate), gate, (gate a gate a gate), gate
  EXPECT_EQ(placesOf(counted, {2, 1, 2}), std::vector<uint32_t>({2, 8, 10}));
  EXPECT_EQ(placesOf(counted, {1, 0}), std::vector<uint32_t>());
  Repeats within({{1, 3, 2}, {2, 3, 2, true}}, 3);
  EXPECT_EQ(placesOf(within, {0, 2}), std::vector<uint32_t>({6, 8}));
}

TEST(Gates, countAsTurns) {
  EXPECT_EQ(Repeats::problem({{1, 2, (1u << 22), true}}, 2), "");
  EXPECT_NE(Repeats::problem({{1, 2, (1u << 23), true}}, 2), "");
}

PlanT counted() {
  PlanT plan = cpuPlan();
  addRounds(plan);
  return plan;
}
constexpr size_t most = 1, repeat = 2, bring = 3;
RepeatT &repeatOf(ProgramT &p) { return microbatchOp<RepeatT>(p, repeat); }
CollectiveT &mostOf(ProgramT &p) { return microbatchOp<CollectiveT>(p, most); }

constexpr char expected[] = "expected an all_reduce with max over \"dp\", "
                            "along which ranks meet inside";

TEST(PlanCheck, countsThatRanksMayNotShare) {
  auto also = [](const char *text) { return std::string(text) + expected; };
  std::string sum = also("forward[2] \"rounds\": its count is last written by "
                         "forward[1] \"most\", "),
              later = also("its count is last written by forward[2] \"own\", "),
              missing = also("nothing writes its count before, "),
              leftOut = also("forward[1] \"most\", which leaves out \"dp\", ");
  expectRefused(
      counted,
      {
          {sum.c_str(),
           [](PlanT &, ProgramT &p) { mostOf(p).reduction = Reduction::sum; }},
          {sum.c_str(),
           [](PlanT &, ProgramT &p) { mostOf(p).last_only = true; }},
          {leftOut.c_str(),
           [](PlanT &plan, ProgramT &p) {
             addAxis(plan, "tp", 2);
             mostOf(p).axes = {1};
           }},
          {later.c_str(),
           [](PlanT &, ProgramT &p) {
             FillT own;
             own.dst = repeatOf(p).count;
             insert(forwardOf(p), repeat, "own", own);
           }},
          {missing.c_str(),
           [](PlanT &, ProgramT &p) {
             forwardOf(p).erase(forwardOf(p).begin() + most);
           }},
          {"writes its count behind it, in a repeat around it",
           [](PlanT &, ProgramT &p) {
             FillT own;
             own.dst = repeatOf(p).count;
             insert(forwardOf(p), repeat + 5, "own", own);
             RepeatT around;
             around.instructions = 6;
             around.times = 2;
             around.count = repeatOf(p).count;
             insert(forwardOf(p), repeat, "around", around);
           }},
      });
}

/// The rounds are in the backward pass, and the forward pass counts them.
PlanT countedBefore() {
  PlanT plan = counted();
  ProgramT &p = *plan.programs[0];
  auto first = forwardOf(p).begin() + repeat,
       last = first + 1 + repeatOf(p).instructions;
  InstructionList &backward = listOf(p, ListKind::backward);
  backward.insert(backward.begin(), std::make_move_iterator(first),
                  std::make_move_iterator(last));
  forwardOf(p).erase(first, last);
  return plan;
}

TEST(PlanCheck, countsOfAnotherList) {
  auto accepted = PlanFile::fromBytes(encode(countedBefore()));
  EXPECT_TRUE(accepted.ok()) << accepted.status();
  auto countOf = [](ProgramT &p) {
    return opOf<RepeatT>(*listOf(p, ListKind::backward)[0]).count;
  };
  auto lastBy = [](const char *writer) {
    return std::string(
               "backward[0] \"rounds\": its count is last written by ") +
           writer + " \"most\", " + expected;
  };
  std::string sum = lastBy("forward[1]"), inRepeat = lastBy("forward[2]");
  expectRefused(
      countedBefore,
      {
          {sum.c_str(),
           [](PlanT &, ProgramT &p) { mostOf(p).reduction = Reduction::sum; }},
          {inRepeat.c_str(),
           [](PlanT &, ProgramT &p) {
             RepeatT around;
             around.instructions = 1;
             around.times = 1;
             insert(forwardOf(p), most, "around", around);
           }},
          {"its count is written in two other lists, by step[0] \"own\" and "
           "forward[1] \"most\"",
           [&](PlanT &, ProgramT &p) {
             FillT own;
             own.dst = countOf(p);
             insert(listOf(p, ListKind::step), 0, "own", own);
           }},
      });
}

/// Behind a counted repeat waits count anew: what is started there lives to its
/// own wait, whatever the turns have started.
TEST(Lives, whatIsStartedBehindTurnsLivesToItsWait) {
  PlanT plan = counted();
  ProgramT &p = *plan.programs[0];
  uint32_t from = addTensor(p, "from", BufferKind::workspace, DType::f32, {4}),
           to = addTensor(p, "to", BufferKind::workspace, DType::f32, {4});
  auto behind = static_cast<uint32_t>(repeat + 1 + repeatOf(p).instructions);
  FillT fill;
  fill.dst = from;
  insert(forwardOf(p), 0, "fill", fill);
  CopyT copy;
  copy.src = from, copy.dst = to;
  insert(forwardOf(p), behind + 1, "late", copy).channel = 1;
  FillT other;
  other.dst = addTensor(p, "other", BufferKind::workspace, DType::f32, {4});
  insert(forwardOf(p), behind + 2, "beside", other);
  insert(forwardOf(p), behind + 3, "wait", waitFor(1, 1));
  auto file = PlanFile::fromBytes(encode(plan));
  ASSERT_TRUE(file.ok()) << file.status();
  const Program &program = *(*file)->plan().programs()->Get(0);
  ActionTable table = tableOf(program);
  Lives lives = plan::livesOf(program, table);
  EXPECT_EQ(lives.lastTouch(p.views[from]->buffer).instruction, behind + 3);
  EXPECT_EQ(lives.lastTouch(p.views[to]->buffer).instruction, behind + 3);
}

TEST(PlanCheck, countedTurnsEndWithNothingUnderWay) {
  expectRefused(
      counted,
      {
          {"forward[3] \"bring\" is not waited for in its turn of a repeat",
           [](PlanT &, ProgramT &p) {
             forwardOf(p).erase(forwardOf(p).begin() + bring + 1);
             --repeatOf(p).instructions;
             microbatchOp<CopyT>(p, bring + 1).src = cos;
             microbatchOp<CopyT>(p, bring + 1).dst = sin;
           }},
          {"waits for the first 2 of channel 1, which has started 1",
           [](PlanT &, ProgramT &p) {
             opOf<WaitT>(*forwardOf(p)[bring + 1]).count = 2;
           }},
          {"forward[1] \"most\" is not waited for before the repeat at "
           "forward[2] \"rounds\"",
           [](PlanT &, ProgramT &p) {
             forwardOf(p)[most]->channel = 1;
             uint32_t other =
                 addTensor(p, "other", BufferKind::workspace, DType::i32, {1});
             mostOf(p).parts[0]->dst = other;
           }},
          {"runs on channel 1 inside a repeat",
           [](PlanT &, ProgramT &p) { repeatOf(p).count = noView; }},
      });
}

TEST(PlanCheck, whatCountedTurnsWrite) {
  expectRefused(
      counted,
      {
          {"forward[2] \"rounds\": count is f32[1], expected one i32",
           [](PlanT &, ProgramT &p) { repeatOf(p).count = loss; }},
          {"forward[2] \"rounds\": count is view 999",
           [](PlanT &, ProgramT &p) { repeatOf(p).count = 999; }},
          {"reads buffer \"brought\" before anything was written to it",
           [](PlanT &, ProgramT &p) {
             uint32_t buffer =
                 p.views[microbatchOp<CollectiveT>(p, bring).parts[0]->dst]
                     ->buffer;
             p.buffers[buffer]->persistent = false;
             microbatchOp<EmbeddingGradT>(p, 8).dout =
                 addView(p, buffer, DType::f32, {2, 16, 8});
           }},
      });
}

TEST(PlanCheck, hops) {
  auto hopping = [] {
    PlanT plan = cpuPlan();
    ProgramT &p = *plan.programs[0];
    uint32_t all = addTensor(p, "all", BufferKind::workspace, DType::f32, {32});
    uint32_t part = addView(p, p.views[all]->buffer, DType::f32, {8});
    shift(p, part, {0}, 32);
    p.views[part]->shifts[0]->hop = 3;
    FillT fill;
    fill.dst = part;
    insert(forwardOf(p), 3, "part", fill);
    return plan;
  };
  expectRefused(
      hopping,
      {{"it hops 4 of 4 ranks, expected fewer than there are",
        [](PlanT &, ProgramT &p) { p.views.back()->shifts[0]->hop = 4; }}});
}

} // namespace
} // namespace meshwork::plan::test
