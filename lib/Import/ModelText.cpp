#include "lib/Import/ModelText.h"

#include <charconv>

namespace meshwork::importer {
namespace {

const Dims tokenDims = {{"batch", Dim::open}, {"sequence", Dim::open}};

std::string tensorText(const Dims &dims, const char *element) {
  std::string shape, names;
  for (const Dim &dim : dims) {
    shape += (dim.size == Dim::open ? "?" : std::to_string(dim.size)) + "x";
    names += (names.empty() ? "" : ", ") + dim.name;
  }
  return "tensor<" + shape + element + ", #transformer.dims<" + names + ">>";
}

template <typename Float> std::string shortest(Float value) {
  char digits[64];
  auto end = std::to_chars(digits, digits + sizeof(digits), value);
  std::string text(digits, end.ptr);
  // MLIR takes a float only with a point in it.
  if (text.find('.') == std::string::npos)
    text.insert(std::min(text.find('e'), text.size()), ".0");
  return text;
}

std::string list(const std::vector<int64_t> &numbers) {
  std::string text;
  for (int64_t number : numbers)
    text += (text.empty() ? "[" : ", ") + std::to_string(number);
  return text + "]";
}

} // namespace

std::string mlirFloat(double value) { return shortest(value); }
std::string mlirFloat(float value) { return shortest(value); }

std::string mlirString(std::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

ModelText::ModelText(std::string moduleName)
    : moduleName(std::move(moduleName)) {
  aliases = "!tokens = " + tensorText(tokenDims, "i32") + "\n";
}

void ModelText::alias(const std::string &name, const Dims &dims) {
  std::string text = tensorText(dims, "f32");
  if (aliasOfType.emplace(text, "!" + name).second)
    aliases += "!" + name + " = " + text + "\n";
}

void ModelText::section(const std::string &title,
                        std::optional<int64_t> number) {
  body += "\n    // " + title + "\n";
  layer = number;
}

std::string ModelText::type(const Dims &dims) const {
  std::string text = tensorText(dims, "f32");
  auto found = aliasOfType.find(text);
  return found == aliasOfType.end() ? text : found->second;
}

Value ModelText::emit(const std::string &ssa, const Dims &dims,
                      const std::string &op) {
  body += "    %" + ssa + " = transformer." + op + "\n";
  return {ssa, dims};
}

Value ModelText::parameter(const std::string &ssa, const std::string &fileName,
                           Init init, const Dims &dims,
                           const std::vector<int64_t> &fileShape) {
  count(dims);
  std::string shape = fileShape.empty() ? "" : " file_shape " + list(fileShape);
  return emit(ssa, dims, declared(fileName, init) + shape + " : " + type(dims));
}

void ModelText::count(const Dims &dims) {
  uint64_t elements = 1;
  for (const Dim &dim : dims)
    elements *= static_cast<uint64_t>(dim.size); // bounded by the caller
  parameters += elements;
}

Value ModelText::untrained(const std::string &ssa, const std::string &fileName,
                           const Dim &dim) {
  return emit(ssa, {dim},
              declared(fileName, {false, 0}, true) + " : " + type({dim}));
}

std::string ModelText::declared(const std::string &name, Init init,
                                bool isUntrained) const {
  return "parameter \"" + name + "\"" +
         (layer ? " layer " + std::to_string(*layer) : "") +
         (isUntrained ? " untrained" : "") + " init " +
         (init.normal ? "<normal, 0.0, " : "<constant, ") +
         mlirFloat(init.value) + ">";
}

Value ModelText::stack(const std::string &ssa, const std::string &pattern,
                       Init init, const Dims &dims,
                       const StackedFile &stacked) {
  count(dims);
  std::string other = "#transformer.file<\"" + stacked.name + "\"";
  if (!stacked.shape.empty())
    other +=
        " shape " + list(stacked.shape) + " offset " + list(stacked.offset);
  std::string name = pattern;
  name.replace(name.find("{}."), 3, "");
  return emit(ssa, dims,
              declared(name, init) + " files [#transformer.file<\"" + pattern +
                  "\" along 0>] or [[" + other + ">]] : " + type(dims));
}

Value ModelText::embedding(const std::string &ssa, const Value &table,
                           std::optional<int64_t> padding) {
  Dims dims = tokenDims;
  dims.push_back(table.dims.back());
  return emit(ssa, dims,
              "embedding %" + table.name + ", %tokens" +
                  (padding ? " padding " + std::to_string(*padding) : "") +
                  " : " + type(table.dims) + ", !tokens -> " + type(dims));
}

Value ModelText::add(const std::string &ssa, const Value &lhs,
                     const Value &rhs) {
  return emit(ssa, lhs.dims,
              "add %" + lhs.name + ", %" + rhs.name + " : " + type(lhs.dims) +
                  ", " + type(rhs.dims) + " -> " + type(lhs.dims));
}

Value ModelText::multiply(const std::string &ssa, const Value &lhs,
                          const Value &rhs) {
  return emit(ssa, lhs.dims,
              "mul %" + lhs.name + ", %" + rhs.name + " : " + type(lhs.dims) +
                  ", " + type(rhs.dims) + " -> " + type(lhs.dims));
}

Value ModelText::contract(const std::string &ssa, const std::string &equation,
                          const Value &lhs, const Value &rhs,
                          const Dims &result) {
  return emit(ssa, result,
              "contract \"" + equation + "\" %" + lhs.name + ", %" + rhs.name +
                  " : " + type(lhs.dims) + ", " + type(rhs.dims) + " -> " +
                  type(result));
}

Value ModelText::activate(const std::string &ssa, const std::string &function,
                          const Value &input) {
  return emit(ssa, input.dims,
              "activate " + function + " %" + input.name + " : " +
                  type(input.dims));
}

Value ModelText::layerNorm(const std::string &ssa, const Value &input,
                           const Value &weight, const Value &bias,
                           double epsilon) {
  return emit(ssa, input.dims,
              "layer_norm %" + input.name + ", %" + weight.name + ", %" +
                  bias.name + " epsilon " + mlirFloat(epsilon) + " : " +
                  type(input.dims) + ", " + type(weight.dims));
}

Value ModelText::rmsNorm(const std::string &ssa, const Value &input,
                         const Value &weight, double epsilon) {
  return emit(ssa, input.dims,
              "rms_norm %" + input.name + ", %" + weight.name + " epsilon " +
                  mlirFloat(epsilon) + " : " + type(input.dims) + ", " +
                  type(weight.dims));
}

Value ModelText::standardize(const std::string &ssa, const Value &input,
                             double epsilon) {
  return emit(ssa, input.dims,
              "standardize %" + input.name + " epsilon " + mlirFloat(epsilon) +
                  " : " + type(input.dims));
}

size_t ModelText::rotary(const std::vector<float> &inverseFrequencies,
                         float scale) {
  std::string list;
  for (float f : inverseFrequencies)
    list += (list.empty() ? "" : ", ") + mlirFloat(f);
  rotaries.push_back(" inverse_frequencies [" + list + "] scale " +
                     mlirFloat(scale) + " : ");
  return rotaries.size() - 1;
}

Value ModelText::rope(const std::string &ssa, const Value &input,
                      size_t rotary) {
  return emit(ssa, input.dims,
              "rope %" + input.name + rotaries[rotary] + type(input.dims));
}

Value ModelText::dropout(const std::string &ssa, const Value &input,
                         const std::string &name, double rate) {
  if (rate == 0)
    return input;
  return emit(ssa, input.dims,
              "dropout %" + input.name + " \"" + name + "\" rate " +
                  mlirFloat(rate) + " : " + type(input.dims));
}

Value ModelText::slice(const std::string &ssa, const Value &input,
                       const std::string &dim, int64_t offset,
                       const Dims &result) {
  return emit(ssa, result,
              "slice %" + input.name + " dim \"" + dim + "\" offset " +
                  std::to_string(offset) + " : " + type(input.dims) + " -> " +
                  type(result));
}

Value ModelText::softmax(const std::string &ssa, const Value &input) {
  return emit(ssa, input.dims,
              "softmax %" + input.name + " : " + type(input.dims));
}

std::string ModelText::typeOfNumbers(const Dims &dims) const {
  return tensorText(dims, "i32");
}

Value ModelText::topK(const std::string &ssa, const Value &scores,
                      const Dims &result, int64_t groups, int64_t kept) {
  std::string among = groups > 1
                          ? " groups " + std::to_string(groups) + " kept " +
                                std::to_string(kept) + " by two_best"
                          : "";
  return emit(ssa, result,
              "top_k %" + scores.name + among + " : " + type(scores.dims) +
                  " -> " + typeOfNumbers(result));
}

/// With the 1e-20 that DeepSeek-V3's classes add to the sum.
Value ModelText::scaled(const std::string &ssa, const Value &input,
                        bool isNormalized, double scale) {
  std::string in = "%" + input.name, types = type(input.dims), sum;
  std::string body = "      %scale = arith.constant " + mlirFloat(scale) +
                     " : f32\n      %scaled = arith.mulf %x, %scale : f32\n"
                     "      transformer.yield %scaled : f32\n";
  if (isNormalized) {
    Dims rows(input.dims.begin(), input.dims.end() - 1);
    sum = emit(ssa + "_sum", rows,
               "reduce add " + in + " over <" + input.dims.back().name +
                   "> : " + types + " -> " + type(rows))
              .name;
    in += ", %" + sum;
    types += ", " + type(rows);
    body = "      %least = arith.constant 1.0e-20 : f32\n"
           "      %all = arith.addf %s, %least : f32\n"
           "      %x = arith.divf %w, %all : f32\n" +
           body;
  }
  return emit(ssa, input.dims,
              "map ins(" + in + " : " + types + ") -> " + type(input.dims) +
                  " {\n    ^bb0(" +
                  (isNormalized ? "%w: f32, %s: f32" : "%x: f32") + "):\n" +
                  body + "    }");
}

/// Each element %x by `lines`, of which the last makes %y.
Value ModelText::map(const std::string &ssa, const Value &input,
                     const std::vector<std::string> &lines) {
  std::string text = "map ins(%" + input.name + " : " + type(input.dims) +
                     ") -> " + type(input.dims) + " {\n    ^bb0(%x: f32):\n";
  for (const std::string &line : lines)
    text += "      " + line + "\n";
  return emit(ssa, input.dims,
              text + "      transformer.yield %y : f32\n    }");
}

Value ModelText::times(const std::string &ssa, const Value &input,
                       double factor) {
  if (factor == 1)
    return input;
  return map(ssa, input,
             {"%factor = arith.constant " +
                  mlirFloat(static_cast<float>(factor)) + " : f32",
              "%y = arith.mulf %x, %factor : f32"});
}

Value ModelText::onePlus(const std::string &ssa, const Value &input) {
  return map(
      ssa, input,
      {"%one = arith.constant 1.0 : f32", "%y = arith.addf %x, %one : f32"});
}

/// A NaN stays one.
Value ModelText::clip(const std::string &ssa, const Value &input,
                      double bound) {
  std::string text = mlirFloat(static_cast<float>(bound));
  return map(ssa, input,
             {"%high = arith.constant " + text + " : f32",
              "%low = arith.constant -" + text + " : f32",
              "%isHigh = arith.cmpf ogt, %x, %high : f32",
              "%atMost = arith.select %isHigh, %high, %x : f32",
              "%isLow = arith.cmpf olt, %atMost, %low : f32",
              "%y = arith.select %isLow, %low, %atMost : f32"});
}

Value ModelText::pick(const std::string &ssa, const Value &scores,
                      const Value &choices) {
  return emit(ssa, choices.dims,
              "pick %" + scores.name + " at %" + choices.name + " : " +
                  type(scores.dims) + ", " + typeOfNumbers(choices.dims) +
                  " -> " + type(choices.dims));
}

Value ModelText::experts(const std::string &ssa, const std::string &function,
                         const Value &x, const Value &choices,
                         const Value &weights,
                         const std::array<Value, 3> &projections) {
  const auto &[gate, up, down] = projections;
  return emit(ssa, x.dims,
              "experts " + function + " %" + x.name + ", %" + choices.name +
                  ", %" + weights.name + " gate %" + gate.name + " up %" +
                  up.name + " down %" + down.name + " : " + type(x.dims) +
                  ", " + typeOfNumbers(choices.dims) + ", " +
                  type(weights.dims) + ", " + type(gate.dims) + ", " +
                  type(down.dims));
}

Value ModelText::attention(const std::string &ssa, const Value &q,
                           const Value &k, const Value &v,
                           const Attention &how) {
  Dims lse = {q.dims[0], q.dims[2], q.dims[1]};
  std::string op = "attention %" + q.name + ", %" + k.name + ", %" + v.name +
                   " causal scale " + mlirFloat(how.scale);
  if (how.cap > 0)
    op += " cap " + mlirFloat(how.cap);
  if (how.window > 0)
    op += " window " + std::to_string(how.window);
  if (how.rate > 0)
    op += " dropout \"" + how.dropoutName + "\" rate " + mlirFloat(how.rate);
  op += " : " + type(q.dims) + ", " + type(k.dims) + ", " + type(v.dims) +
        " -> " + type(q.dims) + ", " + type(lse);
  emit(ssa + ", %" + ssa + "_lse", q.dims, op);
  return {ssa, q.dims};
}

void ModelText::headLoss(const Value &hidden, const Value &weight, double cap) {
  std::string capText = cap > 0 ? " cap " + mlirFloat(cap) : "";
  body += "    %loss = transformer.head_loss %" + hidden.name + ", %" +
          weight.name + ", %targets scale 1.0" + capText + " : " +
          type(hidden.dims) + ", " + type(weight.dims) +
          ", !tokens -> tensor<f32>\n" + "    return %loss : tensor<f32>\n";
}

std::string ModelText::finish(const std::vector<std::string> &header) const {
  std::string text, attributes;
  for (const std::string &line : header)
    text += "// " + line + "\n";
  if (positions > 0)
    attributes = "transformer.max_positions = " + std::to_string(positions) +
                 " : i64,\n    ";
  if (balance > 0)
    attributes += "transformer.balance_coefficient = " + mlirFloat(balance) +
                  " : f64,\n    ";
  attributes += "transformer.config = " + mlirString(configText);
  return text + aliases + "\nmodule @" + moduleName + " attributes {" +
         attributes +
         "} {\n  func.func @loss(%tokens: !tokens, %targets: !tokens) -> "
         "tensor<f32> {\n" +
         body + "  }\n}\n";
}

} // namespace meshwork::importer
