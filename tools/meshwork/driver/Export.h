// `meshwork checkpoint export`: weights for Transformers to load.
#pragma once

#include <string>

namespace meshwork::driver {

struct ExportOptions {
  std::string checkpoint; // a checkpoint, or a folder of them: the newest
  std::string output;     // the folder to make
  std::string
      config; // in place of the one that the model was imported from; ""
  std::string dtype = "f32"; // or bf16, f16
  std::string maxShardSize = "5GB";
};

/// Messages go to stderr, what was written to stdout. Returns the exit code: 65
/// for a checkpoint that is damaged or of another model than the config.json.
int exportCheckpoint(const ExportOptions &options);

} // namespace meshwork::driver
