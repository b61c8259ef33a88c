// Why a value is moved, for `meshwork explain`.
#pragma once

#include "dialects/transformer/Transformer.h"
#include "passes/sharding/Notes.h"
#include "llvm/ADT/MapVector.h"

namespace meshwork::partition {

/// How values lie while reshards are inserted.
struct ValueShardings {
  /// As its op makes it.
  llvm::MapVector<mlir::Value, sharding::Sharding> actual;
  /// Where all its users find it; differs while a sum is outstanding.
  llvm::DenseMap<mlir::Value, sharding::Sharding> home;
  /// Which factors were combined into a value that is partial.
  llvm::DenseMap<mlir::Value, std::vector<sharding::FactorAxis>> sums;
};

/// Why a value moves. The words are for people, and nothing reads them.
struct Reason {
  std::string user; // the value that needs it so; "" where it is kept so
  int64_t userLayer = -1;
  /// The rest of the sentence; `told` with what its axes gave way to, which is
  /// told of the value and not of its collectives.
  std::string text, told;
  std::vector<std::string> annotations; // keys of the spec, each once
};
/// "for h.*.ln_1, which takes heads, ...", with `text` for its words.
std::string sentence(const Reason &reason, const std::string &text);

/// Keeps references.
class Reasons {
public:
  Reasons(const sharding::Mesh &mesh, const mesh::Provenance &notes,
          const ValueShardings &shardings)
      : mesh(mesh), notes(notes), shardings(shardings) {}

  /// A state takes `value` as it is `stored`.
  Reason ofState(const transformer::StateKey &key, mlir::Value value,
                 const sharding::Sharding &stored) const;
  /// `value` goes from where its op makes it, or from the `part` that a step
  /// keeps of it, to its home.
  Reason ofHome(mlir::Value value, const sharding::Sharding &part) const;
  /// A step gathers `part` of a weight for all its uses.
  Reason ofStep(mlir::Value value, const sharding::Sharding &part) const;
  /// Why an op needs an operand in another sharding than it has: the axes that
  /// gave way to a stronger factor, and the axes that the others bring.
  Reason ofOperand(mlir::Operation *op, const sharding::FactorTable &table,
                   unsigned tensor, llvm::ArrayRef<sharding::Axes> decided,
                   llvm::ArrayRef<sharding::Proposal> proposed) const;

private:
  std::string axesText(const sharding::Axes &axes) const;
  Reason ofSum(mlir::Value value, const sharding::Axes &left) const;
  Reason ofLost(const sharding::FactorTable &table, size_t factor,
                sharding::AxisId axis, llvm::ArrayRef<sharding::Axes> decided,
                llvm::ArrayRef<sharding::Proposal> proposed) const;

  const sharding::Mesh &mesh;
  const mesh::Provenance &notes;
  const ValueShardings &shardings;
};

} // namespace meshwork::partition
