#include "RandomSpec.h"

#include <algorithm>

namespace meshwork::interpreter {
namespace {

std::string quoted(const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "\"" : ", \"") + name + "\"";
  return text;
}

} // namespace

RandomSpec::RandomSpec(unsigned seed, const std::vector<Parameter> &parameters,
                       bool float8)
    : dice(seed), parameters(parameters),
      documents(dice.chance(25) ? "documents = \"separate\"\n" : ""),
      float8(float8), isDelayed(float8 && seed % 20 == 0) {
  drawMesh();
  drawRules();
  drawPins();
  drawZero(seed);
  micro = 1 + static_cast<int64_t>(dice.below(data > 2 ? 2 : 4));
  const char *optimizers[] = {"", "kind = \"sgd\"\n",
                              "kind = \"sgd\"\nmomentum = 0.9\n",
                              "kind = \"lion\"\nweight_decay = 0.1\n"};
  optimizer = optimizers[dice.below(std::size(optimizers))];
  drawContext();
  drawPipeline();
  if (dice.chance(25))
    documents += "positions = \"document\"\n";
  if (dice.chance(25))
    documents += "document_end_loss = false\n";
}

/// Two stages, on an axis of any place and usual or other name.
void RandomSpec::drawPipeline() {
  size_t ranks = 1;
  bool isTaken = false;
  for (const auto &[name, size] : axes) {
    ranks *= size;
    isTaken |= name == "pp";
  }
  if (!dice.chance(30) || isTaken || ranks > 4)
    return;
  bool isUsual = dice.chance(70);
  axes.insert(axes.begin() + static_cast<int64_t>(dice.below(axes.size() + 1)),
              {isUsual ? "pp" : "stages", 2});
  if (!isUsual)
    rule("layers", {"stages"});
  const char *schedules[] = {"1f1b", "gpipe", "zb-h1"};
  zero += std::string("[pipeline]\nschedule = \"") +
          schedules[dice.below(std::size(schedules))] + "\"\n";
}

/// What a spec and that of one rank have in common, from the sequence on.
std::string RandomSpec::common() const {
  return std::string("sequence = ") + (float8 ? "16" : "6") + "\n" + documents +
         "[precision]\ncompute = \"f32\"\n" +
         (float8 ? "matmul = \"fp8\"\n" : "") +
         (isDelayed ? "scaling = \"delayed\"\n" : "") +
         (float8 ? "weight_casts = \"" + weightCasts + "\"\n" : "") +
         "[optimizer]\nclip_grad_norm = 0.5\n" + optimizer;
}

std::string RandomSpec::text() const {
  std::vector<std::string> list;
  for (const auto &[name, size] : axes)
    list.push_back(name + "=" + std::to_string(size));
  return "[mesh]\naxes = [" + quoted(list) +
         "]\n[batch]\nglobal = " + std::to_string(2 * samples()) +
         "\nmicro = " + std::to_string(micro) + "\n" + common() + "[shard]\n" +
         rules + pins + zero + context;
}

std::string RandomSpec::alone() const {
  return "[mesh]\naxes = [\"dp=1\"]\n[batch]\nglobal = " +
         std::to_string(2 * samples()) +
         "\nmicro = " + std::to_string(samples()) + "\n" + common() +
         (weights.empty() ? "" : "[zero]\nstage = 3\n" + weights);
}

void RandomSpec::drawMesh() {
  std::vector<std::string> names = {
      "dp", "fsdp", "tp",   "cp",
      "x",  "m0",   "data", "a_name_of_thirty_two_letters_000"};
  if (dice.chance(4)) // refused, or of size one alone
    names = {"pp", "ep", "tp-2", "Tp", "2d", "\u00e9", "x y", ""};
  dice.shuffle(names);
  size_t left = 8, count = 1 + dice.below(3);
  for (size_t i = 0; i < count; ++i) {
    size_t size = 1 + dice.below(left);
    if (dice.chance(85)) // sizes that most dims have
      size = std::min<size_t>(left, 1 + dice.below(3));
    axes.emplace_back(names[i], size);
    left /= size;
  }
}

std::vector<std::string> RandomSpec::someAxes(unsigned percent) {
  std::vector<std::string> some;
  for (const auto &[name, size] : axes)
    if (dice.chance(percent))
      some.push_back(name);
  dice.shuffle(some);
  return some;
}

void RandomSpec::rule(const char *dim, const std::vector<std::string> &list) {
  ruled.insert(ruled.end(), list.begin(), list.end());
  rules += std::string(dim) + " = [" + quoted(list) + "]\n";
}

void RandomSpec::drawRules() {
  batchAxes = someAxes(50);
  if (dice.chance(80)) // it would split heads too
    std::erase(batchAxes, "tp");
  rule("batch", batchAxes);
  data = 1;
  for (const auto &[name, size] : axes)
    if (std::count(batchAxes.begin(), batchAxes.end(), name))
      data *= static_cast<int64_t>(size);
  std::vector<std::string> rest;
  for (const auto &[name, size] : axes)
    if (!std::count(batchAxes.begin(), batchAxes.end(), name))
      rest.push_back(name);
  for (const char *dim :
       {"heads", "kv_heads", "ffn", "vocab", "residual_sequence", "embed"})
    if (dice.chance(10)) { // not even what is usual
      rule(dim, {});
    } else if (dice.chance(dim[0] == 'e' ? 10 : 45)) {
      std::vector<std::string> list = dice.chance(90) ? rest : someAxes(50);
      dice.shuffle(list);
      list.resize(std::min(list.size(), 1 + dice.below(2)));
      rule(dim, list);
    }
}

std::string RandomSpec::drawDims(size_t count) {
  std::vector<std::string> free = someAxes(60);
  std::string text;
  for (size_t d = 0; d < count; ++d) {
    std::string dim;
    while (!free.empty() && dice.chance(35)) {
      dim += (dim.empty() ? "\"" : ", \"") + free.back() + "\"";
      if (dice.chance(97)) // rarely, an axis is used twice
        free.pop_back();
    }
    if (dice.chance(40))
      dim += dim.empty() ? "?" : ", ?";
    dim = "{" + dim + "}";
    if (dice.chance(25))
      dim += "p" + std::to_string(dice.below(3));
    text += (d == 0 ? "" : ", ") + dim;
  }
  return "[" + text + "]";
}

void RandomSpec::drawPins() {
  size_t first = dice.below(parameters.size()), n = dice.below(4);
  for (size_t i = 0; i < n; ++i) {
    // Rarely one that is pinned already.
    Parameter parameter =
        parameters[dice.chance(95) ? (first + i) % parameters.size() : first];
    std::string name = parameter.name;
    if (dice.chance(10))
      name = "*" + name.substr(name.size() / 2);
    if (dice.chance(3))
      parameter.numDims += 1;
    pins += "[[shard.tensor]]\nname = \"" + name + "\"\ndims = '" +
            drawDims(parameter.numDims) + "'\n";
  }
}

/// Axes that are left over split the sequence.
void RandomSpec::drawContext() {
  std::vector<std::string> free;
  for (const auto &[name, size] : axes)
    if (size > 1 && !std::count(ruled.begin(), ruled.end(), name))
      free.push_back(name);
  if (free.empty() || dice.chance(20))
    return;
  dice.shuffle(free);
  rule("sequence", free);
  const char *methods[] = {"", "method = \"gathered\"\n",
                           "method = \"ulysses\"\n", "method = \"ring\"\n"};
  context = std::string("[context]\nlayout = \"") +
            (dice.chance(50) ? "zigzag" : "block") + "\"\n";
  if (free.size() == 1 || dice.chance(50)) {
    context += methods[dice.below(std::size(methods))];
    return;
  }
  context += "method = { ";
  for (const std::string &name : free)
    context += (name == free.front() ? "" : ", ") + name +
               (name == free.back() ? " = \"ulysses\"" : " = \"ring\"");
  context += " }\n";
}

void RandomSpec::drawZero(unsigned seed) {
  size_t stage = dice.below(4);
  if (stage == 0)
    return;
  std::vector<std::string> over;
  for (const std::string &axis : batchAxes)
    if (dice.chance(70))
      over.push_back(axis);
  zero = "[zero]\nstage = " + std::to_string(stage) + "\n";
  if (over.empty()) // the default axes need not split the batch
    zero.clear();
  else
    zero += "axes = [" + quoted(over) + "]\n";
  if (stage == 3 && over.size() > 1 && dice.chance(60))
    zero += "gathered = [" + quoted({over[dice.below(over.size())]}) + "]\n";
  if (stage > 1 && !over.empty() && dice.chance(30))
    zero += "reduce = \"step\"\n";
  const char *types[] = {"", "", "weights = \"int8\"\n", "weights = \"fp8\"\n"};
  if (stage == 3 && !over.empty() && !float8)
    weights = types[seed % std::size(types)];
  zero += weights;
}

} // namespace meshwork::interpreter
