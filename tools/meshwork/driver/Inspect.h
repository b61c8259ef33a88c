// `meshwork explain` and `meshwork verify`: what a plan says.
#pragma once

#include "lib/Explain/Measured.h"
#include <optional>
#include <string>

namespace meshwork::driver {

struct ExplainOptions {
  std::string plan;
  std::string value;     // a parameter or buffer; "" tells of the whole plan
  bool json = false;     // one object, for programs
  bool schedule = false; // each instruction too
  std::string measured;  // a trace of a run of the plan
  std::string svg; // a picture of the pipeline, beside what is printed; "-" is
                   // stdout, in its place
};

/// Both print to stdout, errors to stderr, and return the exit code.
int explainPlan(const ExplainOptions &options);
/// The times of a run of the plan, of a trace at `path`; nothing after a
/// message. `code` gets the exit code.
std::optional<explain::Measured>
readMeasured(const plan::Plan &plan, const std::string &path, int &code);

/// Runs every check that the launcher runs, and says what holds.
int verifyPlan(const std::string &path);

} // namespace meshwork::driver
