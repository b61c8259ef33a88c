// What definitions of instructions share.
#ifndef MESHWORK_SCHEDULE_INSTRUCTION
#define MESHWORK_SCHEDULE_INSTRUCTION

include "dialects/schedule/ScheduleAttrs.td"
include "dialects/schedule/ScheduleInterfaces.td"

class Schedule_Op<string mnemonic, list<Trait> traits = []> : Op<Schedule_Dialect, mnemonic, traits>;

/// lib/Plan judges the operands, as the launcher does of a plan.
def Schedule_OperandsFit : NativeOpTrait<"OperandsFit"> {
  let cppNamespace = "::meshwork::schedule";
}
/// Instructions: `source` says where they come from, flops and bytes what they
/// cost. The operands are what it reads, then what it writes; `writes` counts the
/// latter where not all of one or the other always are. One that `verifiesMore` has a
/// verifier of its own.
class Schedule_Instruction<string mnemonic, dag attributes, dag reads, dag written, string format, list<Trait> traits = [], bit verifiesMore = 0>
    : Schedule_Op<mnemonic, traits # [Schedule_InstructionOpInterface] # !if(verifiesMore, []<Trait>, [Schedule_OperandsFit])> {
  let arguments = !con((ins StrAttr:$source, I64Attr:$flops, I64Attr:$bytes), attributes, reads, written);
  let assemblyFormat = "$source `flops` $flops `bytes` $bytes " # format;
  code writes = !if(!gt(!size(written), 0),
    "getOperation()->getNumOperands() - getODSOperandIndexAndLength(" # !cast<string>(!size(reads)) # ").first", "0");
  code channel = "0";
  code accessors = "";
  let extraClassDeclaration = "unsigned countWrites() { return " # writes # "; }\n" #
                              "uint64_t startsOn() { return " # channel # "; }\n" # accessors;
  let hasVerifier = verifiesMore;
}

#endif // MESHWORK_SCHEDULE_INSTRUCTION
