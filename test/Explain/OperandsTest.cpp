// Operands of instructions, as the attributes in Plan.fbs say: their order and
// what is done to them.
#include "lib/Plan/Operands.h"
#include "lib/Plan/Operation.h"
#include <gtest/gtest.h>

namespace meshwork::plan {
namespace {

/// "lhs r0, dst w2": roles, reads and writes, views.
template <typename Table> std::string operandsOf(Table table) {
  InstructionT instruction;
  instruction.op.Set(std::move(table));
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(Instruction::Pack(builder, &instruction));
  std::string text;
  forEachOperand(*flatbuffers::GetRoot<Instruction>(builder.GetBufferPointer()),
                 [&](const Operand &operand) {
                   text += (text.empty() ? "" : ", ") +
                           std::string(operand.role) + " " +
                           (operand.read ? "r" : "") +
                           (operand.written ? "w" : "") +
                           std::to_string(operand.view);
                 });
  return text;
}

TEST(Operands, standInTheOrderOfFieldsReadsFirst) {
  CopyBlockT copy;
  copy.src = 0;
  copy.dst = 1;
  copy.first = 2;
  EXPECT_EQ(operandsOf(copy), "src r0, first r2, dst w1");
}

TEST(Operands, ofAProductDependOnItsEpilogueAndSum) {
  MatmulT product;
  product.lhs = 0;
  product.rhs = 1;
  product.dst = 2;
  EXPECT_EQ(operandsOf(product), "lhs r0, rhs r1, dst w2");
  product.accumulate = Accumulate::yes;
  product.aux = 3;
  product.epilogue = Epilogue::sum_lhs;
  EXPECT_EQ(operandsOf(product), "lhs r0, rhs r1, aux w3, dst rw2");
  product.epilogue = Epilogue::gelu_grad;
  product.bias = 4;
  product.lhs_scale = 5;
  product.rhs_scale = 6;
  EXPECT_EQ(operandsOf(product),
            "lhs r0, rhs r1, bias r4, lhs_scale r5, rhs_scale r6, aux r3, dst "
            "rw2");
}

TEST(Operands, ofLaunchesAreWrittenFromTheEnd) {
  LaunchT launch;
  launch.args = {7, 8, 9};
  launch.num_outputs = 2;
  EXPECT_EQ(operandsOf(launch), "args r7, args (output) w8, args (output) w9");
  launch.num_outputs = 0xffffffff;
  EXPECT_EQ(operandsOf(launch),
            "args (output) w7, args (output) w8, args (output) w9");
}

TEST(Operands, ofTablesWithinStandBetweenReadsAndWrites) {
  AttentionT attention;
  attention.q = 0;
  attention.k = 1;
  attention.v = 2;
  attention.out = 3;
  attention.lse = 4;
  attention.part = std::make_unique<AttentionPartT>();
  attention.part->documents = 5;
  attention.part->dropout = std::make_unique<DropoutT>();
  attention.part->dropout->random = 6;
  EXPECT_EQ(operandsOf(std::move(attention)),
            "q r0, k r1, v r2, part.documents r5, part.dropout.random r6, out "
            "w3, lse w4");
}

TEST(Operands, ofACollectiveMayBeOneView) {
  CollectiveT collective;
  for (uint32_t dst : {0u, 2u}) {
    collective.parts.push_back(std::make_unique<TransferT>());
    collective.parts.back()->dst = dst;
  }
  EXPECT_EQ(operandsOf(std::move(collective)),
            "src and dst rw0, src r0, dst w2");
  EXPECT_EQ(operandsOf(CollectiveT()), "");
}

TEST(Operation, hasTheNameOfTheSchedulesOp) {
  EXPECT_EQ(nameOf(Operation::Fill), "fill");
  EXPECT_EQ(nameOf(Operation::AttentionGrad), "attention_grad");
}

} // namespace
} // namespace meshwork::plan
