// Files that a spec names: a machine (target.machine) and a schedule
// (pipeline.schedule).
#pragma once

#include "lib/Spec/Spec.h"

#include <functional>

namespace meshwork::pipelines {

/// The text of a file, or nothing after it was told why.
using ReadFile =
    std::function<std::optional<std::string>(const std::string &path)>;

/// Replaces the paths of files by what the files hold: a plan's spec then says
/// what it was made for. Where the spec leaves target.arch out, sets it to that
/// of the machine. `origins` are those of spec::Result. A path begins in the
/// folder of `specFile` when its key stands there, else in the working
/// directory. Returns what is wrong with the files: of a schedule also what is
/// not legal, and what does not fit the spec's stages and microbatches.
Diagnostics resolveFiles(spec::Spec &spec,
                         std::map<std::string, std::string> &origins,
                         const std::string &specFile, const ReadFile &read);

} // namespace meshwork::pipelines
