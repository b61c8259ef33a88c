// What a plan says.
#include "tools/meshwork/driver/Inspect.h"

#include "lib/Explain/Explain.h"
#include "lib/Explain/Pipeline.h"
#include "lib/Explain/Trace.h"
#include "lib/Plan/PlanFile.h"
#include "lib/Schedules/Svg.h"
#include "tools/meshwork/driver/Files.h"

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

std::optional<explain::Measured>
readMeasured(const plan::Plan &plan, const std::string &path, int &code) {
  std::optional<std::string> trace =
      readFile(path, code, explain::maxTraceBytes);
  if (!trace)
    return std::nullopt;
  absl::StatusOr<explain::Measured> measured = explain::measured(plan, *trace);
  if (measured.ok())
    return *std::move(measured);
  code = report(absl::Status(
      measured.status().code(),
      absl::StrCat(quote(path), ": ", measured.status().message())));
  return std::nullopt;
}

/// The plan's times beside those of a run.
static int tellMeasured(const plan::Plan &plan, const ExplainOptions &options) {
  int code = ok;
  std::optional<explain::Measured> measured =
      readMeasured(plan, options.measured, code);
  if (!measured)
    return code;
  if (!options.json)
    return writeOut(explain::text(plan, *measured));
  absl::StatusOr<std::string> text = explain::json(plan, &*measured);
  return text.ok() ? writeOut(*text) : report(text.status());
}

/// Nothing is written over the plan, and what cannot be is told before any
/// work.
static int checkPicture(const ExplainOptions &options) {
  if (options.svg.empty())
    return ok;
  int code = checkUses({{"the plan", options.plan},
                        {"--measured", options.measured},
                        {"--svg", options.svg, true}});
  return code == ok ? checkOutput(options.svg) : code;
}

/// The picture of a pipeline, in unit times.
static int drawPipeline(const plan::Plan &plan, const ExplainOptions &options) {
  if (options.svg.empty())
    return ok;
  std::optional<explain::Pipeline> pipeline = explain::pipelineOf(plan);
  if (!pipeline)
    return report(absl::InvalidArgumentError(
        options.plan + ": --svg draws a pipeline, and this plan has one stage, "
                       "or a schedule too long to simulate"));
  return writeFile(
      options.svg,
      schedules::svg(pipeline->table, pipeline->timeline, options.plan));
}

int explainPlan(const ExplainOptions &options) {
  if (int code = checkPicture(options); code != ok)
    return code;
  auto file = plan::PlanFile::open(options.plan);
  if (!file.ok())
    return report(file.status());
  int drawn = drawPipeline((*file)->plan(), options);
  if (drawn != ok || options.svg == "-")
    return drawn;
  if (!options.measured.empty())
    return tellMeasured((*file)->plan(), options);
  absl::StatusOr<std::string> text = tell((*file)->plan(), options);
  return text.ok() ? writeOut(*text) : report(text.status());
}

int verifyPlan(const std::string &path) {
  auto file = plan::PlanFile::open(path);
  if (!file.ok())
    return report(file.status());
  return writeOut(onOneLine(path) +
                  ": sound (checksum, structure, shapes, lives of buffers, "
                  "order of collectives)\n");
}

} // namespace meshwork::driver
