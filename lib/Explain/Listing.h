// A program's instructions, list by list.
#pragma once

#include "lib/Plan/ProgramLives.h"
#include "meshwork/Plan/Plan.h"
#include <cstdint>
#include <string>
#include <vector>

namespace meshwork::explain {

/// A list of a program.
struct Phase {
  std::string name;    // "once", "step", "forward", "backward", "update"
  uint64_t begin, end; // instructions [begin, end) of the whole program
  uint64_t runs;       // per optimizer step; 0 for `once`
  plan::ListKind kind = plan::ListKind::once;
  uint32_t stage = 0; // virtual, of a pipeline
};

/// All instructions of one program. Borrows the plan.
class Listing {
public:
  explicit Listing(const plan::Program &program);

  const std::vector<Phase> &phases() const { return list; }
  const plan::ActionTable &table() const { return order; }
  uint64_t size() const { return instructions.size(); }
  const plan::Instruction &operator[](uint64_t index) const {
    return *instructions[index];
  }
  /// How often the instruction runs when its list runs once, and no counted
  /// repeat takes a turn.
  uint64_t timesOf(uint64_t index) const { return times[index]; }
  /// The same when they take all.
  uint64_t mostOf(uint64_t index) const { return most[index]; }
  const Phase &phaseOf(uint64_t index) const;
  /// The number of an instruction, from its place in its list.
  uint64_t numberOf(plan::Lives::Place place) const {
    return list[place.list].begin + place.instruction;
  }

private:
  plan::ActionTable order;
  std::vector<Phase> list;
  std::vector<const plan::Instruction *> instructions;
  std::vector<uint64_t> times, most; // by instruction
};

/// "matmul", "matmul_gelu", "attention_grad", "launch rows_3", "all_reduce",
/// "repeat the next 9 14 times": what it does.
std::string operationText(const plan::Plan &plan,
                          const plan::Instruction &instruction);
/// The same without the kernel: one of few words.
std::string operationKind(const plan::Instruction &instruction);

/// The ranks that run program `index`: "all 2 ranks", "ranks 0, 1, 4 and 9
/// more".
std::string ranksText(const plan::Plan &plan, uint32_t index);
/// The product of the mesh's axes.
uint64_t numRanks(const plan::Plan &plan);
/// "dp", or "dp, tp"; "-" for none.
std::string axesText(const plan::Plan &plan,
                     const flatbuffers::Vector<uint32_t> *axes);

} // namespace meshwork::explain
