// Files that a spec names: a machine (target.machine) and a schedule
// (pipeline.schedule).
#pragma once

#include "lib/Spec/Spec.h"

#include <functional>

namespace meshwork::pipelines {

/// The text of a file, or nothing after it was told why.
using ReadFile =
    std::function<std::optional<std::string>(const std::string &path)>;

/// Puts what the files hold in the place of their paths, so that a plan's spec
/// says what it was made for, and gives target.arch that of the machine where
/// the spec leaves it out. `origins` are those of spec::Result; a path
/// begins in the folder of `specFile` when its key stands there, else in the
/// working directory. The result is what is wrong, with the files: of a
/// schedule also what is not legal, and what does not fit the spec's stages and
/// microbatches.
Diagnostics resolveFiles(spec::Spec &spec,
                         std::map<std::string, std::string> &origins,
                         const std::string &specFile, const ReadFile &read);

} // namespace meshwork::pipelines
