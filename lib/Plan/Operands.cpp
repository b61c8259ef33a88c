#include "lib/Plan/Operands.h"

#include "lib/Plan/Operation.h"
#include "meshwork/Plan/Frame.h"

namespace meshwork::plan {
namespace {

/// What the functions that are made of Plan.fbs call.
struct Visitor {
  absl::FunctionRef<void(const Operand &)> visit;

  void reads(uint32_t view, const char *role) {
    visit({view, role, true, false});
  }
  void writes(uint32_t view, const char *role) {
    visit({view, role, false, true});
  }
  void updates(uint32_t view, const char *role) {
    visit({view, role, true, true});
  }
  /// With `after_first` the step's first action overwrites, so what was there
  /// before does not matter.
  void adds(uint32_t view, const char *role, Accumulate mode) {
    visit({view, role, mode == Accumulate::yes, true,
           mode == Accumulate::after_first});
  }
  void readsIfThere(uint32_t view, const char *role) {
    if (view != noView)
      reads(view, role);
  }
  void writesIfThere(uint32_t view, const char *role) {
    if (view != noView)
      writes(view, role);
  }
  void readsAll(const flatbuffers::Vector<uint32_t> *views, const char *role) {
    readsAndWrites(views, 0, role, role);
  }
  void writesAll(const flatbuffers::Vector<uint32_t> *views, const char *role) {
    readsAndWrites(views, views ? views->size() : 0, role, role);
  }
  void readsAndWrites(const flatbuffers::Vector<uint32_t> *views,
                      uint32_t numWrites, const char *role,
                      const char *writtenRole) {
    uint32_t count = views ? views->size() : 0;
    for (uint32_t i = 0; i < count; ++i)
      if (uint64_t{i} + numWrites < count)
        reads(views->Get(i), role);
      else
        writes(views->Get(i), writtenRole);
  }
};
} // namespace

void forEachOperand(const Instruction &instruction,
                    absl::FunctionRef<void(const Operand &)> visit) {
  visitOperation<void>(instruction, [&](const auto &op) {
    Visitor visitor{visit};
    visitOperands(op, visitor);
  });
}

} // namespace meshwork::plan
