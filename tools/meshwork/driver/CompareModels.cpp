#include "tools/meshwork/driver/CompareModels.h"

#include "dialects/transformer/Facts.h"
#include "dialects/transformer/FileForms.h"
#include "tools/meshwork/driver/Files.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace meshwork::driver {

static void addShapes(const plan::FileForm &form, Shapes &shapes) {
  for (const plan::FilePieceT &piece : form)
    shapes[plan::namesText(piece)] = piece.shape;
}

Shapes shapesOf(ModuleOp model) {
  Shapes shapes;
  model.walk([&](transformer::ParameterOp op) {
    addShapes(transformer::formsOf(op)[0], shapes);
  });
  return shapes;
}

Shapes shapesOf(const runtime::Manifest &manifest) {
  Shapes shapes;
  for (const runtime::StoredTensor &tensor : manifest.tensors)
    addShapes(writtenForm(tensor), shapes);
  return shapes;
}

static std::string shapeText(ArrayRef<int64_t> shape) {
  return "[" +
         llvm::join(
             llvm::map_range(shape,
                             [](int64_t size) { return std::to_string(size); }),
             ",") +
         "]";
}

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
static std::string canonicalText(ModuleOp model) {
  model->removeDiscardableAttr(transformer::facts::config);
  std::string text;
  llvm::raw_string_ostream stream(text);
  model.print(stream);
  return text;
}

/// From a little before the first difference of two lines on.
static std::string around(StringRef line, StringRef other) {
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
static std::string firstDifference(StringRef trained, StringRef imported) {
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

std::string modelsDiffer(ModuleOp trained, ModuleOp imported) {
  return firstDifference(canonicalText(trained), canonicalText(imported));
}

} // namespace meshwork::driver
