// What a machine does a second: all estimates of time are made from this.
//
//   cost::MachineResult result = cost::readMachine(text, "m.toml");
//   if (!result.machine) { print textOf(result.diagnostics); }
//
// README.md lists the keys of a machine file.
#ifndef MESHWORK_LIB_COST_MACHINE_H
#define MESHWORK_LIB_COST_MACHINE_H

#include "lib/Spec/Diagnostic.h"
#include "lib/Spec/Spec.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshwork::cost {

/// Of what the operands of a product or of attention are.
enum class Arithmetic { f32, bf16, fp8 };
inline constexpr size_t numArithmetics = 3;

/// Between the ranks of a group: threads of one process, processes of one node
/// (GPUs of one node, whatever process they are in), or several nodes.
enum class LinkClass { inProcess, withinNode, betweenNodes };
inline constexpr size_t numLinkClasses = 3;
/// As in a file: "in_process", "within_node", "between_nodes".
const char *nameOf(LinkClass link);

struct Link {
  double latency = 0;      // seconds, of one collective
  double bandwidth = 0;    // bytes a second that a rank or an adapter sends
  bool takesCores = false; // moving data takes the cores that compute
  bool isGiven = false;    // by the file; else as that of another class
  double hop = 0;          // seconds more for each neighbour passed
  double halfSize = 0;     // bytes that move at half of the bandwidth
  bool operator==(const Link &) const = default;
};

/// Beyond so many nodes an adapter has a part of its bandwidth: the switches
/// above carry less than those below.
struct Spine {
  uint32_t nodes = 0; // 0: not said
  double share = 1;
  bool operator==(const Spine &) const = default;
};

struct Tile {
  uint32_t rows = 0, columns = 0;
  bool operator==(const Tile &) const = default;
};

/// How a GPU cuts products up. Without tiles `halfSize` stands for all of it.
struct Products {
  uint32_t multiprocessors = 0;
  std::vector<Tile> tiles; // a choice of a library
  double halfTile = 0;     // rows x columns / (rows + columns) of half the rate
  double begin = 0;        // bytes of k that each tile takes longer
  bool operator==(const Products &) const = default;
};

/// Between a rank's memory and the host's.
struct HostLink {
  double bandwidth = 0;  // bytes a second, each way
  double latency = 0;    // seconds of one copy
  uint32_t sharedBy = 0; // ranks that use it at the same time; 0: one
  /// Whether copies take the cores that compute; not said: those of a CPU do.
  std::optional<bool> takesCores;
  bool operator==(const HostLink &) const = default;
};

struct Machine {
  std::string name;
  spec::Device device = spec::Device::cpu;
  std::string arch; // of its GPUs, as target.arch names it; "": not said
  uint32_t ranksPerNode = 1;
  /// Of a node whose ranks share it: flops, memory and capacity are of all of
  /// them together. 0: each rank has these figures for itself.
  uint32_t cores = 0;
  /// Of products, of attention, and of its gradient; a second, by Arithmetic.
  std::array<double, numArithmetics> flops{}, attention{}, gradient{};
  /// Attention with heads of that size, and its gradient, reaches half of its
  /// rate; likewise with queries that see so many keys.
  double halfHead = 0, halfKeys = 0;
  double halfHeadOfGradient = 0, halfKeysOfGradient = 0;
  Products products;
  /// What the data sheet says that products reach: MFU divides by it, and
  /// nothing else reads it.
  std::array<double, numArithmetics> peak{};
  /// A product of so many flops reaches half of its rate.
  double halfSize = 0;
  double memory = 0;  // bytes a second
  double kernels = 0; // bytes a second that generated kernels read and write
  HostLink host;
  /// Bytes that plans may take, of a rank, or with `cores` of all ranks of a
  /// node together; 0: not said.
  double capacity = 0;
  double launch = 0; // seconds before an instruction
  /// Seconds that hidden time must gain before work is handed over to a
  /// channel.
  double handOver = 0;
  std::array<Link, numLinkClasses> links{}; // by LinkClass
  Spine spine;
  /// Of a node, which its ranks share; 0: each rank has the bandwidth between
  /// nodes for itself.
  uint32_t adapters = 0;
  double slowdown = 0; // of computing, while something moves beside it
  /// By which part of their time nodes differ (a standard deviation), and how
  /// late they meet, in seconds.
  double jitter = 0, late = 0;
  double rankJitter = 0;      // as `jitter`, of ranks, those of one node too
  double hostInstruction = 0; // seconds to send the device an instruction
  /// Rows for experts of the rank that has most, by the mean of all ranks.
  double expertLoad = 1;
  /// Mean hours from one failure of a node to its next; 0: it never fails.
  double failureHours = 0;
  double restart = 0; // seconds from a failure until the run begins again
  /// Bytes a second that all ranks together write to checkpoints, or read.
  double storage = 0;

  /// Of the ranks of a node, when there are `ranks` in all: what each has of
  /// figures that they share.
  double share(uint64_t ranks) const {
    return cores == 0 ? 1
                      : 1 / static_cast<double>(
                                std::min<uint64_t>(ranks, ranksPerNode));
  }
  /// Of `host` where the file does not say its bandwidth. A CPU reads and
  /// writes its own memory; between a GPU and the host lies PCI Express 4.0, 16
  /// lanes, which carry 31.5 GB/s and give copies about 25.
  double usualHost() const {
    return device == spec::Device::cpu ? memory / 2 : 25e9;
  }
  const Link &link(LinkClass which) const {
    return links[static_cast<size_t>(which)];
  }
  bool operator==(const Machine &) const = default;
};

/// The longest text that is taken for a machine.
inline constexpr size_t maxMachineBytes = 64 << 10;

struct MachineResult {
  std::optional<Machine> machine; // absent when a diagnostic is an error
  Diagnostics diagnostics;        // in the order of the text
};

/// Reads a machine file; `filename` is for messages. Finds all mistakes, except
/// that a syntax error hides what follows. `overrides` are like
/// "link.between_nodes.bandwidth=25e9" and replace what the text says.
MachineResult readMachine(std::string_view text, const std::string &filename,
                          const std::vector<std::string> &overrides = {});

/// The file of a machine; readMachine() gives the same machine again.
std::string print(const Machine &machine);

/// The same in one line, keys parted by blanks, for options of passes; of a
/// shipped machine its name.
std::string printOnOneLine(const Machine &machine);
MachineResult readFromOneLine(std::string_view text);

/// What Meshwork knows by name (examples/machines), in the order of the names.
const std::vector<Machine> &shippedMachines();
const Machine *findShipped(std::string_view name);

/// What a plan is made for when nothing else is said: the rough CPU or GPU,
/// shipped under the name of the device.
const Machine &defaultMachine(spec::Device device);

} // namespace meshwork::cost

#endif // MESHWORK_LIB_COST_MACHINE_H
