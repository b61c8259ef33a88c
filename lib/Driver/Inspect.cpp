// What a plan says.
#include "lib/Driver/Inspect.h"

#include <cstdio>

#include "lib/Explain/Explain.h"
#include "meshwork/Runtime/ExitCode.h"
#include "runtime/core/PlanFile.h"

namespace meshwork::driver {

static int report(const absl::Status &status) {
  std::fprintf(stderr, "meshwork: error: %.*s\n",
               static_cast<int>(status.message().size()),
               status.message().data());
  return runtime::exitCodeOf(status);
}

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
  if (!text.ok())
    return report(text.status());
  std::fputs(text->c_str(), stdout);
  return std::fflush(stdout) == 0
             ? 0
             : static_cast<int>(runtime::ExitCode::inputOutput);
}

int verifyPlan(const std::string &path) {
  auto file = runtime::PlanFile::open(path);
  if (!file.ok())
    return report(file.status());
  std::printf("%s: sound (checksum, structure, shapes, lives of buffers, order "
              "of collectives)\n",
              path.c_str());
  return 0;
}

} // namespace meshwork::driver
