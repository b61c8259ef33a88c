// What a plan says.
#include "lib/Driver/Inspect.h"

#include "lib/Driver/Files.h"
#include "lib/Explain/Explain.h"
#include "runtime/core/PlanFile.h"

namespace meshwork::driver {

static absl::StatusOr<std::string> tell(const plan::Plan &plan,
                                        const ExplainOptions &options) {
  if (!options.value.empty())
    return options.json ? explain::valueJson(plan, options.value)
                        : explain::value(plan, options.value);
  if (options.json)
    return explain::json(plan);
  return explain::text(plan, {.schedule = options.schedule});
}

int explainPlan(const ExplainOptions &options) {
  auto file = runtime::PlanFile::open(options.plan);
  if (!file.ok())
    return report(file.status());
  absl::StatusOr<std::string> text = tell((*file)->plan(), options);
  return text.ok() ? writeOut(*text) : report(text.status());
}

int verifyPlan(const std::string &path) {
  auto file = runtime::PlanFile::open(path);
  if (!file.ok())
    return report(file.status());
  return writeOut(onOneLine(path) +
                  ": sound (checksum, structure, shapes, lives of buffers, "
                  "order of collectives)\n");
}

} // namespace meshwork::driver
