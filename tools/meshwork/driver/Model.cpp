// Reading a model.
#include "tools/meshwork/driver/Model.h"

#include "dialects/transformer/Transformer.h"
#include "lib/Import/Import.h"
#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/Parser/Parser.h"
#include "passes/analysis/Nesting.h"
#include "passes/pipelines/Pipelines.h"
#include "tools/meshwork/driver/Files.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace meshwork::driver {
namespace {

DialectRegistry allDialects() {
  DialectRegistry registry;
  pipelines::registerDialects(registry);
  return registry;
}
} // namespace

bool isConfig(llvm::StringRef path) {
  return llvm::sys::path::extension(path) == ".json";
}

Model::Model() : context(allDialects()), handler(sources, &context) {
  context.loadAllAvailableDialects();
  context.printOpOnDiagnostic(
      false); // The message says it; a module does not fit a screen.
}

int Model::read(const std::string &text, const std::string &path) {
  return isConfig(path) ? importConfig(text, path) : readText(text, path);
}

int Model::importConfig(const std::string &json, const std::string &name,
                        bool isKnown) {
  importer::Result result = importer::importConfig(json, name);
  if (!isKnown || !result.model)
    llvm::errs() << textOf(result.diagnostics);
  if (!result.model)
    return badData;
  int code = parse(std::move(*result.model), name);
  if (code == ok)
    places.emplace(*parsed, name);
  return code;
}

int Model::readText(std::string text, const std::string &name) {
  if (int code = parse(std::move(text), name); code != ok)
    return code;
  // Aliases of aliases are small until they are printed, as a message or a
  // dump may do at any time from here on. An imported model has no aliases.
  llvm::raw_null_ostream nowhere;
  parsed->print(nowhere);
  return ok;
}

int Model::parse(std::string text, const std::string &name) {
  source = std::move(text);
  std::optional<std::string> why = analysis::whyNotParsed(source);
  if (isBytecode(llvm::MemoryBufferRef(source, name)))
    why = "is MLIR bytecode, expected text, into which meshwork-opt turns it";
  if (why)
    return report(absl::DataLossError(quote(name) + ": " + *why));
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBuffer(source, name),
                             SMLoc());
  parsed = parseSourceFile<ModuleOp>(sources, &context);
  if (!parsed)
    return badData;
  findVocabulary();
  return ok;
}

void Model::findVocabulary() {
  int64_t rows = 0;
  auto note = [&](int64_t count) {
    if (count > 0 && count <= INT32_MAX)
      rows = rows ? std::min(rows, count) : count;
  };
  parsed->walk([&](Operation *op) {
    if (auto embedding = dyn_cast<transformer::EmbeddingOp>(op);
        embedding && isa<BlockArgument>(embedding.getIds()))
      note(transformer::tensorType(embedding.getTable()).getDimSize(0));
    if (auto head = dyn_cast<transformer::HeadLossOp>(op))
      note(transformer::tensorType(head.getWeight()).getDimSize(0));
  });
  numTokens = static_cast<uint32_t>(rows);
}

} // namespace meshwork::driver
