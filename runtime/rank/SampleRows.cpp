#include "runtime/rank/SampleRows.h"
#include "meshwork/Plan/Types.h"

namespace meshwork::runtime {
using Kind = plan::InputKind;

SampleRows::SampleRows(const plan::Plan &plan)
    : tokens(plan.sequence()), targets(plan.sequence()),
      documents(plan::readsDocuments(plan) ? size_t{plan.sequence()} + 1 : 0),
      counts(plan::reads(plan, Kind::inner_targets) ? plan.sequence() : 0) {}

SampleSpans SampleRows::spans() {
  return {absl::MakeSpan(tokens), absl::MakeSpan(targets),
          absl::MakeSpan(documents), absl::MakeSpan(counts)};
}

bool SampleRows::endsDocument(size_t i) const {
  return documents[i + 1] == static_cast<int32_t>(i + 1);
}

std::vector<int32_t> SampleRows::of(Kind kind) const {
  if (kind == Kind::tokens || kind == Kind::targets)
    return kind == Kind::tokens ? tokens : targets;
  std::vector<int32_t> row(tokens.size());
  for (size_t i = 0; i < row.size(); ++i)
    row[i] = kind == Kind::documents ? documents[i]
             : kind == Kind::document_positions
                 ? static_cast<int32_t>(i) - documents[i]
             : hasTarget(i) ? targets[i]
                            : -1;
  return row;
}

uint32_t SampleRows::innerTargets() const {
  uint32_t count = 0;
  for (size_t i = 0; i < tokens.size(); ++i)
    count += hasTarget(i);
  return count;
}

} // namespace meshwork::runtime
