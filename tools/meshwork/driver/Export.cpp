// The configuration that is written must be of the model that was trained. The
// checkpoint has the model as text; what `import` makes of the configuration
// has to be the same.
#include "tools/meshwork/driver/Export.h"

#include "dialects/transformer/Facts.h"
#include "lib/Import/Hub.h"
#include "lib/Spec/Size.h"
#include "runtime/io/IoStatus.h"
#include "tools/meshwork/driver/Checkpoints.h"
#include "tools/meshwork/driver/CompareModels.h"
#include "tools/meshwork/driver/Files.h"
#include "tools/meshwork/driver/Guard.h"
#include "tools/meshwork/driver/Model.h"
#include "tools/meshwork/driver/Repository.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace meshwork::driver {
namespace {

/// An element type as the command line, safetensors and PyTorch call it.
struct Type {
  const char *name, *inFiles, *inTorch;
};
constexpr Type types[] = {{"f32", "F32", "float32"},
                          {"bf16", "BF16", "bfloat16"},
                          {"f16", "F16", "float16"}};

/// One run of `meshwork checkpoint export`.
class Export {
public:
  Export(const ExportOptions &options, const Type &type, uint64_t maxShardBytes,
         std::shared_ptr<const runtime::Checkpoint> of, std::string model,
         std::string config)
      : options(options), type(type), maxShardBytes(maxShardBytes),
        checkpoint(std::move(of)), modelText(std::move(model)),
        config(std::move(config)) {}

  int run() {
    if (int code = readModels(); code != ok)
      return code;
    if (options.config.empty())
      if (std::string how = modelsDiffer(trained.module(), imported.module());
          !how.empty())
        return refuse("its model was changed after it was imported: it has " +
                      how +
                      "; give --config FILE, a config.json that describes it");
    std::string how = shapesDiffer(shapesOf(imported.module()),
                                   shapesOf(checkpoint->manifest()));
    if (!how.empty())
      return refuse("its tensors are not those of " +
                    (options.config.empty() ? std::string("its model")
                                            : quote(options.config)) +
                    ": it has " + how);
    endReading();
    return write();
  }

private:
  std::string modelName() const {
    return checkpoint->path() + "/" + runtime::modelName;
  }
  int refuse(const std::string &why) const {
    return report(absl::DataLossError(quote(checkpoint->path()) + ": " + why));
  }

  /// `trained` only where the configuration comes from it.
  int readModels() {
    beginReading(modelName(), badData, modelText.size() + config.size());
    if (!options.config.empty())
      return imported.importConfig(config, modelFile(options.config));
    if (int code = trained.readText(modelText, modelName()); code != ok)
      return code;
    auto kept =
        trained.module()->getAttrOfType<StringAttr>(transformer::facts::config);
    if (!kept)
      return report(absl::InvalidArgumentError(
          quote(checkpoint->path()) +
          ": its model was imported from no config.json (it has no " +
          transformer::facts::config.str() +
          "): give --config FILE, one that describes it"));
    config = kept.str();
    return imported.importConfig(config, modelName(), /*isKnown=*/true);
  }

  int write() const {
    Repository to{options.output, importer::hubConfig(config, type.inTorch),
                  maxShardBytes,
                  [&](const std::string &name) -> std::string {
                    return importer::staysF32(name) ? "F32" : type.inFiles;
                  },
                  [&](const std::string &name) {
                    return importer::hubName(config, name);
                  }};
    auto written = writeRepository(checkpoint, to);
    if (!written.ok())
      return report(runtime::fromIo(written.status()));
    return writeOut(printable(
        llvm::formatv("{0}: step {1} of {2}, {3} tensors, {4} bytes of {5} in "
                      "{6} files\n",
                      options.output, checkpoint->manifest().progress.step,
                      checkpoint->path(), written->tensors, written->bytes,
                      type.name, written->files)
            .str()));
  }

  const ExportOptions &options;
  const Type &type;
  uint64_t maxShardBytes;
  std::shared_ptr<const runtime::Checkpoint> checkpoint;
  std::string modelText, config;
  Model trained, imported;
};

const Type *findType(const std::string &name) {
  const Type *found =
      llvm::find_if(types, [&](const Type &type) { return type.name == name; });
  return found == std::end(types) ? nullptr : found;
}

int usageError(const std::string &text) {
  return report(absl::InvalidArgumentError(text));
}
} // namespace

int exportCheckpoint(const ExportOptions &options) {
  const Type *type = findType(options.dtype);
  if (!type)
    return usageError("--dtype is " + quote(options.dtype) +
                      ", expected f32, bf16 or f16");
  if (options.output == "-")
    return usageError("--output \"-\": expected the folder to make");
  std::optional<uint64_t> shard = spec::parseSize(options.maxShardSize);
  if (!shard)
    return usageError("--max-shard-size is " + quote(options.maxShardSize) +
                      ", expected a size in B, KB, MB, GB, TB (powers of "
                      "1000), KiB, MiB, GiB or TiB (of 1024), like 5GB or 512 "
                      "MiB");
  auto checkpoint = openNewest(options.checkpoint);
  if (!checkpoint.ok())
    return report(runtime::fromIo(checkpoint.status()));
  auto model = (*checkpoint)->readText(runtime::modelName);
  if (!model.ok())
    return report(runtime::fromIo(model.status()));
  int code = ok;
  std::string config;
  if (!options.config.empty())
    config = readModel(options.config, code).value_or("");
  if (code != ok)
    return code;
  std::shared_ptr<const runtime::Checkpoint> from = *std::move(checkpoint);
  return guarded([&] {
    return Export(options, *type, *shard, from, *model, config).run();
  });
}

} // namespace meshwork::driver
