// Bad plans, continued: what repeats.
#include "Mutants.h"
#include "lib/Plan/Repeats.h"

namespace meshwork::plan::test {
namespace {

FillT fillOf(uint32_t view) {
  FillT fill;
  fill.dst = view;
  return fill;
}

/// A buffer of f32 [4, 8] that lives only while it is used.
uint32_t addParts(ProgramT &p, const char *name) {
  uint32_t view =
      addTensor(p, name, BufferKind::activations, DType::f32, {4, 8});
  p.buffers.back()->persistent = false;
  return view;
}

/// Four turns of: fill a row of "rows", fill "scratch". The forward list has
/// three instructions in front.
constexpr size_t marker = 3;
PlanT repeating() {
  PlanT plan = cpuPlan();
  ProgramT &p = *plan.programs[0];
  addParts(p, "rows");
  auto rows = static_cast<uint32_t>(p.buffers.size() - 1);
  uint32_t row = addView(p, rows, DType::f32, {8});
  p.views[row]->advances = {32};
  uint32_t scratch = addParts(p, "scratch");
  RepeatT repeat;
  repeat.instructions = 2;
  repeat.times = 4;
  insert(forwardOf(p), marker, "again", repeat);
  insert(forwardOf(p), marker + 1, "row", fillOf(row));
  insert(forwardOf(p), marker + 2, "scratch", fillOf(scratch));
  return plan;
}
RepeatT &repeatOf(ProgramT &p) { return microbatchOp<RepeatT>(p, marker); }
uint32_t rowOf(ProgramT &p) { return microbatchOp<FillT>(p, marker + 1).dst; }
void nest(ProgramT &p, size_t depth) {
  for (size_t i = 0; i < depth; ++i) {
    RepeatT around;
    around.instructions = static_cast<uint32_t>(forwardOf(p).size() - marker);
    around.times = 1;
    insert(forwardOf(p), marker, "around", around);
  }
}

TEST(PlanCheck, repeats) {
  expectRefused(
      repeating,
      {
          {"forward: the repeat of instructions 4 to 7 is empty, or leaves "
           "what is around it, which ends before 6",
           [](PlanT &, ProgramT &p) { repeatOf(p).instructions = 3; }},
          {"the repeat of instructions 4 to 4 is empty",
           [](PlanT &, ProgramT &p) { repeatOf(p).instructions = 0; }},
          {"which ends before 6",
           [](PlanT &, ProgramT &p) { repeatOf(p).instructions = UINT32_MAX; }},
          {"runs 0 times", [](PlanT &, ProgramT &p) { repeatOf(p).times = 0; }},
          {"its repeats come to more than 16777216 instructions",
           [](PlanT &, ProgramT &p) { repeatOf(p).times = UINT32_MAX; }},
          {"is inside 3 others", [](PlanT &, ProgramT &p) { nest(p, 3); }},
          {"update[0] is a repeat, expected it in a list that runs for each",
           [](PlanT &, ProgramT &p) {
             RepeatT repeat;
             repeat.instructions = repeat.times = 1;
             insert(updateOf(p), 0, "again", repeat);
             setLossKnown(p, 2);
           }},
          {"forward[4] \"row\": dst leaves buffer \"rows\" of 128 bytes in "
           "its last turn: f32[8] at offset 0",
           [](PlanT &, ProgramT &p) { repeatOf(p).times = 5; }},
          {"leaves buffer \"rows\"",
           [](PlanT &, ProgramT &p) {
             p.views[rowOf(p)]->advances = {UINT64_MAX / 4 * 4};
           }},
          {"it advances by 33 bytes, expected a multiple of its element",
           [](PlanT &, ProgramT &p) { p.views[rowOf(p)]->advances = {33}; }},
          {"it has 4 advances, expected at most 3",
           [](PlanT &, ProgramT &p) {
             p.views[rowOf(p)]->advances = {0, 0, 0, 0};
           }},
          {"dst advances in 2 repeats, but is used in 1",
           [](PlanT &, ProgramT &p) { p.views[rowOf(p)]->advances = {32, 0}; }},
          {"forward[0] \"wte\": ids advances in 1 repeats, but is "
           "used in 0",
           [](PlanT &, ProgramT &p) { p.views[tokens]->advances = {4}; }},
          {"input targets is view 5, which advances",
           [](PlanT &, ProgramT &p) { p.views[targets]->advances = {0}; }},
      });
}

// No turn does what another one does not.
TEST(PlanCheck, turnsAreAlike) {
  auto inside = [](auto op, auto change, uint32_t channel = 0) {
    return [=](PlanT &plan, ProgramT &p) {
      auto made = op(plan);
      change(made);
      insert(forwardOf(p), marker + 1, "inside", std::move(made)).channel =
          channel;
      ++repeatOf(p).instructions;
    };
  };
  auto sum = [](PlanT &) {
    CollectiveT op;
    op.axes = {0};
    op.parts.push_back(transfer(gradient, gradient));
    return op;
  };
  expectRefused(
      repeating,
      {
          {"forward[4] \"inside\": runs on channel 1 inside a repeat",
           inside(
               sum, [](CollectiveT &) {}, /*channel=*/1)},
          {"runs on channel 0, in the last action only, inside a repeat",
           inside(sum, [](CollectiveT &op) { op.last_only = true; })},
          {"waits inside a repeat",
           inside([](PlanT &) { return WaitT(); },
                  [](WaitT &op) { op.channel = op.count = 1; })},
          {"dst is set in the step's first action and added to later, inside",
           [](PlanT &, ProgramT &p) {
             std::swap(forwardOf(p)[1], forwardOf(p)[marker + 2]);
           }},
      });
}

/// Puts "scratch" where "rows" lies, which is written first.
void share(ProgramT &p) {
  auto last = p.buffers.size() - 1;
  p.buffers[last]->offset = p.buffers[last - 1]->offset;
}

// In a straight line "rows" would be gone before "scratch" is written; the next
// turn needs it again.
TEST(PlanCheck, whatTurnsLeaveBehindLivesThroughAll) {
  const char *both = "share bytes while both are live";
  expectRefused(repeating, {{both, [](PlanT &, ProgramT &p) { share(p); }},
                            {both, [](PlanT &, ProgramT &p) {
                               p.views[rowOf(p)]->advances.clear();
                               uint32_t row = rowOf(p);
                               insert(forwardOf(p), marker, "before",
                                      fillOf(row));
                               share(p);
                             }}});
  // Anew in each turn, they take turns.
  PlanT plan = repeating();
  ProgramT &p = *plan.programs[0];
  p.views[rowOf(p)]->advances.clear();
  share(p);
  auto file = PlanFile::fromBytes(encode(plan));
  EXPECT_TRUE(file.ok()) << file.status();
}

// Inner turns run for each outer one; the instruction behind the inner repeat
// is of the outer one alone.
TEST(Repeats, turnsNest) {
  Repeats repeats({{1, 4, 2}, {2, 3, 3}}, 5);
  std::vector<std::array<uint32_t, 3>> seen;
  for (const Turn &turn : repeats.turns())
    seen.push_back({turn.instruction, turn.turns[0], turn.turns[1]});
  std::vector<std::array<uint32_t, 3>> expected = {
      {2, 0, 0}, {2, 0, 1}, {2, 0, 2}, {3, 0, 0}, {2, 1, 0},
      {2, 1, 1}, {2, 1, 2}, {3, 1, 0}, {4, 0, 0}};
  EXPECT_EQ(seen, expected);
  EXPECT_EQ(repeats.timesOf(2), 6u);
  EXPECT_EQ(repeats.timesOf(3), 2u);
  EXPECT_EQ(repeats.timesOf(4), 1u);
  EXPECT_EQ(repeats.around(2).size(), 2u);
}
} // namespace
} // namespace meshwork::plan::test
