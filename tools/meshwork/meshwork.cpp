// meshwork compile | import: what a user types.
#include <CLI/CLI.hpp>

#include "lib/Driver/Compile.h"

namespace {
constexpr int usageExit = 64;

void addCompile(CLI::App &app, meshwork::driver::CompileOptions &options) {
  CLI::App *command = app.add_subcommand("compile", "Compile a model and a spec to a plan");
  command->add_option("model", options.model, "a model (.mlir), or a Hugging Face config.json")->required();
  command->add_option("--spec", options.spec, "mesh, batch and all else, a TOML file")->required();
  command->add_option("-o,--output", options.output, "the plan to write");
  command->add_option("--set", options.overrides, "override a key of the spec: section.key=value")->allow_extra_args(false);
  command->add_option("--compile-to", options.compileTo, "stop after a phase (input, step, partition, fuse, schedule, memory) and print the IR");
  command->add_option("--dump-phases", options.dumpPhases, "a folder for the IR after each phase");
  command->add_option("--reproducer", options.reproducer, "where a failed compilation is written (default: OUTPUT.reproducer.mlir)");
  command->add_flag("--print-config", options.printConfig, "print the effective spec with the origin of each value, and stop");
  command->add_flag("--dump-pass-pipeline", options.dumpPassPipeline, "print the passes of each phase");
  command->add_flag("--timing", options.timing, "print the time of each phase");
  command->callback([&options] {
    if (options.output.empty() && options.compileTo.empty() && !options.printConfig)
      throw CLI::RequiredError("--output");
  });
}
} // namespace

int main(int argc, char **argv) {
  CLI::App app("A declarative graph compiler for parallel transformer training", "meshwork");
  app.require_subcommand(1);
  app.set_version_flag("--version", "meshwork 0.1.0");
  meshwork::driver::CompileOptions compile;
  addCompile(app, compile);
  std::string config, output;
  CLI::App *import = app.add_subcommand("import", "Turn a Hugging Face config.json into a model");
  import->add_option("config", config, "the config.json")->required();
  import->add_option("-o,--output", output, "the .mlir to write (default: stdout)");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : usageExit;
  }
  if (import->parsed())
    return meshwork::driver::importModel(config, output);
  return meshwork::driver::compile(compile);
}
