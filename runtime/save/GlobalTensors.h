// Which rank holds which blocks of every parameter; tensors put together again
// from their blocks.
#pragma once

#include "absl/status/statusor.h"
#include "lib/Plan/Shards.h"
#include "runtime/comm/Mesh.h"
#include "runtime/io/SafeTensors.h"
#include "runtime/rank/Rank.h"
#include <map>

namespace meshwork::runtime {

/// A part of a parameter that is saved.
enum class StatePart : uint8_t { master, gradient };

const plan::Sharded &savedPart(const plan::Parameter &parameter,
                               StatePart part);

/// The lowest rank that holds a block.
struct Holder {
  uint32_t rank;
  plan::Block block;
  std::vector<int64_t> shape; // of the part that the block lies in
};

struct GlobalTensor {
  const plan::Program *program; // the first that has it
  const plan::Parameter *parameter;
  std::vector<Holder> holders; // of each block once
};

/// All parameters in the order of programs, as every rank finds it.
std::vector<GlobalTensor> globalTensors(const plan::Plan &plan,
                                        const Mesh &mesh, StatePart part);

/// `view` with the dims of the parameter, of which `shape` is a part: a
/// contiguous view may have others.
Strided inPartShape(Strided view, const std::vector<int64_t> &shape,
                    bool contiguous);

/// Elements from the start of a row-major tensor of `shape`, per dim.
std::vector<int64_t> rowMajor(const std::vector<int64_t> &shape);
/// Elements from its start to the one at `index`.
int64_t offsetOf(const std::vector<int64_t> &strides,
                 const std::vector<int64_t> &index);

/// Fetches blocks that other processes hold; see Trainer.
class BlockExchange {
public:
  virtual ~BlockExchange() = default;
  /// Rank 0 receives what rank `from` sends; both call it in the same order.
  virtual absl::Status toRoot(uint32_t from, absl::Span<float> values) = 0;
};

/// The ranks of this process, by number; null where a rank is elsewhere.
using LocalRanks = absl::Span<const std::unique_ptr<Rank>>;

/// Puts regions of tensors together from their blocks.
class Assembly {
public:
  /// `exchange` may be null when all ranks are here.
  Assembly(StatePart part, LocalRanks ranks, BlockExchange *exchange)
      : part(part), ranks(ranks), exchange(exchange) {}

  /// Fills `out` with a region of the tensor, in f32 and row-major, where rank
  /// 0 is. Elsewhere `out` is empty and blocks are sent: all processes ask for
  /// the same regions in the same order.
  absl::Status take(const GlobalTensor &tensor, const plan::Block &region,
                    absl::Span<float> out);

private:
  /// A rank's part as the host sees it.
  struct Held {
    HostView host;
    Strided part;
  };
  absl::StatusOr<const Strided *> held(const GlobalTensor &tensor,
                                       const Holder &holder);

  StatePart part;
  LocalRanks ranks;
  BlockExchange *exchange;
  // Of the last tensor, by rank: what comes from a device comes once.
  const plan::Parameter *last = nullptr;
  std::map<uint32_t, Held> parts;
};

} // namespace meshwork::runtime
