// Speeds of a machine for the ranks of a mesh.
//
//   cost::Times times = analysis::timesOn(machine, mesh::meshOf(module));
#pragma once

#include "dialects/mesh/Mesh.h"
#include "lib/Cost/Times.h"

namespace meshwork::analysis {

inline cost::Times timesOn(const cost::Machine &machine, mesh::MeshAttr mesh) {
  ::mlir::ArrayRef<int64_t> sizes = mesh.getSizes();
  return {machine, std::vector<uint64_t>(sizes.begin(), sizes.end())};
}

} // namespace meshwork::analysis
