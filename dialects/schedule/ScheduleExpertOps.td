// Instructions of routing and experts: scores by choice, sorted rows, and products
// of one group of rows after the other.
#ifndef MESHWORK_SCHEDULE_EXPERT_OPS
#define MESHWORK_SCHEDULE_EXPERT_OPS

include "dialects/schedule/ScheduleInstruction.td"

def Schedule_PickOp : Schedule_Instruction<"pick", (ins), (ins AnyMemRef:$scores, AnyMemRef:$choices), (ins AnyMemRef:$out),
    "$scores `,` $choices `to` $out attr-dict `:` type($scores) `,` type($choices) `to` type($out)"> {
  let summary = "The scores of each row's choices";
  let description = [{
    (C1) scores are f32 [rows..., experts], with fewer than 2^31 experts, choices i32 [rows..., k], out f32 [rows..., k].
    (C2) each has dense rows at one stride.
    (C3) out shares no bytes with what is read.
    ```mlir
    schedule.pick "pick" flops 0 bytes 96 %scores, %choices to %out
      : memref<2x8xf32, strided<[8, 1]>>, memref<2x2xi32, strided<[2, 1]>> to memref<2x2xf32, strided<[2, 1]>>
    ```
  }];
}

def Schedule_PickGradOp : Schedule_Instruction<"pick_grad", (ins), (ins AnyMemRef:$choices, AnyMemRef:$dout), (ins AnyMemRef:$dscores),
    "$choices `,` $dout `to` $dscores attr-dict `:` type($choices) `,` type($dout) `to` type($dscores)"> {
  let summary = "Gradients of picked scores, each at its expert, zeros at the others";
  let description = [{
    (C1) choices are i32 [rows..., k], dout f32 [rows..., k], dscores f32 [rows..., experts] with fewer than 2^31 experts.
    (C2) each has dense rows at one stride.
    (C3) dscores share no bytes with what is read.
    ```mlir
    schedule.pick_grad "pick (gradient)" flops 0 bytes 96 %choices, %dout to %dscores
      : memref<2x2xi32, strided<[2, 1]>>, memref<2x2xf32, strided<[2, 1]>> to memref<2x8xf32, strided<[8, 1]>>
    ```
  }];
}

def Schedule_LimitChoicesOp : Schedule_Instruction<"limit_choices", (ins I64Attr:$experts, I64Attr:$most, I64Attr:$group), (ins AnyMemRef:$choices), (ins AnyMemRef:$kept),
    "$choices `experts` $experts `most` $most `group` $group `to` $kept attr-dict `:` type($choices) `to` type($kept)"> {
  let summary = "Choices that find their expert with room left, else -1";
  let description = [{
    (C1) choices and kept are i32 [tokens..., k], alike, without gaps, of fewer than 2^31 elements.
    (C2) there are 1 to 2^31 - 1 experts, most is 1 or more, and group, the tokens that share an expert's room, divides all tokens.
    (C3) kept shares no bytes with choices.
    ```mlir
    schedule.limit_choices "experts" flops 0 bytes 32 %choices experts 4 most 1 group 2 to %kept
      : memref<2x2xi32, strided<[2, 1]>> to memref<2x2xi32, strided<[2, 1]>>
    ```
  }];
}

def Schedule_SortRowsOp : Schedule_Instruction<"sort_rows", (ins DefaultValuedAttr<I64Attr, "0">:$most_choices), (ins AnyMemRef:$choices, Optional<AnyMemRef>:$first_expert),
    (ins AnyMemRef:$order, AnyMemRef:$tokens, AnyMemRef:$places, AnyMemRef:$begins),
    "$choices (`from` $first_expert^ `:` type($first_expert))? (`most` $most_choices^)? `to` $order `,` $tokens `,` $places `,` $begins attr-dict `:` type($choices) `to` type($order) `,` type($tokens) `,` type($places) `,` type($begins)"> {
  let summary = "Choices in the order of their experts: which choice and token each row is, where each choice went, where each expert begins";
  let description = [{
    (C1) choices and places are i32 [tokens..., k], alike, without gaps, of fewer than 2^31 elements.
    (C2) order and tokens are i32 [R], begins i32 [experts + 1], without gaps; there is an expert.
    (C3) R is at least the lesser of k and the experts, for each token, or as many choices as there are at `most`.
    (C4) the first expert is one i32.
    (C5) what is written shares no bytes with another operand.
    ```mlir
    schedule.sort_rows "experts" flops 0 bytes 76 %choices to %order, %tokens, %places, %begins
      : memref<2x2xi32, strided<[2, 1]>> to memref<4xi32, strided<[1]>>, memref<4xi32, strided<[1]>>, memref<2x2xi32, strided<[2, 1]>>, memref<3xi32, strided<[1]>>
    ```
  }];
}

def Schedule_AssignSlotsOp : Schedule_Instruction<"assign_slots", (ins I64Attr:$experts, I64Attr:$most_choices), (ins AnyMemRef:$choices),
    (ins AnyMemRef:$slots, AnyMemRef:$ranks, AnyMemRef:$places, AnyMemRef:$last),
    "$choices `experts` $experts `most` $most_choices `to` $slots `,` $ranks `,` $places `,` $last attr-dict `:` type($choices) `to` type($slots) `,` type($ranks) `,` type($places) `,` type($last)"> {
  let summary = "Which tokens go to which ranks in which round of an exchange, and in which slots";
  let description = [{
    (C1) choices are i32 [tokens..., k], ranks [tokens..., d], without gaps, of fewer than 2^31 elements; a rank has an expert.
    (C2) places are i32, M times as many as ranks, and slots [M * N, R], for M rounds and N ranks, without gaps.
    (C3) d is at least the lesser of k and N, most_choices at least c, the lesser of k and experts, and M times the lesser of R and most_choices / c
         at least the tokens.
    (C4) last is one i32.
    (C5) what is written shares no bytes with another operand.
    ```mlir
    schedule.assign_slots "experts" flops 0 bytes 84 %choices experts 2 most 4 to %slots, %ranks, %places, %last
      : memref<2x2xi32, strided<[2, 1]>> to memref<4x1xi32, strided<[1, 1]>>, memref<2x2xi32, strided<[2, 1]>>, memref<4x2xi32, strided<[2, 1]>>, memref<1xi32, strided<[1]>>
    ```
  }];
}

def Schedule_TakeRowsOp : Schedule_Instruction<"take_rows", (ins), (ins AnyMemRef:$table, AnyMemRef:$rows), (ins AnyMemRef:$out),
    "$table `,` $rows `to` $out attr-dict `:` type($table) `,` type($rows) `to` type($out)"> {
  let summary = "Rows of a table by their numbers; zeros where there is none, of i32 -1";
  let description = [{
    (C1) rows are i32 without gaps.
    (C2) the table has a dim or more; out has the shape of rows, then that of the table without its first dim; both are f32 or bf16, or both i32.
    (C3) both have dense rows at one stride.
    (C4) out shares no bytes with what is read.
    ```mlir
    schedule.take_rows "experts" flops 0 bytes 208 %table, %rows to %out
      : memref<2x8xf32, strided<[8, 1]>>, memref<4xi32, strided<[1]>> to memref<4x8xf32, strided<[8, 1]>>
    ```
  }];
}

def Schedule_CombineRowsOp : Schedule_Instruction<"combine_rows", (ins), (ins AnyMemRef:$src, AnyMemRef:$places, AnyMemRef:$choices), (ins AnyMemRef:$out),
    "$src `,` $places `,` $choices `to` $out attr-dict `:` type($src) `,` type($places) `,` type($choices) `to` type($out)"> {
  let summary = "The sum of each token's rows, along one binary tree over the numbers of experts";
  let description = [{
    (C1) places and choices are i32 [tokens..., k], alike, without gaps, of fewer than 2^31 elements.
    (C2) src has a dim or more; out has the dims of the tokens, then those of src without its first; both are f32 or bf16.
    (C3) both have dense rows at one stride.
    (C4) out shares no bytes with what is read.
    ```mlir
    schedule.combine_rows "experts" flops 16 bytes 224 %src, %places, %choices to %out
      : memref<4x8xf32, strided<[8, 1]>>, memref<2x2xi32, strided<[2, 1]>>, memref<2x2xi32, strided<[2, 1]>> to memref<2x8xf32, strided<[8, 1]>>
    ```
  }];
}

def Schedule_GroupedProductOp : Schedule_Instruction<"grouped_product", (ins), (ins AnyMemRef:$lhs, AnyMemRef:$rhs, AnyMemRef:$begins), (ins AnyMemRef:$out),
    "$lhs `,` $rhs `,` $begins `to` $out attr-dict `:` type($lhs) `,` type($rhs) `,` type($begins) `to` type($out)"> {
  let summary = "Rows times the matrix of their expert";
  let description = [{
    (C1) lhs is [R,K], rhs [experts,K,N], begins i32 [experts + 1] without gaps, out [R,N]; R is less than 2^31.
    (C2) lhs and rhs are f32 or bf16, alike; out is f32 or like them.
    (C3) lhs and out have dense rows; the stride of K or of N in rhs is 1.
    (C4) out shares no bytes with what is read.
    ```mlir
    schedule.grouped_product "experts.up" flops 512 bytes 780 %lhs, %rhs, %begins to %out
      : memref<4x8xf32, strided<[8, 1]>>, memref<2x8x8xf32, strided<[64, 8, 1]>>, memref<3xi32, strided<[1]>> to memref<4x8xf32, strided<[8, 1]>>
    ```
  }];
}

def Schedule_GroupedGradientOp : Schedule_Instruction<"grouped_gradient", (ins Schedule_AccumulateAttr:$accumulate),
    (ins AnyMemRef:$lhs, AnyMemRef:$rhs, AnyMemRef:$begins), (ins AnyMemRef:$dst),
    "$accumulate $lhs `,` $rhs `,` $begins `to` $dst attr-dict `:` type($lhs) `,` type($rhs) `,` type($begins) `to` type($dst)"> {
  let summary = "Each expert's sum of products of two rows";
  let description = [{
    (C1) lhs is [R,K], rhs [R,N], begins i32 [experts + 1] without gaps, dst [experts,K,N]; R is less than 2^31.
    (C2) lhs and rhs are f32 or bf16, alike; dst is f32 or like them.
    (C3) lhs and rhs have dense rows; the stride of K or of N in dst is 1.
    (C4) dst shares no bytes with what is read.
    ```mlir
    schedule.grouped_gradient "experts.up (gradient)" flops 512 bytes 780 yes %lhs, %rhs, %begins to %dst
      : memref<4x8xf32, strided<[8, 1]>>, memref<4x8xf32, strided<[8, 1]>>, memref<3xi32, strided<[1]>> to memref<2x8x8xf32, strided<[64, 8, 1]>>
    ```
  }];
}

#endif // MESHWORK_SCHEDULE_EXPERT_OPS
