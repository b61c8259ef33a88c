// Where notes are kept, and how a chain of them is followed.
#include "dialects/mesh/Provenance.h"

#include "dialects/mesh/Mesh.h"

using namespace mlir;
namespace meshwork::mesh {

std::string Provenance::annotationOf(Value value, size_t dim,
                                     StringRef axis) const {
  auto known = places.find(value);
  if (known == places.end())
    return "";
  size_t place = known->second;
  for (size_t steps = 0;
       steps <= values.size() && dim < values[place].dims.size(); ++steps) {
    const std::vector<DimCause> &causes = values[place].dims[dim].causes;
    auto cause = llvm::find_if(
        causes, [&](const DimCause &cause) { return cause.axis == axis; });
    if (cause == causes.end() || !cause->annotation.empty())
      return cause == causes.end() ? "" : cause->annotation;
    place = cause->from;
    dim = cause->fromDim;
  }
  return "";
}

Provenance &provenanceOf(Operation *op) {
  auto module =
      isa<ModuleOp>(op) ? cast<ModuleOp>(op) : op->getParentOfType<ModuleOp>();
  std::shared_ptr<Provenance> &notes =
      op->getContext()->getLoadedDialect<MeshDialect>()->notes;
  if (!notes)
    notes = std::make_shared<Provenance>();
  if (notes->module != module) {
    *notes = Provenance();
    notes->module = module;
  }
  return *notes;
}

void handProvenance(ModuleOp from, ModuleOp to) {
  Provenance &notes = provenanceOf(from);
  notes.places.clear();
  notes.reshards.clear();
  notes.module = to;
}

} // namespace meshwork::mesh
