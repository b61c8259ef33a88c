// Moves a tensor from one sharding to another with the fewest bytes.
//
//   // [{"tp"}, {}] -> [{}, {"tp"}]
//   std::string error;
//   auto plan = planReshard(mesh, {8, 8}, 4, from, to, error);
//   plan->steps;   // one allToAll of dim 0 to dim 1
#pragma once

#include <optional>
#include <unordered_map>

#include "lib/Sharding/Sharding.h"

namespace meshwork::sharding {

/// One collective, or one local slice. `N` is the number of ranks of a group,
/// which are the ranks that differ in `axes` alone; `index` is a rank's place
/// in it, `axes` major first.
///
/// With several axes, nested blocks coincide with flat ones: the block that
/// `axes` choose begins at index * (its local size) of its parent's storage.
/// Where uneven sizes break this, the planner makes a step per axis instead.
///
/// A step into another layout than blocks (slice, reduceScatter, an allToAll's
/// `toDim`), or out of one (allGather, an allToAll's `dim`), is of a whole run.
/// The ranks' parts in index order are then not blocks of the parent. Before a
/// step into a layout, the parent is brought into the order of the parts. After
/// a step out of one, it is brought into its own order (layout::ranges).
struct Step {
  enum class Kind {
    /// Partial over `axes` becomes replicated.
    allReduce,
    /// Partial over `axes` becomes a split of `dim`, minor-most.
    reduceScatter,
    /// Removes the minor-most `axes` of `dim`. The blocks in index order, cut
    /// to the parent's local size.
    allGather,
    /// Moves the minor-most `axes` of `dim` to be minor-most of `toDim`. Block
    /// `index` of toDim goes to that rank. The blocks that arrive are
    /// concatenated along `dim` in index order and cut to the parent's local
    /// size.
    allToAll,
    /// Each rank takes the whole local tensor of permuteSource(). Local shapes
    /// stay, and so does what is partial; `axes` are those whose coordinate may
    /// differ between the two.
    permute,
    /// Keeps the block `index` of `dim`; the tensor was replicated over `axes`,
    /// which become minor-most. Sends nothing.
    slice,
  };
  Kind kind = Kind::slice;
  std::vector<AxisId> axes;
  int dim = -1;   // -1 for allReduce and permute
  int toDim = -1; // allToAll alone
  Sharding before;
  Sharding after;
  /// Per rank, what a ring sends; m is the local tensor's bytes, padding
  /// counted: allReduce floor(2(N-1)m/N), reduceScatter (N-1) * m after,
  /// allGather (N-1) * m before, allToAll N-1 blocks, permute m, slice 0.
  int64_t bytesSent = 0;

  /// Of what the step puts together, and of what it cuts: blocks where it does
  /// neither.
  DimLayout layoutLeft() const;
  DimLayout layoutEntered() const;

  /// `all_to_all {"tp"} dim 0 to dim 1`.
  std::string text(const Mesh &mesh) const;
};

struct Plan {
  std::vector<Step> steps;
  /// False when the search was given up (see planReshard): the steps are right,
  /// but cheaper ones may exist.
  bool leastBytes = true;

  int64_t bytesSent() const;
};

/// The steps from `from` to `to` that send the least bytes in all. Of these the
/// fewest steps, and of these the ones found first. Moves are tried in the
/// order slice, reduceScatter, allReduce, allGather, allToAll, permute, then by
/// dim, then in mesh order. Equal input gives equal steps on any machine.
///
/// An axis stays as it is throughout if it splits the same dim from the major
/// end on both sides, is partial on both, or is named by neither. The links of
/// an axis that the request does not name are not its to use. Axes of size 1
/// are in no step and no sharding of a step.
///
/// A layout that both sides share stays. One that only one side has is left, or
/// entered, without a search: a sum is scattered into it, an axis alone moves
/// between dims, everything else goes through the whole dim.
///
///   elementBytes  1 or more
///
/// Returns nothing, and why in `error`, when a sharding does not fit mesh or
/// shape, the kinds of reduction differ, or bytes could overflow. Likewise when
/// `to` is partial over an axis that `from` is not partial over. Above 8
/// differing axes, or after 200 000 shardings, the plan reduces and gathers all
/// that differs, then slices; leastBytes is false then.
///
/// Time depends on the number of differing axes, never on the ranks.
std::optional<Plan> planReshard(const Mesh &mesh,
                                const std::vector<int64_t> &shape,
                                int64_t elementBytes, const Sharding &from,
                                const Sharding &to, std::string &error);

/// From whom `rank` receives in a permute. A bijection of the ranks; a rank
/// that already holds what it needs may still receive it from another one.
int64_t permuteSource(const Mesh &mesh, const Step &step, int64_t rank);

/// planReshard with a memory, for the many equal requests of one program.
/// Not for several threads at once.
class Planner {
public:
  explicit Planner(Mesh mesh) : mesh(std::move(mesh)) {}

  /// Owned by this planner. Nothing, and why in `error`, as planReshard.
  const Plan *plan(const std::vector<int64_t> &shape, int64_t elementBytes,
                   const Sharding &from, const Sharding &to,
                   std::string &error);

private:
  struct Request {
    std::vector<int64_t> shape;
    int64_t elementBytes;
    Sharding from, to;
    bool operator==(const Request &other) const;
  };
  struct RequestHash {
    size_t operator()(const Request &request) const;
  };
  Mesh mesh;
  std::unordered_map<Request, Plan, RequestHash> plans;
};

} // namespace meshwork::sharding
