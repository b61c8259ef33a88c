// A run's times beside the plan's, against traces written by hand.
#include "lib/Explain/Measured.h"
#include "Loaded.h"
#include "absl/strings/str_cat.h"
#include "lib/Explain/Explain.h"
#include "lib/Plan/Actions.h"
#include "lib/Plan/ProgramLives.h"
#include "lib/Plan/Programs.h"
#include "test/Plan/PipelinePlan.h"
#include <nlohmann/json.hpp>

namespace meshwork::explain::test {
namespace {
using plan::ListKind;

std::string quoted(const flatbuffers::String *text) {
  return nlohmann::json(text ? text->str() : "").dump();
}

/// Writes traces as the launcher does.
class Writer {
public:
  explicit Writer(const plan::Plan &plan) : plan(plan) {}

  uint64_t step = 0;

  /// `instruction` of the rank's list of this kind.
  void add(uint32_t rank, ListKind kind, uint32_t microbatch,
           uint32_t instruction, double begin, double end, double wait = 0) {
    const plan::Program &program =
        *plan.programs()->Get(plan::programOf(plan, rank));
    std::vector<plan::ListShape> lists = plan::listsOf(program);
    uint32_t list = 0;
    while (lists[list].kind != kind)
      ++list;
    const plan::Instruction &of = *plan::listOf(program, list).Get(instruction);
    absl::StrAppend(
        &events, events.empty() ? "" : ",", R"({"ph":"X","pid":)", rank,
        R"(,"ts":)", begin, R"(,"dur":)", end - begin, R"(,"name":)",
        quoted(of.name()), R"(,"cat":")", plan::EnumNameOperation(of.op_type()),
        R"(","args":{"step":)", step, R"(,"action":")",
        plan::textOf(lists[list], microbatch), R"(","instruction":)",
        instruction, R"(,"wait_us":)", wait, "}}");
  }

  std::string text() const {
    return absl::StrCat(R"({"otherData":{"plan":)", quoted(plan.source_hash()),
                        R"(},"traceEvents":[)", events, "]}");
  }

private:
  const plan::Plan &plan;
  std::string events;
};

Measured measuredBy(const Loaded &file, const Writer &trace) {
  absl::StatusOr<Measured> told = measured(file.plan(), trace.text());
  EXPECT_TRUE(told.ok()) << told.status();
  return told.ok() ? *told : Measured();
}

/// Two stages and two microbatches of 1F1B, later by `shift`: F takes 10, B 20;
/// transfers 1, and the rest of their time is waiting.
void addStep(Writer &trace, double shift) {
  auto add = [&](uint32_t rank, ListKind kind, uint32_t microbatch,
                 double begin, double end, double wait = 0) {
    trace.add(rank, kind, microbatch, 0, shift + begin, shift + end, wait);
  };
  add(0, ListKind::forward, 0, 0, 10);
  add(0, ListKind::send, 0, 10, 11);
  add(0, ListKind::forward, 1, 10, 20);
  add(0, ListKind::send, 1, 20, 60, 30);
  add(0, ListKind::recv_grad, 0, 20, 50, 29);
  add(0, ListKind::backward, 0, 50, 70);
  add(0, ListKind::recv_grad, 1, 70, 80, 8);
  add(0, ListKind::backward, 1, 80, 100);
  add(1, ListKind::recv, 0, 10, 12, 1);
  add(1, ListKind::forward, 0, 12, 22);
  add(1, ListKind::backward, 0, 22, 42);
  add(1, ListKind::send_grad, 0, 42, 50, 7);
  add(1, ListKind::recv, 1, 42, 43);
  add(1, ListKind::forward, 1, 44, 54);
  add(1, ListKind::backward, 1, 54, 74);
  add(1, ListKind::send_grad, 1, 74, 76);
}

Loaded twoStages() {
  return Loaded(plan::test::pipelinePlan({.stages = 2, .microbatches = 2}));
}

TEST(Measured, aPipelineIsSimulatedWithItsOwnTimes) {
  Loaded file = twoStages();
  Writer trace(file.plan());
  addStep(trace, 7);
  Measured told = measuredBy(file, trace);
  EXPECT_EQ(told.steps, 1u);
  EXPECT_FALSE(told.skippedFirst);
  EXPECT_NEAR(told.step.median, 100e-6, 1e-12);
  ASSERT_TRUE(told.pipeline);
  EXPECT_NEAR(told.pipeline->span.best, 100e-6, 1e-12);
  EXPECT_NEAR(told.pipeline->measuredBubble, 0.4, 1e-9);
  // By hand: each way a transfer of 1 on the path; the second receive is posted
  // after the first backward.
  EXPECT_NEAR(told.pipeline->simulatedSpan, 93e-6, 1e-12);
  EXPECT_NEAR(told.pipeline->simulatedBubble, 1 - 60 / 93.0, 1e-9);
  EXPECT_NEAR(told.simulatedStep, 93e-6, 1e-12);
}

const Measured::OfList &listOf(const Measured &told, uint32_t program,
                               const std::string &name) {
  static const Measured::OfList none;
  for (const Measured::OfList &list : told.lists)
    if (list.program == program && list.name == name)
      return list;
  ADD_FAILURE() << "no list " << name;
  return none;
}

TEST(Measured, listsHaveTheirBestAndTheirMedianWithoutWaiting) {
  Loaded file = twoStages();
  Writer trace(file.plan());
  for (double shift : {0.0, 1000.0, 2000.0}) {
    addStep(trace, shift);
    ++trace.step;
  }
  Measured told = measuredBy(file, trace);
  EXPECT_EQ(told.steps, 2u);
  EXPECT_TRUE(told.skippedFirst);
  const Measured::OfList &forward = listOf(told, 0, "forward");
  EXPECT_EQ(forward.runs, 2u);
  EXPECT_NEAR(forward.times.best, 10e-6, 1e-12);
  EXPECT_NEAR(forward.times.median, 10e-6, 1e-12);
  EXPECT_GT(forward.times.planned, 0);
  EXPECT_DOUBLE_EQ(*ratioOf(forward.times),
                   forward.times.median / forward.times.planned);
  const Measured::OfList &receive = listOf(told, 0, "recv_grad");
  EXPECT_NEAR(receive.times.best, 1e-6, 1e-12);
  EXPECT_NEAR(receive.times.median, 1.5e-6, 1e-12);
  EXPECT_NEAR(receive.wait, 18.5e-6, 1e-12);
}

TEST(Measured, movesTellWhatTheRankHides) {
  Loaded file = twoStages();
  Writer trace(file.plan());
  addStep(trace, 0);
  Measured told = measuredBy(file, trace);
  ASSERT_EQ(told.moves.front().kind, "send");
  const Measured::OfMoves &send = told.moves.front();
  EXPECT_EQ(send.axis, "pp");
  EXPECT_EQ(send.phase, "forward");
  EXPECT_EQ(send.count, 2u);
  EXPECT_NEAR(send.times.median, (1 + 10) * 1e-6, 1e-12);
  EXPECT_NEAR(send.wait, 30e-6, 1e-12);
  // [10, 11) under F, and of [20, 60) what B covers from 50 on.
  EXPECT_NEAR(send.isHidden, (1 + 10) / 41.0, 1e-9);
}

/// The sum of the gradients goes on while something computes.
TEST(Measured, aChannelIsNoPartOfItsList) {
  plan::PlanT plan = plan::test::tinyPlan({.ranks = 2});
  auto &update = plan::test::updateOf(*plan.programs[0]);
  update[1]->channel = 1;
  auto wait = std::make_unique<plan::InstructionT>();
  plan::WaitT op;
  op.channel = op.count = 1;
  wait->op.Set(std::move(op));
  update.insert(update.begin() + 2, std::move(wait));
  uint32_t last = static_cast<uint32_t>(update.size()) - 1;
  Loaded file(plan);
  Writer trace(file.plan());
  for (uint32_t rank : {0, 1}) {
    trace.add(rank, ListKind::update, 0, 1, 0, 20, 4);
    trace.add(rank, ListKind::update, 0, last, 5, 15);
  }
  Measured told = measuredBy(file, trace);
  EXPECT_FALSE(told.pipeline);
  EXPECT_NEAR(listOf(told, 0, "update").times.median, 10e-6, 1e-12);
  EXPECT_NEAR(told.step.median, 20e-6, 1e-12);
  ASSERT_FALSE(told.moves.empty());
  EXPECT_NEAR(told.moves[0].isHidden, 0.5, 1e-9);
  EXPECT_NEAR(told.moves[0].times.best, 16e-6, 1e-12);
}

TEST(Measured, isToldInTextAndJson) {
  Loaded file = twoStages();
  Writer trace(file.plan());
  addStep(trace, 0);
  Measured one = measuredBy(file, trace);
  std::string told = text(file.plan(), one);
  for (const char *part :
       {"Measured in 1 step, planned for cpu\n", "pipeline", "40.0 %",
        "backward", "send_grad of stage 1", "hidden"})
    EXPECT_HAS(told, part);
  auto object = nlohmann::json::parse(*json(file.plan(), &one));
  EXPECT_TRUE(object.contains("estimate"));
  const auto &measured = object["measured"];
  EXPECT_NEAR(measured["pipeline"]["bubble_fraction"]["measured"].get<double>(),
              0.4, 1e-9);
  EXPECT_NEAR(measured["step"]["median_ms"].get<double>(), 0.1, 1e-9);
  EXPECT_EQ(measured["lists"][0]["list"], "forward");
  EXPECT_EQ(measured["moves"][0]["axis"], "pp");
  EXPECT_FALSE(nlohmann::json::parse(*json(file.plan())).contains("measured"));
}

TEST(Measured, whatIsNoTraceOfThisPlanIsRefused) {
  Loaded file = twoStages();
  Writer trace(file.plan());
  addStep(trace, 0);
  std::string good = trace.text();
  auto with = [&](const std::string &from, const std::string &to) {
    std::string text = good;
    size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return at == std::string::npos ? text : text.replace(at, from.size(), to);
  };
  Writer half(file.plan());
  half.add(0, ListKind::forward, 0, 0, 0, 1);
  std::pair<std::string, std::string> cases[] = {
      {"", "is not JSON"},
      {good.substr(0, good.size() / 2), "is not JSON"},
      {"[]", "found an array, expected a trace"},
      {"7", "found a number, expected a trace"},
      {"{}", "names no plan"},
      {Writer(file.plan()).text(), "holds no event of a step"},
      {R"({"traceEvents":[1]})", "has a number among \"traceEvents\""},
      {R"({"traceEvents":[[]]})", "has an array among \"traceEvents\""},
      {std::string(20000, '['), "found an array"},
      {R"({"a":)" + std::string(20000, '['), "nests deeper than 64"},
      {with(R"("plan":)", R"("plan":"other","was":)"),
       "the plan with the source \"other\""},
      {with(R"("dur":10)", R"("dur":1e300)"),
       "event 0: \"dur\" is 1e+300, expected a number from 0 to 1e+15"},
      {with(R"("dur":10)", R"("dur":1e400)"), "is not JSON"},
      {with(R"("ts":0)", R"("ts":-1)"), "event 0: \"ts\" is -1"},
      {with(R"("pid":0)", R"("pid":0.5)"), "expected a whole number"},
      {with(R"("pid":0)", R"("pid":2)"), "is of rank 2"},
      {with(R"("pid":0,)", ""), "lacks one of pid"},
      {with("\"0F0\"", "\"0F7\""), "is of action \"0F7\" of rank 0"},
      {with(R"("instruction":0)", R"("instruction":9)"),
       "is of instruction 9 of \"0F0\""},
      {with(R"("cat":")", R"("cat":"No)"), "is of instruction 0"},
      {with(R"("name":")", R"("name":"No )"), "is of instruction 0"},
      {half.text(), "holds events of 1 of the plan's 2 ranks"}};
  for (const auto &[text, message] : cases) {
    absl::StatusOr<Measured> told = measured(file.plan(), text);
    ASSERT_FALSE(told.ok()) << message;
    EXPECT_EQ(told.status().code(), absl::StatusCode::kDataLoss);
    EXPECT_HAS(std::string(told.status().message()), message);
  }
}

} // namespace
} // namespace meshwork::explain::test
