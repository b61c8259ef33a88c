// Reading a model.
#include "lib/Driver/Model.h"

#include "dialects/transformer/Transformer.h"
#include "lib/Driver/Files.h"
#include "lib/Import/Import.h"
#include "lib/Pipelines/Pipelines.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace meshwork::driver {
namespace {

DialectRegistry allDialects() {
  DialectRegistry registry;
  pipelines::registerDialects(registry);
  return registry;
}

/// The deepest nesting of brackets. The parser recurses, and dies of a deep
/// enough file; no model comes near this bound.
constexpr int maxDepth = 256;
int deepestNesting(StringRef text) {
  int depth = 0, deepest = 0;
  for (char c : text) {
    if (c == '(' || c == '[' || c == '{' || c == '<')
      deepest = std::max(deepest, ++depth);
    else if ((c == ')' || c == ']' || c == '}' || c == '>') && depth > 0)
      --depth;
    else if (c == '\n' && depth > 4 * maxDepth)
      break;
  }
  return deepest;
}
} // namespace

Model::Model() : context(allDialects()), handler(sources, &context) {
  context.loadAllAvailableDialects();
  context.printOpOnDiagnostic(
      false); // The message says it; a module does not fit a screen.
}

int Model::read(const std::string &path, uint64_t maxBytes) {
  int code = ok;
  std::optional<std::string> text = readFile(path, maxBytes, code);
  if (!text)
    return code;
  if (llvm::sys::path::extension(path) == ".json") {
    importer::Result result = importer::importConfig(*text, path);
    llvm::errs() << textOf(result.diagnostics);
    if (!result.model)
      return badData;
    source = *result.model;
  } else {
    source = std::move(*text);
  }
  return parse(path);
}

int Model::readText(std::string text, const std::string &name) {
  source = std::move(text);
  return parse(name);
}

int Model::parse(const std::string &path) {
  if (deepestNesting(source) > maxDepth) {
    llvm::errs() << "meshwork: error: " << path
                 << " nests brackets deeper than " << maxDepth
                 << " levels; no model does\n";
    return badData;
  }
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBuffer(source, path),
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
