#include "passes/pipeline/EqualRanks.h"

#include "dialects/mesh/Mesh.h"
#include "dialects/transformer/Facts.h"
#include "meshwork/Plan/LayerNames.h"

using namespace mlir;

namespace meshwork::pipeline {
namespace {
using Numbers = std::map<int64_t, int64_t>;

/// The numbers that an attribute of this name is one of; null for most.
const Numbers *numbersNamed(const Renaming &names, StringRef attribute) {
  if (attribute == transformer::facts::layer || attribute == "layer")
    return &names.layers;
  if (attribute == transformer::facts::stage || attribute == "stage")
    return &names.stages;
  return attribute == "peer" ? &names.peers : nullptr;
}

int64_t renumbered(const Numbers &numbers, int64_t number) {
  auto known = numbers.find(number);
  return known == numbers.end() ? number : known->second;
}

bool isPartOfName(char c) { return c != '.' && c != ' ' && c != '('; }

/// `text` with each scope in it renamed. One that is the begin of a longer
/// name, as "h.1" of "h.12", is none.
std::string renamed(const Renaming &names, StringRef text) {
  std::string result;
  while (!text.empty()) {
    auto found = llvm::find_if(names.scopes, [&](const auto &scope) {
      StringRef rest = text;
      return rest.consume_front(scope.first) &&
             (rest.empty() || !isPartOfName(rest.front()));
    });
    StringRef old =
        found == names.scopes.end() ? text.take_front() : found->first;
    result += found == names.scopes.end() ? old : found->second;
    text = text.drop_front(old.size());
  }
  return result;
}

/// Finds out what becomes what; that all else is equal shows only when it has
/// been renamed.
class Finder {
public:
  /// False where something would become two things.
  bool find(ArrayRef<Operation *> from, ArrayRef<DictionaryAttr> fromAttributes,
            ArrayRef<DictionaryAttr> toAttributes) {
    for (auto [op, one, other] :
         llvm::zip_equal(from, fromAttributes, toAttributes))
      if (one.size() != other.size() || !findNumbers(one, other) ||
          (isa<transformer::ParameterOp>(op) && !findScope(one, other)))
        return false;
    return rises(names.layers) && rises(names.stages);
  }
  Renaming take() { return std::move(names); }

private:
  static bool add(Numbers &numbers, int64_t from, int64_t to) {
    return numbers.try_emplace(from, to).first->second == to;
  }

  bool findNumbers(DictionaryAttr one, DictionaryAttr other) {
    for (auto [from, to] : llvm::zip_equal(one, other)) {
      if (auto cause = dyn_cast<mesh::CauseAttr>(from.getValue()))
        if (auto toCause = dyn_cast<mesh::CauseAttr>(to.getValue());
            !toCause ||
            !add(names.layers, cause.getLayer(), toCause.getLayer()) ||
            !add(names.layers, cause.getUserLayer(), toCause.getUserLayer()))
          return false;
      const Numbers *numbers = numbersNamed(names, from.getName());
      auto number = dyn_cast<IntegerAttr>(from.getValue()),
           toNumber = dyn_cast<IntegerAttr>(to.getValue());
      if (numbers && number && toNumber &&
          !add(const_cast<Numbers &>(*numbers), number.getInt(),
               toNumber.getInt()))
        return false;
    }
    return true;
  }

  bool findScope(DictionaryAttr one, DictionaryAttr other) {
    auto scopeOf = [](DictionaryAttr parameter) {
      auto layer = parameter.getAs<IntegerAttr>("layer");
      return plan::splitAtLayer(parameter.getAs<StringAttr>("name").getValue(),
                                layer ? layer.getInt() : -1);
    };
    auto [from, leaf] = scopeOf(one);
    auto [to, otherLeaf] = scopeOf(other);
    if (from.empty() || to.empty())
      return from == to; // and all else, which is looked at later
    return names.scopes.try_emplace(from, to).first->second == StringRef(to);
  }

  static bool rises(const Numbers &numbers) {
    auto seconds = llvm::make_second_range(numbers);
    return std::adjacent_find(seconds.begin(), seconds.end(),
                              std::greater_equal<>()) == seconds.end();
  }

  Renaming names;
};

DenseI64ArrayAttr flat(MLIRContext *context, const Numbers &numbers) {
  SmallVector<int64_t> flat;
  for (auto [from, to] : numbers)
    flat.append({from, to});
  return DenseI64ArrayAttr::get(context, flat);
}

Numbers pairs(DenseI64ArrayAttr flat) {
  Numbers numbers;
  for (ArrayRef<int64_t> rest = flat; rest.size() >= 2;
       rest = rest.drop_front(2))
    numbers[rest[0]] = rest[1];
  return numbers;
}
} // namespace

Renaming Renaming::from(schedule::EqualRankAttr rank) {
  Renaming names{{},
                 pairs(rank.getLayers()),
                 pairs(rank.getStages()),
                 pairs(rank.getPeers())};
  auto texts = llvm::to_vector(rank.getNames().getAsValueRange<StringAttr>());
  for (ArrayRef<StringRef> rest = texts; rest.size() >= 2;
       rest = rest.drop_front(2))
    names.scopes[rest[0]] = rest[1];
  return names;
}

schedule::EqualRankAttr Renaming::toAttr(MLIRContext *context,
                                         int64_t coordinate,
                                         DenseI32ArrayAttr actions) const {
  SmallVector<Attribute> texts;
  for (auto [from, to] : scopes)
    texts.append(
        {StringAttr::get(context, from), StringAttr::get(context, to)});
  return schedule::EqualRankAttr::get(
      context, coordinate, actions, ArrayAttr::get(context, texts),
      flat(context, layers), flat(context, stages), flat(context, peers));
}

Renamer::Renamer(const Renaming &names) : names(names) {
  replacer.addReplacement([&](StringAttr text) -> Attribute {
    std::string now = renamed(names, text.getValue());
    return text.getValue() == now ? text
                                  : StringAttr::get(text.getContext(), now);
  });
  replacer.addReplacement([&](mesh::CauseAttr cause) {
    Attribute now = mesh::CauseAttr::get( // "*" stands for numbers in names
        cause.getContext(), cause.getValue(),
        renumbered(names.layers, cause.getLayer()), cause.getUser(),
        renumbered(names.layers, cause.getUserLayer()), cause.getReason(),
        cause.getAnnotations());
    return std::pair(now, WalkResult::skip());
  });
  replacer.addReplacement([&](DictionaryAttr attributes) {
    return std::pair(ofDictionary(attributes), WalkResult::skip());
  });
}

Attribute Renamer::ofDictionary(DictionaryAttr attributes) {
  SmallVector<NamedAttribute> now;
  for (NamedAttribute named : attributes) {
    const Numbers *numbers = numbersNamed(names, named.getName());
    auto number = dyn_cast<IntegerAttr>(named.getValue());
    now.emplace_back(
        named.getName(),
        numbers && number
            ? IntegerAttr::get(number.getType(),
                               renumbered(*numbers, number.getInt()))
            : replacer.replace(named.getValue()));
  }
  return DictionaryAttr::getWithSorted(attributes.getContext(), now);
}

void Renamer::rename(Operation *op) {
  op->setLoc(cast<mlir::LocationAttr>(
      replacer.replace(mlir::Attribute(mlir::LocationAttr(op->getLoc())))));
  DictionaryAttr old = op->getAttrDictionary(), now = (*this)(old);
  if (now != old)
    op->setAttrs(now);
}

RankStep::RankStep(ModuleOp module) { addRegions(module); }

void RankStep::addValues(ValueRange values) {
  words.push_back(values.size());
  for (Value value : values) {
    words.push_back(
        reinterpret_cast<uintptr_t>(value.getType().getAsOpaquePointer()));
    numbers.try_emplace(value, numbers.size());
  }
}

/// Kernels are for all layers whose kernels are equal, so nothing in them is
/// renamed: dropout of another layer draws other words.
void RankStep::addAttributes(Operation *op) {
  bool isInside = !isa<ModuleOp, func::FuncOp>(op->getParentOp());
  if (isInside || transformer::isFusible(op))
    words.push_back(reinterpret_cast<uintptr_t>(
        op->getPropertiesAsAttribute().getAsOpaquePointer()));
  if (isInside)
    return;
  ops.push_back(op);
  attributes.push_back(op->getAttrDictionary());
}

void RankStep::addOperation(Operation *op) {
  addAttributes(op);
  words.push_back(
      reinterpret_cast<uintptr_t>(op->getName().getAsOpaquePointer()));
  words.push_back(op->getNumOperands());
  for (Value value : op->getOperands())
    words.push_back(numbers.at(value));
  addValues(op->getResults());
  addRegions(op);
}

void RankStep::addRegions(Operation *op) {
  words.push_back(op->getNumRegions());
  for (Region &region : op->getRegions()) {
    words.push_back(llvm::range_size(region));
    for (Block &block : region) {
      addValues(block.getArguments());
      words.push_back(llvm::range_size(block));
      for (Operation &inner : block)
        addOperation(&inner);
    }
  }
}

std::optional<Renaming> RankStep::renamingTo(const RankStep &other) const {
  Finder finder;
  if (words != other.words || !finder.find(ops, attributes, other.attributes))
    return std::nullopt;
  Renaming names = finder.take();
  Renamer rename(names);
  for (auto [mine, its] : llvm::zip_equal(attributes, other.attributes))
    if (rename(mine) != its)
      return std::nullopt;
  return names;
}

} // namespace meshwork::pipeline
