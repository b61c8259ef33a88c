// What work takes on a machine, in seconds.
//
//   cost::Times times(machine, {2, 8}); // sizes of the mesh, outermost first
//   double product = times.instruction({Work::product, Arithmetic::bf16},
//   flops, bytes);
//   double sum = times.collective(plan::CollectiveKind::all_reduce, bytes,
//   {0});
//
// An instruction takes as long as the slower of its flops and its bytes, at the
// rates of its kind of work. That leaves out caches, which make small work on a
// CPU faster, and shapes for which a library is slow: estimates rank choices, a
// measurement decides.
#ifndef MESHWORK_LIB_COST_TIMES_H
#define MESHWORK_LIB_COST_TIMES_H

#include "lib/Cost/GroupTime.h"
#include "lib/Cost/Machine.h"
#include "lib/Cost/Shapes.h"
#include "meshwork/Plan/Plan.h"

#include <span>

namespace meshwork::cost {

/// A ring's steps, each of which sends one N-th of the whole tensor; N ranks.
/// The whole is what an all_gather ends with, and what the others begin with.
/// permute is one hop of all that a rank has.
/// Source: Patarasuk and Yuan, J. Parallel Distrib. Comput. 69 (2009) 117-124.
uint64_t ringSteps(plan::CollectiveKind kind, uint64_t ranks);

/// Bytes that each of `ranks` sends, `bytes` being the whole tensor's; the
/// largest number where they do not fit.
uint64_t bytesSent(plan::CollectiveKind kind, uint64_t bytes, uint64_t ranks);

/// Kinds of instructions that are no collective. A kernel is what the compiler
/// generated, and all that is no product and no attention.
struct Work {
  enum Kind { kernel, product, attention } kind = kernel;
  Arithmetic type = Arithmetic::f32; // of the operands
  ProductShape multiplied = {};
  AttentionShape attended = {};
};

/// How the ranks of a node are started; GPUs use the same link either way.
enum class Ranks { threads, processes };

class Times {
public:
  /// `mesh` has the sizes of its axes, outermost first.
  Times(const Machine &machine, std::vector<uint64_t> mesh,
        Ranks ranks = Ranks::threads);

  const Machine &machine() const { return on; }

  /// Of one run of what is no collective.
  double instruction(Work work, double flops, double bytes) const;

  /// Of a collective over `axes`, indices into the mesh; `bytes` are those of
  /// its inputs on a rank.
  double collective(plan::CollectiveKind kind, double bytes,
                    std::span<const uint32_t> axes) const;

  /// Of what one rank hands to another one along an axis of the mesh.
  double transfer(double bytes, uint32_t axis) const;

  /// Of a copy between a rank's memory and the host's.
  double hostCopy(double bytes) const;
  /// Whether it takes cores that compute.
  bool hostCopyTakesCores() const {
    return on.host.takesCores.value_or(on.device == spec::Device::cpu);
  }

  /// The slowest link that a group over `axes` crosses.
  LinkClass linkOf(std::span<const uint32_t> axes) const;
  uint64_t ranksOf(std::span<const uint32_t> axes) const;
  /// Whether it goes through adapters that the ranks of a node share.
  bool usesAdapters(std::span<const uint32_t> axes) const {
    return on.adapters > 0 && linkOf(axes) == LinkClass::betweenNodes;
  }

  /// Whether moving data over `axes` takes cores that compute, however ranks
  /// are started: then nothing is gained by moving it beside the computation.
  bool takesCores(std::span<const uint32_t> axes) const;

private:
  bool crossesNodes(std::span<const uint32_t> axes) const;
  double secondsOfFlops(Work work, double flops) const;
  uint64_t ranksInNode(std::span<const uint32_t> axes) const;
  Group groupOf(std::span<const uint32_t> axes) const;

  Machine on;
  std::vector<uint64_t> mesh;
  Ranks ranks;
  double share = 1;   // of a node's cores that a rank has
  double slowest = 1; // time of the slowest node or rank by the mean one's
};

} // namespace meshwork::cost

#endif // MESHWORK_LIB_COST_TIMES_H
