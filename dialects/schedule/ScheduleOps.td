// The schedule dialect: one ordered program per class of rank, on buffers.
#ifndef MESHWORK_SCHEDULE_OPS
#define MESHWORK_SCHEDULE_OPS

include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialects/schedule/ScheduleExpertOps.td"

def Schedule_ProgramOp : Schedule_Op<"program", [Symbol, NoTerminator, SingleBlock]> {
  let summary = "What every rank of one class does";
  let description = [{
    `arena_bytes` appears with `-memory-plan-arena`, and `host_bytes` where
    buffers lie in the host's memory. Programs along an axis of the
    mesh are those of its coordinates, in their order: the ranks of a pipeline.
    (C1) There is one table of actions at most.
    ```mlir
    schedule.program @rank {
      schedule.list update {
      }
      schedule.actions [update]
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<StrAttr>:$axis, OptionalAttr<I64Attr>:$arena_bytes,
    OptionalAttr<I64Attr>:$host_bytes);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name (`along` $axis^)? (`arena` $arena_bytes^)? (`on_host` $host_bytes^)? attr-dict-with-keyword $body";
  let hasRegionVerifier = 1; // C1, and C1 of list and of actions
}

def Schedule_ListOp : Schedule_Op<"list", [HasParent<"ProgramOp">, NoTerminator, SingleBlock]> {
  let summary = "Instructions in order, of a virtual stage";
  let description = [{
    (C1) No other list of the program has its kind and stage.
    ```mlir
    schedule.list forward {
    }
    ```
  }];
  let arguments = (ins Schedule_ListKindAttr:$kind, DefaultValuedAttr<I64Attr, "0">:$stage);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$kind (`stage` $stage^)? attr-dict-with-keyword $body";
}

def Schedule_ActionsOp : Schedule_Op<"actions", [HasParent<"ProgramOp">]> {
  let summary = "The table of actions: in which order a step runs the lists";
  let description = [{
    Three numbers for each action: the kind and the stage of its list, and the
    microbatch. Written as `explain` writes them, stage, kind, microbatch (F, B,
    I and W, SEND_F, RECV_F, SEND_B and RECV_B); kinds that no stage has stand
    alone.
    (C1) It runs each list as often and in the order that its kind asks for;
    `lib/Plan/Actions.h` has the rules.
    ```mlir
    schedule.actions [step, 0F0, 0B0, 0F1, 0B1, update]
    ```
  }];
  let arguments = (ins DenseI32ArrayAttr:$table);
  let assemblyFormat = "custom<Actions>($table) attr-dict";
}

def Schedule_BufferOp : Schedule_Op<"buffer", [HasParent<"ProgramOp">]> {
  let summary = "A range of an arena";
  let description = [{
    A persistent buffer lives from load to exit, another from its first use to
    its last. `offset` appears with `-memory-plan-arena`. One `on_host` lies in
    the host's memory, which only `schedule.copy` reads and writes.
    Where several microbatches are under way at once, that pass also gives each
    its copy; the type has the bytes of all, and views are of the first.
    (C1) its type is a memref of one static dim of i8, of one byte or more.
    (C2) copies, if said, are two or more, each of a multiple of 64 bytes.
    ```mlir
    %b = schedule.buffer "wte.weight" weights persistent : memref<128xi8>
    %x = schedule.buffer "residual" activations copies 2 : memref<256xi8>
    %m = schedule.buffer "first_moment" optimizer persistent on_host : memref<512xi8>
    ```
  }];
  let arguments = (ins StrAttr:$name, Schedule_BufferKindAttr:$kind, UnitAttr:$persistent, UnitAttr:$on_host,
    OptionalAttr<I64Attr>:$offset, OptionalAttr<I64Attr>:$copies);
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = "$name $kind (`persistent` $persistent^)? (`on_host` $on_host^)? (`at` $offset^)? (`copies` $copies^)? attr-dict `:` type($result)";
  let extraClassDeclaration = [{
    /// Of all copies.
    int64_t getSizeBytes() { return ::llvm::cast<::mlir::MemRefType>(getResult().getType()).getNumElements(); }
    int64_t getBytesOfCopy() { return getSizeBytes() / getCopies().value_or(1); }
  }];
  let hasVerifier = 1; // C1 C2
}

def Schedule_ViewOp : Schedule_Op<"view", [Pure]> {
  let summary = "A strided tensor within a buffer; `offset` in bytes";
  let description = [{
    On a rank it begins at `offset` and the sum of its `shifts` there; in turn t
    of a `schedule.repeat` t times its `advances` further, in bytes, one for each
    repeat around it, the outermost first. What is read through one that is
    `updated` is a weight or an optimizer's state as this step's update leaves
    it; else as the step finds it.
    (C1) lies within the buffer on the first rank; shape and strides are static and positive, of 8 dims at most; no two elements share bytes; the offset is a multiple of the element's size.
    (C2) elements are f32, bf16, i32, f8E4M3FN, f8E5M2 or i8.
    (C3) advances are no more than the repeats around it, multiples of the element's size and not negative; it lies within the buffer in the last turn of each.
    ```mlir
    %v = schedule.view %b at 64 : memref<128xi8> to memref<4x4xf32, strided<[4, 1]>>
    ```
  }];
  let arguments = (ins AnyMemRef:$buffer, I64Attr:$offset, OptionalAttr<ArrayAttr>:$shifts, OptionalAttr<DenseI64ArrayAttr>:$advances, UnitAttr:$updated);
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = "$buffer `at` $offset (`shifted` $shifts^)? (`advancing` $advances^)? (`updated` $updated^)? attr-dict `:` type($buffer) `to` type($result)";
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$buffer, "::mlir::IntegerAttr":$offset, "::mlir::ArrayAttr":$shifts),
                            [{ build($_builder, $_state, type, buffer, offset, shifts, ::mlir::DenseI64ArrayAttr()); }]>];
  let hasVerifier = 1; // C1, C2, C3
}

def Schedule_InputOp : Schedule_Op<"input"> {
  let summary = "Names a view that the runtime writes";
  let description = [{
    Of a rank's part of a dim of `size` elements, `coordinate` is the first,
    `extent` the number and `positions` all of them. Of `tokens`, `targets`,
    `documents`, `document_positions` and `inner_targets` the split is that of
    the sequence. With `hop`, `positions` are those
    of the rank so many places before, cyclically: whose part a ring brings then. `bias_correction` is
    1 - base^t in the t-th optimizer step.
    (C1) tokens, targets, documents, document_positions and inner_targets are i32 of two dims, positions of one, random and update_random [3],
         coordinate and extent one; learning_rate and bias_correction one f32, target_counts f32 of one dim; all without gaps.
    (C2) coordinate, extent and positions have a split and a positive size, only positions a hop; what is i32 of two dims may have a split, others neither.
    (C3) coordinate and extent are of blocks.
    (C4) bias_correction, and nothing else, has a base, from 0 to below 1.
    ```mlir
    schedule.input tokens %tokens : memref<1x8xi32, strided<[8, 1]>>
    schedule.input positions %positions over {"cp" zigzag} of 16 : memref<8xi32, strided<[1]>>
    schedule.input positions %others over {"cp" zigzag} of 16 hop 1 : memref<8xi32, strided<[1]>>
    schedule.input bias_correction %correction base 0.9 : memref<f32, strided<[]>>
    ```
  }];
  let arguments = (ins Schedule_InputKindAttr:$kind, AnyMemRef:$view, OptionalAttr<Schedule_SplitAttr>:$split, DefaultValuedAttr<I64Attr, "0">:$size,
                       DefaultValuedAttr<I64Attr, "0">:$hop, OptionalAttr<F32Attr>:$base);
  let assemblyFormat = "$kind $view (`over` $split^ `of` $size)? (`hop` $hop^)? (`base` $base^)? attr-dict `:` type($view)";
  let hasVerifier = 1; // C1 C2 C3 C4
}
def Schedule_ResultOp : Schedule_Op<"result"> {
  let summary = "Names a view that the runtime reads after `update`";
  let description = [{
    A metric has a name.
    (C1) one f32; of a `metric` as many as its shape says, without gaps.
    (C2) a `metric`, and nothing else, has a name.
    ```mlir
    schedule.result loss %loss : memref<f32, strided<[]>>
    ```
  }];
  let arguments = (ins Schedule_ResultKindAttr:$kind, OptionalAttr<StrAttr>:$name, AnyMemRef:$view);
  let assemblyFormat = "$kind ($name^)? $view attr-dict `:` type($view)";
  let hasVerifier = 1; // C1 C2
}
def Schedule_ParameterOp : Schedule_Op<"parameter"> {
  let summary = "Names a trained tensor of `shape` and its states, each with the view of a rank's part of it";
  let description = [{
    `files` and `other_files` are those of `transformer.parameter`.
    (C1) as many views as states; the states are `#schedule.state`, of different names, one of them the weight.
    ```mlir
    schedule.parameter "w" [64] of [8, 8] #transformer.init<normal, 0.0, 0.02>
      [#schedule.state<"weight", weight>, #schedule.state<"momentum", optimizer>] (%w, %m)
      : memref<8x8xf32, strided<[8, 1]>>, memref<8x8xf32, strided<[8, 1]>>
    ```
  }];
  let arguments = (ins StrAttr:$name, DenseI64ArrayAttr:$file_shape, DenseI64ArrayAttr:$shape, AnyAttr:$init, ArrayAttr:$states, Variadic<AnyMemRef>:$views,
                       OptionalAttr<ArrayAttr>:$files, OptionalAttr<ArrayAttr>:$other_files);
  let assemblyFormat = "$name $file_shape `of` $shape $init $states `(` $views `)` attr-dict `:` type($views)";
  let hasVerifier = 1; // C1
}

def Schedule_LaunchOp : Schedule_Instruction<"launch", (ins FlatSymbolRefAttr:$kernel, I64Attr:$items, I64Attr:$num_outputs),
    (ins Variadic<AnyMemRef>:$args), (ins),
    "$kernel `items` $items `outputs` $num_outputs `(` $args `)` attr-dict `:` type($args)"> {
  let summary = "Runs generated code; the last `num_outputs` args are written";
  let description = [{
    (C1) at least one arg is written, and one work item done.
    ```mlir
    schedule.launch "h.0.ln_1" flops 24 bytes 64 @kernel_0 items 8 outputs 1 (%x, %y) : memref<8xf32, strided<[1]>>, memref<8xf32, strided<[1]>>
    ```
  }];
  let writes = "getNumOutputs()";
}

def Schedule_MatmulOp : Schedule_Instruction<"matmul",
    (ins Schedule_AccumulateAttr:$accumulate, DefaultValuedAttr<Schedule_EpilogueAttr, "::meshwork::schedule::Epilogue::none">:$epilogue),
    (ins AnyMemRef:$lhs, AnyMemRef:$rhs, Optional<AnyMemRef>:$bias, Variadic<AnyMemRef>:$scales), (ins Optional<AnyMemRef>:$aux, AnyMemRef:$dst),
    "$accumulate (`epilogue` $epilogue^)? $lhs `,` $rhs (`scaled` $scales^ `:` type($scales))? (`bias` $bias^ `:` type($bias))? (`aux` $aux^ `:` type($aux))? `to` $dst attr-dict `:` type($lhs) `,` type($rhs) `to` type($dst)", [AttrSizedOperandSegments], 1> {
  let summary = "A library's matrix product of 3-D views [b,m,k] x [b,k,n], and an epilogue";
  let description = [{
    (C1) lhs is [b,m,k], rhs [b,k,n], or [1,k,n] for all of b, dst [b,m,n]; one of each view's inner strides is 1.
    (C2) both operands are f32 or bf16, alike, or both of 8 bits and not both e5m2, then dense along k; dst is f32 or bf16.
    (C3) operands of 8 bits have two scales, one f32 each, others none.
    (C4) a bias is n elements of f32 or bf16, and stands beside no epilogue but gelu.
    (C5) an epilogue is for one product of f32 or bf16 (b = 1); it has an aux, in no buffer that the product uses if it is written, but gelu may do without; none has no aux.
    (C6) beside gelu and gelu_grad dst is not added to and has dense rows; aux has its type and shape, with dense rows a multiple of 8 elements apart.
    (C7) aux of sum_lhs is m, of sum_rhs n dense elements of dst's type.
    ```mlir
    schedule.matmul "h.0.mlp.c_fc.weight" flops 256 bytes 256 no %x, %w to %y
      : memref<1x4x4xf32, strided<[16, 4, 1]>>, memref<1x4x8xf32, strided<[32, 8, 1]>> to memref<1x4x8xf32, strided<[32, 8, 1]>>
    ```
  }];
  let writes = "getAux() && getEpilogue() != Epilogue::gelu_grad ? 2 : 1";
  let accessors = [{
    ::mlir::Value getLhsScale() { return getScales().empty() ? ::mlir::Value() : getScales().front(); }
    ::mlir::Value getRhsScale() { return getScales().empty() ? ::mlir::Value() : getScales().back(); }
  }];
}

/// The part of attention that the transformer dialect's ops have, too, as views.
class Schedule_AttentionInstruction<string mnemonic, dag attributes, dag reads, dag written, string tensors, string rest>
    : Schedule_Instruction<mnemonic, !con((ins Schedule_AttentionAttr:$terms), attributes),
                           !con(reads, (ins Optional<AnyMemRef>:$documents, Optional<AnyMemRef>:$positions, Optional<AnyMemRef>:$keys, Variadic<AnyMemRef>:$random)),
                           written, tensors # [{ (`documents` $documents^ `:` type($documents))? (`positions` $positions^ `:` type($positions))?
                             (`keys` $keys^ `:` type($keys))? (`random` $random^ `:` type($random))? `to` }] # rest, [AttrSizedOperandSegments], 1> {
  code example = "";
  let description = [{
    Behind the results stands `#transformer.attention`.
    (C1) q and out are [b,s,heads,d], k and v [b,s,kv_heads,d], lse [b,heads,s]; heads are a multiple of kv_heads.
         With positions k and v may have another number of rows.
    (C2) all have one element type, f32 or bf16, lse is f32; with keys, what is written may be f32.
    (C3) the scale is finite, the window 0 (none) or more.
    (C4) documents are i32 [b,s] without gaps, and attention is causal.
    (C7) positions, which query of the sequence each row is (-1: padding), are i32 [s] without gaps; so are keys, for the rows of k and v, which stand beside positions, and then the number of all keys is positive.
    (C5) the rate is 0, or less than 1 and there are random: i32 [3], and perhaps the first head, one i32; `heads`, those of the global tensor, are 0 or no fewer than q's.
    (C8) it is not `shared`: what a rank does is in its program.
  }] # example;
  code ownAccessors = "";
  let accessors = "::meshwork::transformer::AttentionPart getPart() { return ::meshwork::transformer::AttentionPart(*this); }\n" # ownAccessors;
}
def Schedule_AttentionOp : Schedule_AttentionInstruction<"attention", (ins),
    (ins AnyMemRef:$q, AnyMemRef:$k, AnyMemRef:$v), (ins AnyMemRef:$out, AnyMemRef:$lse),
    "$q `,` $k `,` $v", "$out `,` $lse `` $terms attr-dict `:` type($q) `,` type($k) `,` type($v) `to` type($out) `,` type($lse)"> {
  let summary = "Blockwise attention";
  let example = [{
    ```mlir
    schedule.attention "h.0.attn" flops 64 bytes 256 %q, %k, %v to %o, %lse causal scale 0.5
      : memref<1x4x1x4xf32, strided<[16, 4, 4, 1]>>, memref<1x4x1x4xf32, strided<[16, 4, 4, 1]>>, memref<1x4x1x4xf32, strided<[16, 4, 4, 1]>>
      to memref<1x4x1x4xf32, strided<[16, 4, 4, 1]>>, memref<1x1x4xf32, strided<[4, 4, 1]>>
    ```
  }];
}

def Schedule_AttentionGradOp : Schedule_AttentionInstruction<"attention_grad", (ins UnitAttr:$duplicated),
    (ins AnyMemRef:$q, AnyMemRef:$k, AnyMemRef:$v, AnyMemRef:$out, AnyMemRef:$lse, AnyMemRef:$dout),
    (ins AnyMemRef:$dq, AnyMemRef:$dk, AnyMemRef:$dv),
    "$q `,` $k `,` $v `,` $out `,` $lse `,` $dout", "$dq `,` $dk `,` $dv `` $terms (`duplicated` $duplicated^)? attr-dict `:` type($q) `,` type($k) `,` type($v) `,` type($out) `,` type($lse) `,` type($dout) `to` type($dq) `,` type($dk) `,` type($dv)"> {
  let summary = "Gradients of blockwise attention; `duplicated` where other ranks compute the same";
  let example = [{
    (C6) dout and dq are like q, dk and dv like k, or with keys dq, dk and dv of f32.
    ```mlir
    schedule.attention_grad "h.0.attn" flops 160 bytes 512 %q, %k, %v, %o, %lse, %do to %dq, %dk, %dv causal scale 0.5
      : memref<1x4x1x4xf32, strided<[16, 4, 4, 1]>>, memref<1x4x1x4xf32, strided<[16, 4, 4, 1]>>, memref<1x4x1x4xf32, strided<[16, 4, 4, 1]>>,
        memref<1x4x1x4xf32, strided<[16, 4, 4, 1]>>, memref<1x1x4xf32, strided<[4, 4, 1]>>, memref<1x4x1x4xf32, strided<[16, 4, 4, 1]>>
      to memref<1x4x1x4xf32, strided<[16, 4, 4, 1]>>, memref<1x4x1x4xf32, strided<[16, 4, 4, 1]>>, memref<1x4x1x4xf32, strided<[16, 4, 4, 1]>>
    ```
  }];
  let ownAccessors = "bool getUnique() { return !getDuplicated(); }";
}

class Schedule_RowsInstruction<string mnemonic, dag attributes, dag reads, dag written, string format>
    : Schedule_Instruction<mnemonic, attributes, reads, written, format> {
  code example = "";
  let description = [{
    (C1) ids are i32.
    (C2) the table has two dims or more; the rows have the shape of the ids, then that of the table without its first dim; both are f32 or bf16.
    (C3) the first row is one i32.
  }] # example;
}

def Schedule_EmbeddingOp : Schedule_RowsInstruction<"embedding", (ins),
    (ins AnyMemRef:$table, AnyMemRef:$ids, Optional<AnyMemRef>:$first_row), (ins AnyMemRef:$out),
    "$table `,` $ids (`from` $first_row^ `:` type($first_row))? `to` $out attr-dict `:` type($table) `,` type($ids) `to` type($out)"> {
  let summary = "Rows of a table";
  let example = [{
    ```mlir
    schedule.embedding "wte.weight" flops 0 bytes 256 %table, %ids to %rows
      : memref<16x8xf32, strided<[8, 1]>>, memref<1x4xi32, strided<[4, 1]>> to memref<1x4x8xf32, strided<[32, 8, 1]>>
    ```
  }];
}

def Schedule_EmbeddingGradOp : Schedule_RowsInstruction<"embedding_grad", (ins Schedule_AccumulateAttr:$accumulate),
    (ins AnyMemRef:$ids, AnyMemRef:$dout, Optional<AnyMemRef>:$first_row), (ins AnyMemRef:$dtable),
    "$accumulate $ids `,` $dout (`from` $first_row^ `:` type($first_row))? `to` $dtable attr-dict `:` type($ids) `,` type($dout) `to` type($dtable)"> {
  let summary = "Adds rows up by id";
  let example = [{
    ```mlir
    schedule.embedding_grad "wte.weight (gradient)" flops 0 bytes 384 yes %ids, %rows to %table
      : memref<1x4xi32, strided<[4, 1]>>, memref<1x4x8xf32, strided<[32, 8, 1]>> to memref<16x8xf32, strided<[8, 1]>>
    ```
  }];
}

def Schedule_RotaryTableOp : Schedule_Instruction<"rotary_table", (ins DenseF32ArrayAttr:$inverse_frequencies, F32Attr:$scale),
    (ins Optional<AnyMemRef>:$positions), (ins AnyMemRef:$cos, AnyMemRef:$sin),
    "$inverse_frequencies `scale` $scale (`of` $positions^ `:` type($positions))? `to` $cos `,` $sin attr-dict `:` type($cos) `,` type($sin)"> {
  let summary = "Cosine and sine of each row's position: its number, or what `positions` says";
  let description = [{
    (C1) both are f32 of two dims, without gaps, of two columns for each frequency.
    (C2) frequencies and scale are finite.
    (C3) positions are i32, one for each row, without gaps; rows of negative ones are zero.
    ```mlir
    schedule.rotary_table "rotary_table" flops 0 bytes 256 [1.0, 0.5] scale 1.0 to %cos, %sin : memref<8x4xf32, strided<[4, 1]>>, memref<8x4xf32, strided<[4, 1]>>
    ```
  }];
}

def Schedule_FillOp : Schedule_Instruction<"fill", (ins F32Attr:$value), (ins), (ins AnyMemRef:$dst),
    "$value `to` $dst attr-dict `:` type($dst)"> {
  let summary = "Sets every element";
  let description = [{
    (C1) of what is neither f32 nor bf16 to a whole number that fits 32 bits.
    (C2) The elements lie side by side, or in rows of such at one stride.
    ```mlir
    schedule.fill "zero gradient wte.weight" flops 0 bytes 256 0.0 to %dst : memref<64xf32, strided<[1]>>
    ```
  }];
}

def Schedule_CopyBlockOp : Schedule_Instruction<"copy_block", (ins I64Attr:$dim), (ins AnyMemRef:$src, AnyMemRef:$first), (ins AnyMemRef:$dst),
    "`dim` $dim $src `from` $first `to` $dst attr-dict `:` type($src) `from` type($first) `to` type($dst)"> {
  let summary = "Copies a rank's part of a dim, with zeros behind its end";
  let description = [{
    (C1) src and dst have one element type and one shape but for the dim.
    (C2) they lie in two buffers.
    (C3) first is one i32.
    ```mlir
    schedule.copy_block "slice" flops 0 bytes 64 dim 0 %src from %first to %dst : memref<6x4xf32, strided<[4, 1]>> from memref<i32, strided<[]>> to memref<2x4xf32, strided<[4, 1]>>
    ```
  }];
}

def Schedule_CopyOp : Schedule_Instruction<"copy", (ins DefaultValuedAttr<I64Attr, "0">:$channel), (ins AnyMemRef:$src), (ins AnyMemRef:$dst),
    "(`channel` $channel^)? $src `to` $dst attr-dict `:` type($src) `to` type($dst)"> {
  let summary = "Copies a view, from or to the host's memory where one of them lies there";
  let description = [{
    With a `channel` it is started there and runs beside what follows, until a
    `schedule.wait`.
    (C1) both have one type and shape and no gaps.
    (C2) they share no buffer.
    (C7) the channel is 0 to 8.
    ```mlir
    schedule.copy "first_moment" flops 0 bytes 128 channel 1 %kept to %near : memref<16xf32, strided<[1]>> to memref<16xf32, strided<[1]>>
    ```
  }];
  let channel = "getChannel()";
}

def Schedule_GroupScore : Schedule_Enum<"GroupScore", "what a group of experts is chosen by", PlanGroupScore>;
def Schedule_GroupScoreAttr : Schedule_EnumAttr<Schedule_GroupScore, "group_score">;

def Schedule_TopKOp : Schedule_Instruction<"top_k", (ins DefaultValuedAttr<I64Attr, "1">:$groups, DefaultValuedAttr<I64Attr, "1">:$kept_groups,
    DefaultValuedAttr<Schedule_GroupScoreAttr, "::meshwork::schedule::GroupScore::maximum">:$group_score),
    (ins AnyMemRef:$scores, Optional<AnyMemRef>:$valid), (ins AnyMemRef:$choices),
    "$scores (`valid` $valid^ `:` type($valid))? (`groups` $groups^ `kept` $kept_groups `by` $group_score)? `to` $choices attr-dict `:` type($scores) `to` type($choices)"> {
  let summary = "The numbers of the largest elements of each row";
  let description = [{
    (C1) scores are f32 [rows..., experts], with fewer than 2^31 experts, choices i32 [rows..., k] in another buffer; both have dense rows at one stride.
    (C2) groups divide the experts; 1 to all of them are kept; a sum of two needs two experts a group.
    (C3) k is 1 to as many experts as the kept groups have.
    (C4) valid is f32 with the rows' dims, without gaps.
    ```mlir
    schedule.top_k "top_k" flops 0 bytes 80 %scores to %choices : memref<1x2x8xf32, strided<[16, 8, 1]>> to memref<1x2x2xi32, strided<[4, 2, 1]>>
    ```
  }];
}

def Schedule_CollectiveOp : Schedule_Instruction<"collective", (ins Schedule_CollectiveKindAttr:$kind, Schedule_ReductionAttr:$reduction,
    StrArrayAttr:$axes, Schedule_PassAttr:$pass, Schedule_CauseAttr:$cause, DenseI64ArrayAttr:$dims, DenseI64ArrayAttr:$to_dims, DenseI64ArrayAttr:$sources,
    DefaultValuedAttr<I64Attr, "0">:$channel, UnitAttr:$last_only, UnitAttr:$makes_loss, UnitAttr:$any_order), (ins Variadic<AnyMemRef>:$inputs), (ins Variadic<AnyMemRef>:$outputs),
    "$kind $reduction (`channel` $channel^)? (`last_only` $last_only^)? (`makes_loss` $makes_loss^)? (`any_order` $any_order^)? `over` $axes `in` $pass `cause` $cause `dims` $dims `to` $to_dims `sources` $sources `(` $inputs `)` `to` `(` $outputs `)` attr-dict `:` type($inputs) `to` type($outputs)",
    [AttrSizedOperandSegments], 1> {
  let summary = "Moves one bucket of views between the ranks that differ along `axes`; part i along `dims[i]`";
  let description = [{
    With a `channel` it is started there and runs beside what follows, until a
    `schedule.wait`. With `last_only` it moves something in the last action of
    its list in a step only. With `makes_loss` the step's loss is known when it is
    done. With `any_order` a sum may run in any order and be rounded after each
    addition. `cause` is of the first part, the others are like it.
    (C1) there is an axis and a part; inputs, outputs, dims and to_dims are as many.
    (C2) input and output of a part have one element type and as many dims; what is reduced is f32, bf16 or i32.
    (C3) a part's dim is one of its dims, of all_reduce and permute 0; its to_dim is one of all_to_all, else 0.
    (C4) input and output have one shape, but along dim, where all_gather brings more and reduce_scatter less, and all_to_all's dims.
    (C5) only permute has sources, and each is the index of one, or -1: zeros.
    (C6) only what is reduced has a reduction other than sum.
    (C7) the channel is 0 to 8.
    (C8) only sums have any order.
    ```mlir
    schedule.collective "all_gather" flops 0 bytes 128 all_gather sum over ["dp"] in forward cause "the weight is split" dims [0] to [0] sources []
      (%part) to (%whole) : memref<4x8xf32, strided<[8, 1]>> to memref<8x8xf32, strided<[8, 1]>>
    ```
  }];
  let channel = "getChannel()";
  let accessors = "::llvm::SmallVector<Transfer> getParts();";
}

def Schedule_WaitOp : Schedule_Instruction<"wait", (ins I64Attr:$channel, I64Attr:$count), (ins Variadic<AnyMemRef>:$views), (ins),
    "$channel `count` $count (`(` $views^ `)`)? attr-dict (`:` type($views)^)?"> {
  let summary = "Goes on when the first `count` instructions on `channel` in this list are done; until here they use `views`";
  let description = [{
    (C1) the channel is 1 to 8, the count 1 or more.
    ```mlir
    schedule.wait "all_gather" flops 0 bytes 0 1 count 1 (%whole) : memref<8x8xf32, strided<[8, 1]>>
    ```
  }];
}

class Schedule_TransferInstruction<string mnemonic, dag reads, dag written>
    : Schedule_Instruction<mnemonic, (ins StrAttr:$axis_name, I64Attr:$peer), reads, written,
                           "`(` $parts `)` `along` $axis_name `peer` $peer attr-dict `:` type($parts)", [], 1> {
  code example = "";
  let description = [{
    The other rank is at `peer` along the axis, and elsewhere where this one is.
    What is under way outlives its action; see Plan.fbs.
    (C1) it has a part, and a peer that is not negative.
    (C2) it stands alone in a list of its direction.
  }] # example;
  let accessors = "AxisName getAxis() { return {getAxisName()}; }";
}

def Schedule_SendOp : Schedule_TransferInstruction<"send", (ins Variadic<AnyMemRef>:$parts), (ins)> {
  let summary = "Moves views to another rank, which receives them; in a list of kind `send` or `send_grad`";
  let example = [{
    ```mlir
    schedule.send "to stage 1" flops 0 bytes 256 (%residual) along "pp" peer 1 : memref<1x8x8xf32, strided<[64, 8, 1]>>
    ```
  }];
}

def Schedule_ReceiveOp : Schedule_TransferInstruction<"receive", (ins), (ins Variadic<AnyMemRef>:$parts)> {
  let summary = "Fills views with what another rank sends; in a list of kind `recv` or `recv_grad`";
  let example = [{
    ```mlir
    schedule.receive "from stage 0" flops 0 bytes 256 (%residual) along "pp" peer 0 : memref<1x8x8xf32, strided<[64, 8, 1]>>
    ```
  }];
}

def Schedule_RepeatOp : Schedule_Op<"repeat", [NoTerminator, SingleBlock, Schedule_InstructionOpInterface]> {
  let summary = "Runs instructions several times; their views advance from turn to turn";
  let description = [{
    Its flops and bytes are 0: what is in it counts `times` times. With `counted` it
    runs as often as that number says, at most `times`, perhaps not at all; the plan's
    check asks that ranks which meet inside read one number.
    (C1) it runs once or more, and holds an instruction.
    (C2) it is in a list that runs for each microbatch, no deeper than in two others.
    (C3) each turn does the same: nothing in it is for the last microbatch only, makes the loss, or sets in the first microbatch what it adds to later. Only where it is counted, and all repeats around it, may something in it wait or have a channel.
    (C4) the count is one i32.
    ```mlir
    schedule.repeat "head" flops 0 bytes 0 times 3 {
      %row = schedule.view %b at 0 advancing [16] : memref<48xi8> to memref<4xf32, strided<[1]>>
      schedule.fill "one row" flops 0 bytes 16 0.0 to %row : memref<4xf32, strided<[1]>>
    }
    %rounds = schedule.view %b at 44 : memref<48xi8> to memref<1xi32, strided<[1]>>
    schedule.repeat "rounds" flops 0 bytes 0 times 2 counted %rounds : memref<1xi32, strided<[1]>> {
      %row = schedule.view %b at 0 advancing [16] : memref<48xi8> to memref<4xf32, strided<[1]>>
      schedule.fill "one row" flops 0 bytes 16 0.0 to %row : memref<4xf32, strided<[1]>>
    }
    ```
  }];
  let arguments = (ins StrAttr:$source, I64Attr:$flops, I64Attr:$bytes, I64Attr:$times, Optional<AnyMemRef>:$count);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$source `flops` $flops `bytes` $bytes `times` $times (`counted` $count^ `:` type($count))? attr-dict-with-keyword $body";
  let extraClassDeclaration = [{
    unsigned countWrites() { return 0; }
    uint64_t startsOn() { return 0; }
    /// Those in it, those of repeats in it included.
    uint64_t getInstructions();
  }];
  let hasVerifier = 1; // C4
  let hasRegionVerifier = 1; // C1, C2, C3
}

#endif // MESHWORK_SCHEDULE_OPS
