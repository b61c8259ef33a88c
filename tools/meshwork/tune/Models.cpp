#include "tools/meshwork/tune/Models.h"

#include "mlir/Parser/Parser.h"
#include "passes/pipelines/Pipelines.h"

using namespace mlir;

namespace meshwork::tune {

static DialectRegistry allDialects() {
  DialectRegistry registry;
  pipelines::registerDialects(registry);
  return registry;
}

Models::Models(const Facts &facts)
    : context(allDialects(), MLIRContext::Threading::DISABLED) {
  context.loadAllAvailableDialects();
  all = parse(facts.text);
  few = parse(facts.shallow);
  for (const LayerKind &kind : facts.kinds)
    more.push_back(parse(kind.deeper));
}

Models::Parsed Models::parse(const std::string &text) {
  return text.empty() ? Parsed()
                      : parseSourceString<ModuleOp>(
                            text, ParserConfig(&context), "the model");
}

} // namespace meshwork::tune
