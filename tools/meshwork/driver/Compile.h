// `meshwork compile`: a model and a spec in, a plan out.
#pragma once

#include <string>
#include <vector>

namespace meshwork::driver {

struct CompileOptions {
  std::string model; // .mlir, a config.json of Hugging Face, or a folder with
                     // one; "-" is stdin (.mlir)
  std::string spec;  // TOML
  std::vector<std::string> overrides; // section.key=value
  std::string output;     // the plan, or with compileTo the IR; "-" is stdout
  std::string compileTo;  // stop after this phase and print the IR
  std::string dumpPhases; // a folder for the IR after each phase
  std::string reproducer; // where a failed compilation is written; "" is output
                          // + ".reproducer.mlir"
  std::string cpuCode; // of a GPU's plan: also code for this CPU ("native"), to
                       // compare with; "" is none
  bool estimate = false;    // print what the plan should take, make no code
  bool json = false;        // the estimate as JSON
  bool printConfig = false; // print the effective spec with origins and stop
  bool dumpPassPipeline = false; // print the passes of each phase
  bool timing = false;           // print the time of each phase
};

/// Does it; messages go to stderr. Returns the exit code (sysexits): 65 for a
/// model that cannot be compiled, 66 for a missing file, 73 for an output that
/// cannot be written, 78 for a bad spec or a plan above its budget.
int compile(const CompileOptions &options);

/// `meshwork import`: a config.json, or the one in a folder, to the text of a
/// model.
int importModel(const std::string &config, const std::string &output);

} // namespace meshwork::driver
