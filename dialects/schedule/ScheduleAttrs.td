// The schedule dialect, and its attributes.
#ifndef MESHWORK_SCHEDULE_ATTRS
#define MESHWORK_SCHEDULE_ATTRS

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "meshwork/Plan/Enums.td"

def Schedule_Dialect : Dialect {
  let name = "schedule";
  let summary = "What one rank does, in which order, in which bytes";
  let description = [{
    A `schedule.program` declares buffers (ranges of an arena), lists of
    instructions, and a table of actions: the order in which a step runs the
    lists. `once` runs after the weights are in place. `step` begins each
    optimizer step, and `update` ends it. `forward` and `backward` run for each
    microbatch, as do the other kinds of a pipeline's stages.
    The runtime executes instructions, which act on views of buffers. Each is
    one table of the plan (include/meshwork/Plan/Plan.fbs): op and table have
    one name, and the op's accessors are called like the table's fields.
    Each instruction's operands are its reads, then its writes, all of them
    results of `schedule.view`; flops and bytes are not negative.
  }];
  let cppNamespace = "::meshwork::schedule";
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::meshwork::mesh::MeshDialect", "::meshwork::transformer::TransformerDialect"];
}

// Cases come from Plan.fbs, so a plan's table takes the number as it is.
class Schedule_Enum<string name, string summary, list<I32EnumCase> cases> : I32Enum<name, summary, cases> {
  let cppNamespace = "::meshwork::schedule";
}
class Schedule_EnumAttr<EnumInfo info, string mnemonic> : EnumAttr<Schedule_Dialect, info, mnemonic> {
  let assemblyFormat = "$value";
}

def Schedule_BufferKind : Schedule_Enum<"BufferKind", "what bytes are for", PlanBufferKind>;
def Schedule_BufferKindAttr : Schedule_EnumAttr<Schedule_BufferKind, "buffer_kind">;

def Schedule_Epilogue : Schedule_Enum<"Epilogue", "what a product does beside multiplying", PlanEpilogue>;
def Schedule_EpilogueAttr : Schedule_EnumAttr<Schedule_Epilogue, "epilogue">;

def Schedule_Accumulate : Schedule_Enum<"Accumulate", "whether an instruction adds to its destination", PlanAccumulate>;
def Schedule_AccumulateAttr : Schedule_EnumAttr<Schedule_Accumulate, "accumulate">;

def Schedule_ListKind : Schedule_Enum<"ListKind", "what a list is for", PlanListKind>;
def Schedule_ListKindAttr : Schedule_EnumAttr<Schedule_ListKind, "list_kind">;

def Schedule_InputKind : Schedule_Enum<"InputKind", "what the runtime writes", PlanInputKind>;
def Schedule_InputKindAttr : Schedule_EnumAttr<Schedule_InputKind, "input_kind">;

def Schedule_ResultKind : Schedule_Enum<"ResultKind", "what the runtime reads", PlanResultKind>;
def Schedule_ResultKindAttr : Schedule_EnumAttr<Schedule_ResultKind, "result_kind">;

def Schedule_CollectiveKind : Schedule_Enum<"CollectiveKind", "what moves", PlanCollectiveKind>;
def Schedule_CollectiveKindAttr : Schedule_EnumAttr<Schedule_CollectiveKind, "collective_kind">;
def Schedule_Reduction : Schedule_Enum<"Reduction", "how partial values combine", PlanReduction>;
def Schedule_ReductionAttr : Schedule_EnumAttr<Schedule_Reduction, "reduction">;

def Schedule_PassKind : Schedule_Enum<"PassKind", "which part of a step a collective is counted to", PlanPass>;
def Schedule_PassAttr : Schedule_EnumAttr<Schedule_PassKind, "pass">;
// Attributes of other dialects.
class Schedule_OthersAttr<string type, string summary> : Attr<CPred<"::llvm::isa<" # type # ">($_self)">, summary> {
  let storageType = type;
  let returnType = type;
  let convertFromStorage = "$_self";
}
def Schedule_CauseAttr : Schedule_OthersAttr<"::meshwork::mesh::CauseAttr", "why it is there">;
def Schedule_SplitAttr : Schedule_OthersAttr<"::meshwork::mesh::DimShardingAttr", "how axes split a dim">;
def Schedule_AttentionAttr : Schedule_OthersAttr<"::meshwork::transformer::AttentionAttr", "what attention is told in numbers">;

def Schedule_StateRole : Schedule_Enum<"StateRole", "what a state of a parameter is for", PlanStateRole>;

def Schedule_StateAttr : AttrDef<Schedule_Dialect, "State"> {
  let mnemonic = "state";
  let summary = "What is kept for a parameter: name, role, initial value of what an optimizer keeps (0), sharding (whole)";
  let parameters = (ins "::mlir::StringAttr":$name, EnumParameter<Schedule_StateRole>:$role,
                        OptionalParameter<"::mlir::FloatAttr">:$initial, OptionalParameter<"::mlir::Attribute">:$sharding);
  let assemblyFormat = "`<` $name `,` $role (`initially` $initial^)? (`over` $sharding^)? `>`";
}

def Schedule_ActionTableAttr : AttrDef<Schedule_Dialect, "ActionTable"> {
  let mnemonic = "action_table";
  let summary = "The order in which a rank's module runs its lists of microbatches";
  let description = [{
    An attribute `schedule.action_table` of the module of a rank, as
    -pipeline-cut-stages writes it and -schedule-lower reads it. Written as
    `schedule.actions` is, without `step` and `update`.
    ```mlir
    module attributes {schedule.action_table = #schedule.action_table<[0F0, 0SEND_F0, 0RECV_B0, 0B0]>} {}
    ```
  }];
  let parameters = (ins "::mlir::DenseI32ArrayAttr":$table);
  let assemblyFormat = "`<` custom<Actions>($table) `>`";
}

def Schedule_EqualRankAttr : AttrDef<Schedule_Dialect, "EqualRank"> {
  let mnemonic = "equal_rank";
  let summary = "A rank whose step is equal to another's but for names and numbers";
  let description = [{
    It stands in the list `schedule.equal_ranks` of the rank that stands for it:
    of that rank's module, and then of its program. It has the coordinate of its
    rank and the order of its actions. Pairs say what becomes what: how names of
    parameters begin, and numbers of layers, of stages and of peers.
    ```mlir
    module attributes {schedule.equal_ranks = [#schedule.equal_rank<2, [1F0, 1B0], ["h.0", "h.1"],
      layers = [0, 1], stages = [0, 1], peers = [1, 2]>]} {}
    ```
  }];
  let parameters = (ins "int64_t":$coordinate, "::mlir::DenseI32ArrayAttr":$table, "::mlir::ArrayAttr":$names,
                        "::mlir::DenseI64ArrayAttr":$layers, "::mlir::DenseI64ArrayAttr":$stages, "::mlir::DenseI64ArrayAttr":$peers);
  let assemblyFormat = "`<` $coordinate `,` custom<Actions>($table) `,` $names `,` struct($layers, $stages, $peers) `>`";
}

def Schedule_ShiftAttr : AttrDef<Schedule_Dialect, "Shift"> {
  let mnemonic = "shift";
  let summary = "Bytes that a rank's index along axes, major first, moves a view by";
  let description = [{
    With a hop, by the index of the rank so many places before it in their ring.
    ```mlir
    module attributes {
      own = #schedule.shift<["tp"], 128>,
      before = #schedule.shift<["tp"], 128 hop 1>
    } {}
    ```
  }];
  let parameters = (ins "::mlir::ArrayAttr":$axes, "int64_t":$bytes, DefaultValuedParameter<"int64_t", "0">:$hop);
  let assemblyFormat = "`<` $axes `,` $bytes (`hop` $hop^)? `>`";
}

#endif // MESHWORK_SCHEDULE_ATTRS
