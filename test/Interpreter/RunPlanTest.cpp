// A plan that runs byte by byte finds what no other check can: each instruction
// of a program matters, and so does where it stands.
#include "passes/verify/RunPlan.h"
#include "TinyConfigs.h"

#include "dialects/schedule/Schedule.h"

using namespace meshwork;
using namespace meshwork::interpreter;
using schedule::InstructionOpInterface;

namespace {

constexpr uint32_t vocabulary = 12;

/// A step with every kind of collective and some beside the computation, as a
/// program whose buffers are not placed yet.
class Scheduled : public testing::Test {
protected:
  static constexpr const char *head = R"(
[mesh]
axes = ["dp=2", "tp=2"]
[batch]
global = 8
micro = 2
sequence = 4
[shard]
residual_sequence = ["tp"]
[precision]
compute = "f32"
[overlap]
collectives = "always"
[zero]
stage = )";
  explicit Scheduled(const char *zeroStage = "3")
      : all(tinyLlama({.keyHeads = 2, .tied = true}),
            std::string(head) + zeroStage, 256, "schedule") {}

  void SetUp() override { ASSERT_TRUE(all.program) << all.diagnostics; }

  /// What is found when `change` has changed the program: by the check of a
  /// plan, or by running it.
  std::string runChanged(llvm::function_ref<void(mlir::ModuleOp)> change,
                         verify::Places places = verify::Places::arena) {
    return all.runAsPlan(vocabulary, change, places);
  }

  static std::vector<InstructionOpInterface>
  instructionsOf(mlir::ModuleOp module) {
    std::vector<InstructionOpInterface> list;
    module.walk([&](InstructionOpInterface op) { list.push_back(op); });
    return list;
  }

  Compiled all;
};

std::string nameOf(mlir::Operation *op) {
  std::string text;
  llvm::raw_string_ostream(text)
      << op->getName() << " " << op->getAttr("source");
  return text;
}

TEST_F(Scheduled, MeansWhatOneRankMeans) {
  for (verify::Places places : {verify::Places::arena, verify::Places::apart})
    EXPECT_EQ(runChanged([](mlir::ModuleOp) {}, places), "");
}

TEST_F(Scheduled, NeedsEachInstruction) {
  size_t count = instructionsOf(all.program->module()).size();
  ASSERT_GT(count, 100u);
  for (size_t i = 0; i < count; ++i) {
    std::string name;
    std::string found = runChanged([&](mlir::ModuleOp module) {
      InstructionOpInterface op = instructionsOf(module)[i];
      name = nameOf(op);
      op->erase();
    });
    EXPECT_NE(found, "") << "without " << name << " nothing changed";
  }
}

/// Behind its reader an instruction's result comes too late.
TEST_F(Scheduled, NeedsEachCollectiveWhereItStands) {
  size_t count = instructionsOf(all.program->module()).size(), moved = 0;
  for (size_t i = 0; i < count; ++i) {
    bool isMoved = false;
    std::string name,
        found = runChanged([&](mlir::ModuleOp module) {
          InstructionOpInterface op = instructionsOf(module)[i];
          if (!llvm::isa<schedule::CollectiveOp>(op.getOperation()))
            return;
          name = nameOf(op);
          isMoved = true;
          op->moveBefore(op->getBlock(), op->getBlock()->end());
        });
    if (isMoved)
      EXPECT_NE(found, "") << name << " may stand anywhere";
    moved += isMoved;
  }
  EXPECT_GT(moved, 20u);
}

/// Whether an instruction reads by the view, and none writes by it. (A wait's
/// views are for passes; a plan does not have them.)
bool isOnlyRead(schedule::ViewOp view) {
  bool isRead = false;
  for (mlir::OpOperand &use : view->getUses()) {
    auto user = llvm::dyn_cast<InstructionOpInterface>(use.getOwner());
    if (!user || llvm::isa<schedule::WaitOp>(use.getOwner()))
      continue;
    unsigned firstWrite = user->getNumOperands() - user.countWrites();
    if (use.getOperandNumber() >= firstWrite)
      return false;
    isRead = true;
  }
  return isRead;
}

/// The update gathers new weights, in their own place.
class ScheduledGathers : public Scheduled {
protected:
  ScheduledGathers() : Scheduled("1") {}
};

/// A state's old value and its new one lie in the same bytes: each read says
/// which it means, and means no other.
TEST_F(ScheduledGathers, NeedEachReadOfAStateToSayWhichValue) {
  auto readsOf = [](mlir::ModuleOp module) {
    std::vector<schedule::ViewOp> list;
    module.walk([&](schedule::ViewOp op) {
      auto buffer = op.getBuffer().getDefiningOp<schedule::BufferOp>();
      bool isState = buffer.getKind() == schedule::BufferKind::weights ||
                     buffer.getKind() == schedule::BufferKind::optimizer;
      if (isState && buffer.getPersistent() && isOnlyRead(op))
        list.push_back(op);
    });
    return list;
  };
  size_t ofUpdate = 0;
  for (size_t i = 0; i < readsOf(all.program->module()).size(); ++i) {
    bool isUpdated = false;
    std::string found = runChanged([&](mlir::ModuleOp module) {
      schedule::ViewOp view = readsOf(module)[i];
      isUpdated = view.getUpdated();
      view.setUpdated(!isUpdated);
    });
    EXPECT_NE(found.find(isUpdated ? "as the step finds it"
                                   : "as the update leaves it"),
              std::string::npos)
        << i << ": " << found;
    ofUpdate += isUpdated;
  }
  EXPECT_GT(ofUpdate, 3u);
}

/// Read from another buffer of the same size, as a bias from the wrong place:
/// only the values are others.
TEST_F(Scheduled, NeedsEachReadFromItsBuffer) {
  auto viewsOf = [](mlir::ModuleOp module) {
    std::vector<schedule::ViewOp> list;
    module.walk([&](schedule::ViewOp op) {
      if (isOnlyRead(op))
        list.push_back(op);
    });
    return list;
  };
  auto otherBuffer = [](schedule::ViewOp view) -> mlir::Value {
    for (auto buffer : view->getParentOfType<schedule::ProgramOp>()
                           .getBody()
                           .getOps<schedule::BufferOp>())
      if (buffer.getType() == view.getBuffer().getType() &&
          buffer.getResult() != view.getBuffer())
        return buffer;
    return view.getBuffer();
  };
  constexpr size_t step = 3; // every third, for time
  size_t count = viewsOf(all.program->module()).size(), byRunning = 0;
  for (size_t i = 0; i < count; i += step) {
    bool isChanged = false;
    std::string text, found = runChanged([&](mlir::ModuleOp module) {
                        schedule::ViewOp view = viewsOf(module)[i];
                        llvm::raw_string_ostream(text) << view;
                        mlir::Value other = otherBuffer(view);
                        isChanged = other != view.getBuffer();
                        view.getBufferMutable().assign(other);
                      });
    EXPECT_EQ(found != "", isChanged) << text;
    byRunning += isChanged && found.find("refuse") == std::string::npos;
  }
  EXPECT_GT(byRunning, 20u); // the check of a plan refuses the others
}

} // namespace
