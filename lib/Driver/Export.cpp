// The configuration that is written must be of the model that was trained. The
// checkpoint has the model as text; what `import` makes of the configuration
// has to be the same.
#include "lib/Driver/Export.h"

#include <map>

#include "dialects/transformer/Facts.h"
#include "lib/Driver/Checkpoints.h"
#include "lib/Driver/Files.h"
#include "lib/Driver/Guard.h"
#include "lib/Driver/Model.h"
#include "lib/Driver/Repository.h"
#include "lib/Import/Hub.h"
#include "lib/Spec/Size.h"
#include "runtime/core/IoStatus.h"
#include "llvm/ADT/StringExtras.h"
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

using Shapes = std::map<std::string, std::vector<int64_t>>; // in files

Shapes shapesOf(ModuleOp model) {
  Shapes shapes;
  model.walk([&](transformer::ParameterOp op) {
    shapes[op.getName().str()] = op.getShapeInFile().vec();
  });
  return shapes;
}

Shapes shapesOf(const runtime::Manifest &manifest) {
  Shapes shapes;
  for (const runtime::StoredTensor &tensor : manifest.tensors)
    shapes[tensor.name] = tensor.fileShape;
  return shapes;
}

std::string shapeText(ArrayRef<int64_t> shape) {
  return "[" +
         llvm::join(
             llvm::map_range(shape,
                             [](int64_t size) { return std::to_string(size); }),
             ",") +
         "]";
}

/// How tensors `found` are not those that are `wanted`, the first of each kind;
/// "" when they are.
std::string shapesDiffer(const Shapes &wanted, const Shapes &found) {
  std::string text;
  auto add = [&](const std::string &part) {
    text += (text.empty() ? "" : "; ") + part;
  };
  for (const auto &[name, shape] : wanted) {
    auto other = found.find(name);
    if (other == found.end())
      add("no " + quote(name) + " " + shapeText(shape));
    else if (other->second != shape)
      add(quote(name) + " is " + shapeText(other->second) + ", expected " +
          shapeText(shape));
    if (!text.empty())
      break;
  }
  for (const auto &[name, shape] : found)
    if (!wanted.contains(name)) {
      add("also " + quote(name) + " " + shapeText(shape));
      break;
    }
  return text;
}

/// The model in the printer's form, without what it was imported from.
std::string canonicalText(ModuleOp model) {
  model->removeDiscardableAttr(transformer::facts::config);
  std::string text;
  llvm::raw_string_ostream stream(text);
  model.print(stream);
  return text;
}

/// From a little before the first difference of two lines on.
std::string around(StringRef line, StringRef other) {
  size_t same = 0;
  while (same < std::min(line.size(), other.size()) &&
         line[same] == other[same])
    ++same;
  constexpr size_t before = 60;
  bool isCut = same > before;
  return (isCut ? "..." : "") +
         quote(line.ltrim().drop_front(
             isCut ? std::min(same - before, line.ltrim().size()) : 0));
}

/// "" when both are the same.
std::string firstDifference(StringRef trained, StringRef imported) {
  while (!trained.empty() || !imported.empty()) {
    auto [line, more] = trained.split('\n');
    auto [other, moreOther] = imported.split('\n');
    if (line != other)
      return around(line, other) + ", from its config.json it would be " +
             around(other, line);
    trained = more;
    imported = moreOther;
  }
  return "";
}

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
      if (std::string how = firstDifference(canonicalText(trained.module()),
                                            canonicalText(imported.module()));
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
    return imported.importConfig(config, modelName());
  }

  int write() const {
    Repository to{options.output, importer::hubConfig(config, type.inTorch),
                  type.inFiles, maxShardBytes, [&](const std::string &name) {
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
  std::optional<uint64_t> shard = spec::parseSize(options.maxShardSize);
  if (!shard)
    return usageError("--max-shard-size is " + quote(options.maxShardSize) +
                      ", expected a size like 5GB or 512 MiB");
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
