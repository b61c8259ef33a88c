#include "dialects/transformer/Facts.h"
#include "dialects/transformer/StepFunctions.h"
#include "lib/Spec/Words.h"
#include "meshwork/Text/NumberRanges.h"
#include "tools/meshwork/driver/search/Autos.h"
#include "tools/meshwork/driver/search/Search.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"

using namespace mlir;

namespace meshwork::driver {
namespace {

using spec::Exchange;

/// Layers whose experts have equal sizes; -1: of no layer.
using Form = std::vector<int64_t>;
/// Of each form, whether its ranks exchange tokens.
using Exchanged = std::vector<bool>;

func::FuncOp microbatchOf(ModuleOp module) {
  return transformer::functionOf(module, transformer::StepFunction::microbatch);
}

int64_t layerNumber(Operation *op) {
  return transformer::layerOf(op).value_or(-1);
}

/// Layers whose experts have equal operands and attributes, in their order.
std::vector<Form> formsOf(ModuleOp module) {
  llvm::MapVector<std::pair<Attribute, Attribute>, Form> forms;
  microbatchOf(module).walk([&](transformer::ExpertsOp op) {
    auto operands =
        Builder(op).getTypeArrayAttr(llvm::to_vector(op->getOperandTypes()));
    forms[{operands, op->getPropertiesAsAttribute()}].push_back(
        layerNumber(op));
  });
  std::vector<Form> found;
  for (auto &[operands, layers] : forms)
    found.push_back(layers);
  return found;
}

/// Has layers of a module exchange tokens, with so many slots
/// (`experts.bound`); for a spec that says "auto".
void exchangeTokens(ModuleOp module, ArrayRef<Form> forms,
                    const Exchanged &exchanged, double bound) {
  FloatAttr slots = Builder(module.getContext()).getF64FloatAttr(bound);
  auto isExchanged = [&](Operation *op) {
    for (auto [form, is] : llvm::zip_equal(forms, exchanged))
      if (is && llvm::is_contained(form, layerNumber(op)))
        return true;
    return false;
  };
  microbatchOf(module).walk([&](Operation *op) {
    if (auto experts = dyn_cast<transformer::ExpertsOp>(op);
        experts && isExchanged(op))
      experts.setBoundAttr(slots);
    else if (auto grad = dyn_cast<transformer::ExpertsGradOp>(op);
             grad && isExchanged(op))
      grad.setBoundAttr(slots);
  });
}

/// The best so far, with the next form exchanged.
std::optional<Exchanged> nextOf(ArrayRef<Tried<Exchanged>> tried,
                                size_t forms) {
  if (forms == 0 || tried.size() > forms)
    return std::nullopt;
  if (tried.empty())
    return Exchanged(forms, false);
  const Tried<Exchanged> *best = bestOf(tried, std::nullopt);
  Exchanged next = best ? best->way : tried.front().way;
  next[tried.size() - 1] = true;
  return next;
}

using Times = std::vector<std::pair<std::string, double>>;

/// Milliseconds of a step with each way that the spec allows: of the best
/// before a form was exchanged, and of that.
Times timesOf(const Tried<Exchanged> *before,
              const Tried<Exchanged> &exchanged) {
  Times times;
  for (auto [exchange, tried] : {std::pair(Exchange::gathered, before),
                                 {Exchange::allToAll, &exchanged}})
    if (tried && tried->trial)
      times.emplace_back(spec::wordOf(exchange), tried->trial->seconds * 1e3);
  return times;
}

/// "a step should take 3.1 ms with gathered, 3.4 ms with all_to_all"
std::string textOf(const Times &times) {
  std::string text;
  llvm::raw_string_ostream os(text);
  const char *between = "a step should take ";
  for (const auto &[way, ms] : times) {
    os << between << llvm::format("%.3g ms", ms) << " with " << way;
    between = ", ";
  }
  return text;
}

/// To the user, and to the plan.
void tell(const Form &form, bool isOnly, bool isExchanged, const Times &times,
          Said &said) {
  std::string layers = numberRanges(form), text = textOf(times),
              way(spec::wordOf(isExchanged ? Exchange::allToAll
                                           : Exchange::gathered));
  said.add([&](auto &os) {
    os << "experts" << (isOnly ? "" : " of layers " + layers) << ": " << way
       << (text.empty() ? "" : "; ") << text;
  });
  said.choices.push_back(
      {"experts.exchange", way, "layers " + layers + ": " + text, times});
}
} // namespace

bool isExchangeOpen(const spec::Spec &spec) {
  return spec.splits("experts") && spec.experts.exchange == Exchange::byCost;
}

LogicalResult chooseExchange(const AtChoice &at) {
  if (!isExchangeOpen(at.spec))
    return success();
  std::vector<Form> forms = formsOf(at.module);
  auto exchange = [&](ModuleOp module, const Exchanged &exchanged) {
    exchangeTokens(module, forms, exchanged, at.spec.experts.bound);
  };
  Copies copies{at.module, "shard"};
  auto tried = tryWays<Exchanged>(
      [&](ArrayRef<Tried<Exchanged>> before) {
        return nextOf(before, forms.size());
      },
      [&](const Exchanged &way) {
        OwningOpRef<ModuleOp> copy = copies.copy();
        exchange(*copy, way);
        return copies.compile(*copy, at.spec);
      });
  if (failed(tried))
    return failure();
  const Tried<Exchanged> *best = bestOf(*tried, std::nullopt);
  Exchanged chosen = best ? best->way : Exchanged(forms.size(), false);
  // Where all layers agree, the plan says so in its spec.
  if (!llvm::is_contained(chosen, true))
    at.spec.experts.exchange = Exchange::gathered;
  else if (!llvm::is_contained(chosen, false))
    at.spec.experts.exchange = Exchange::allToAll;
  else
    exchange(at.module, chosen);
  for (size_t i = 0; i < forms.size(); ++i) {
    ArrayRef<Tried<Exchanged>> before = ArrayRef(*tried).take_front(i + 1);
    tell(forms[i], forms.size() == 1, chosen[i],
         timesOf(bestOf(before, std::nullopt), (*tried)[i + 1]), at.said);
  }
  return success();
}

} // namespace meshwork::driver
