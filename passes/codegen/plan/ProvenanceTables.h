// Notes of the sharding passes as the plan's table.
#pragma once

#include <map>
#include <string>

#include "dialects/mesh/Provenance.h"
#include "lib/Spec/Spec.h"
#include "meshwork/Plan/Plan.h"

namespace meshwork::codegen {

/// Where each key of the spec has its value from: "spec.toml:9:1", "default".
using Origins = std::map<std::string, std::string>;

/// Null when nothing was noted. Stories that values of several layers share are
/// written once; values that are neither state nor of the forward or backward
/// pass, and do not move, are left out.
std::unique_ptr<plan::ProvenanceT>
provenanceTables(const mesh::Provenance &notes, const spec::Spec &spec,
                 const Origins &origins);

} // namespace meshwork::codegen
