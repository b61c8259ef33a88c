// Why a value is moved, in words for `meshwork explain`.
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

/// Keeps references.
class Reasons {
public:
  Reasons(const sharding::Mesh &mesh, const mesh::Provenance &notes,
          const ValueShardings &shardings)
      : mesh(mesh), notes(notes), shardings(shardings) {}

  /// A state takes `value` as it is `stored`.
  std::string ofState(transformer::StateKind kind, llvm::StringRef name,
                      mlir::Value value,
                      const sharding::Sharding &stored) const;
  /// `value` goes from where its op makes it to its home.
  std::string ofHome(mlir::Value value) const;
  /// What an op needs of an operand that lies otherwise: the axes that gave way
  /// to a stronger factor, and those that the others bring.
  std::string ofOperand(mlir::Operation *op, const sharding::FactorTable &table,
                        unsigned tensor, llvm::ArrayRef<sharding::Axes> decided,
                        llvm::ArrayRef<sharding::Proposal> proposed) const;

private:
  std::string axesText(const sharding::Axes &axes) const;
  std::string ofSum(mlir::Value value, const sharding::Axes &left) const;
  std::string ofLost(const sharding::FactorTable &table, size_t factor,
                     sharding::AxisId axis,
                     llvm::ArrayRef<sharding::Axes> decided,
                     llvm::ArrayRef<sharding::Proposal> proposed) const;

  const sharding::Mesh &mesh;
  const mesh::Provenance &notes;
  const ValueShardings &shardings;
};

/// A reason up to what its axes gave way to, which is told of the value.
llvm::StringRef withoutCause(llvm::StringRef reason);

} // namespace meshwork::partition
