// The action table of a pipeline: what each rank does, in its order.
//
// A step's microbatches pass through `stages` virtual stages; each rank holds
// one or several of them. An action is a piece of work of one virtual stage for
// one microbatch, or a transfer over one edge between stages. A table says
// nothing about tensors: schedules are generated (Generate.h), read (Csv.h),
// completed (Lower.h), judged (Verdict.h) and simulated (Simulate.h) as data.
#ifndef MESHWORK_LIB_SCHEDULES_TABLE_H
#define MESHWORK_LIB_SCHEDULES_TABLE_H

#include <cstdint>
#include <string_view>
#include <vector>

namespace meshwork::schedules {

/// What an action does. In the text form (Csv.h) an action is the virtual
/// stage, the letters of its kind and the microbatch: `2F0`.
enum class Kind : uint8_t {
  forward,      // F
  backward,     // B: both gradients at once
  inputGrad,    // I: the gradient of the stage's input
  weightGrad,   // W: the gradients of its parameters, after I
  sendForward,  // SEND_F: a stage's output to the next stage
  recvForward,  // RECV_F: named by the stage that receives
  sendBackward, // SEND_B: the gradient of a stage's input to the stage before
  recvBackward, // RECV_B: named by the stage that receives
};

/// F, B, ..., RECV_B.
std::string_view letters(Kind kind);

/// F, B, I and W: what keeps a rank busy.
bool isCompute(Kind kind);

struct Action {
  Kind kind = Kind::forward;
  int32_t stage = 0;
  int32_t microbatch = 0;
  /// Starts together with the action that follows: transfers posted as one
  /// batch, a forward and a backward that overlap.
  bool withNext = false;

  bool operator==(const Action &) const = default;
};

struct Table {
  int32_t microbatches = 0;
  /// The rank that holds each virtual stage; its size is the number of stages.
  /// Any map is one: looped is stage % ranks, V-shaped goes there and back.
  std::vector<int32_t> rankOf;
  /// What each rank does; its size is the number of ranks.
  std::vector<std::vector<Action>> ranks;

  bool operator==(const Table &) const = default;
};

/// Times of actions, in any one unit. A vector has an element for each virtual
/// stage. A full backward takes `backward`, or without that inputGrad +
/// weightGrad. `transfer[s]` is the time of the edge between stages s and s +
/// 1, both ways. It does not count where one rank holds both; the last element
/// is not used.
struct Costs {
  std::vector<double> forward, inputGrad, weightGrad, transfer;
  std::vector<double> backward = {};
};

/// Of F, B, I or W of a stage; 0 of other kinds.
double workTime(const Costs &costs, Kind kind, size_t stage);

} // namespace meshwork::schedules

#endif // MESHWORK_LIB_SCHEDULES_TABLE_H
