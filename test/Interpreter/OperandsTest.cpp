// Two places say what an instruction does with its operands: its op in the
// schedule dialect, for passes, and the attributes of its table in Plan.fbs,
// for readers of plans. Here each instruction of the dialect's examples is
// written as a plan has it, and both must say the same of every view.
#include "lib/Plan/Operands.h"
#include "dialects/schedule/ProgramTables.h"
#include "dialects/schedule/Schedule.h"
#include "dialects/transformer/Transformer.h"
#include "lib/Plan/Operation.h"
#include "meshwork/Plan/Frame.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>
#include <set>

using namespace mlir;

namespace meshwork::schedule {
namespace {

using Uses = std::vector<std::string>; // "read 3", in the order of operands

std::string use(const char *what, uint32_t view) {
  return what + (" " + std::to_string(view));
}

Uses usesOf(const plan::Instruction &instruction) {
  Uses uses;
  plan::forEachOperand(instruction, [&](const plan::Operand &operand) {
    if (operand.read)
      uses.push_back(use("read", operand.view));
    if (operand.written)
      uses.push_back(use("write", operand.view));
    if (operand.addsUp)
      uses.push_back(use("add up", operand.view));
  });
  return uses;
}

/// What is added to, the last operand, is read as well, unless the first action
/// sets it.
Uses usesOf(InstructionOpInterface op, schedule::ProgramTables &tables) {
  auto mode = op->getAttrOfType<AccumulateAttr>("accumulate");
  Uses uses;
  for (Value view : op.getReads())
    uses.push_back(use("read", tables.view(view)));
  for (Value view : op.getWrites()) {
    bool isSum = mode && view == op->getOperands().back();
    if (isSum && mode.getValue() == Accumulate::yes)
      uses.push_back(use("read", tables.view(view)));
    uses.push_back(use("write", tables.view(view)));
    if (isSum && mode.getValue() == Accumulate::after_first)
      uses.push_back(use("add up", tables.view(view)));
  }
  return uses;
}

/// Which operands a table may have, and which of them an instruction has.
struct Roles {
  std::set<std::string> &possible, &present;

  void reads(uint32_t view, const char *role) {
    possible.insert(role);
    if (view != plan::noView)
      present.insert(role);
  }
  void writes(uint32_t view, const char *role) { reads(view, role); }
  void updates(uint32_t view, const char *role) { reads(view, role); }
  void adds(uint32_t view, const char *role, plan::Accumulate) {
    reads(view, role);
  }
  void readsIfThere(uint32_t view, const char *role) { reads(view, role); }
  void writesIfThere(uint32_t view, const char *role) { reads(view, role); }
  void readsAll(const flatbuffers::Vector<uint32_t> *views, const char *role) {
    readsAndWrites(views, 0, role, role);
  }
  void writesAll(const flatbuffers::Vector<uint32_t> *views, const char *role) {
    readsAndWrites(views, 0, role, role);
  }
  void readsAndWrites(const flatbuffers::Vector<uint32_t> *views, uint32_t,
                      const char *role, const char *) {
    reads(views && views->size() ? 0 : plan::noView, role);
  }
};

class Examples {
public:
  Examples() : context(MLIRContext::Threading::DISABLED) {
    context.loadDialect<ScheduleDialect, mesh::MeshDialect,
                        transformer::TransformerDialect>();
    kernels.ofLaunch["k"] = 0;
    axes["dp"] = 0;
    axes["pp"] = 1;
  }

  void compare(const std::string &file) {
    auto module = parseSourceFile<ModuleOp>(
        std::string(MESHWORK_SCHEDULE_EXAMPLES "/") + file, &context);
    ASSERT_TRUE(module) << file;
    for (auto program : module->getOps<ProgramOp>())
      compare(program);
  }

  std::map<std::string, std::set<std::string>> possible, present;

private:
  void compare(ProgramOp program) {
    Builder builder(&context);
    program.setArenaBytes(0);
    for (auto buffer : program.getOps<BufferOp>())
      buffer.setOffset(0);
    schedule::ProgramTables tables(program, kernels, axes);
    flatbuffers::FlatBufferBuilder bytes;
    bytes.Finish(plan::Program::Pack(bytes, tables.build().get()));
    const auto *written =
        flatbuffers::GetRoot<plan::Program>(bytes.GetBufferPointer());
    for (auto [list, ops] :
         llvm::zip_equal(*written->lists(), program.getOps<ListOp>()))
      if (list->instructions()) // else none
        compare(*list, ops, tables);
  }

  /// A repeat stands in front of what it repeats.
  void compare(const plan::List &list, ListOp ops,
               schedule::ProgramTables &tables) {
    SmallVector<InstructionOpInterface> inOrder;
    ops.walk<WalkOrder::PreOrder>(
        [&](InstructionOpInterface op) { inOrder.push_back(op); });
    ASSERT_EQ(list.instructions()->size(), inOrder.size());
    for (auto [instruction, op] :
         llvm::zip_equal(*list.instructions(), inOrder))
      compare(*instruction, op, tables);
  }

  void compare(const plan::Instruction &instruction, InstructionOpInterface op,
               schedule::ProgramTables &tables) {
    std::string kind = plan::nameOf(instruction.op_type());
    EXPECT_EQ("schedule." + kind, op->getName().getStringRef().str());
    noteOperands(kind, instruction, op);
    // A plan's reader finds them by the channel.
    if (isa<WaitOp>(op))
      return;
    Uses inPlan = usesOf(instruction), inDialect = usesOf(op, tables);
    if (isa<CollectiveOp>(op)) { // A plan has them part by part.
      llvm::sort(inPlan);
      llvm::sort(inDialect);
    }
    EXPECT_EQ(inPlan, inDialect) << kind << " " << op.getSource().str();
  }

  void noteOperands(const std::string &kind,
                    const plan::Instruction &instruction, Operation *op) {
    plan::visitOperation<void>(instruction, [&](const auto &table) {
      Roles roles{possible[kind], present[kind]};
      plan::visitOperands(table, roles);
    });
    auto sizes = op->getAttrOfType<DenseI32ArrayAttr>("operandSegmentSizes");
    for (auto [i, size] :
         llvm::enumerate(sizes ? sizes.asArrayRef() : ArrayRef<int32_t>())) {
      possible[kind].insert("operand group " + std::to_string(i));
      if (size != 0)
        present[kind].insert("operand group " + std::to_string(i));
    }
  }

  MLIRContext context;
  schedule::KernelNumbers kernels;
  llvm::StringMap<uint32_t> axes;
};

TEST(Operands, areUsedAlikeByTheDialectAndThePlan) {
  Examples examples;
  examples.compare("roundtrip.mlir");
  examples.compare("roundtrip-operands.mlir");
#define MESHWORK_IS_THERE(Kind)                                                \
  EXPECT_TRUE(examples.possible.contains(plan::nameOf(plan::Operation::Kind))) \
      << #Kind " has no example";
  MESHWORK_PLAN_INSTRUCTIONS(MESHWORK_IS_THERE)
#undef MESHWORK_IS_THERE
  for (const auto &[kind, roles] : examples.possible)
    EXPECT_EQ(examples.present[kind], roles)
        << kind << " has operands without an example";
}

} // namespace
} // namespace meshwork::schedule
