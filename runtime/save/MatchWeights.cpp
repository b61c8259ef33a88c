// Which tensor of a file is which parameter.
#include "absl/strings/str_join.h"
#include "lib/Plan/Checked.h"
#include "runtime/io/Files.h"
#include "runtime/io/HubNames.h"
#include "runtime/io/IoStatus.h"
#include "runtime/rank/Names.h"
#include "runtime/save/Weights.h"
#include <algorithm>
#include <cstring>
#include <map>

namespace meshwork::runtime {
namespace {
constexpr uint64_t comparedAtOnce = 1 << 20; // elements

/// A file's tensors under the plan's names.
class Renamed final : public SafeTensorsReader {
public:
  using Names = std::map<std::string, std::string, std::less<>>;
  Renamed(std::shared_ptr<const SafeTensorsReader> file, Names inFile)
      : file(std::move(file)), inFile(std::move(inFile)) {}

  const TensorInfo *find(std::string_view name) const override {
    return file->find(nameOf(name));
  }
  absl::Status read(std::string_view name,
                    absl::Span<float> out) const override {
    return file->read(nameOf(name), out);
  }
  absl::Status readRange(std::string_view name, uint64_t first,
                         absl::Span<float> out) const override {
    return file->readRange(nameOf(name), first, out);
  }
  std::vector<std::string> paths() const override { return file->paths(); }
  std::vector<std::string> names() const override {
    std::vector<std::string> all;
    for (const auto &[name, other] : inFile)
      all.push_back(name);
    return all;
  }

private:
  std::string_view nameOf(std::string_view name) const {
    auto found = inFile.find(name);
    return found == inFile.end() ? name : found->second;
  }

  std::shared_ptr<const SafeTensorsReader> file;
  Names inFile;
};

class Match {
public:
  Match(const plan::Plan &plan, const SafeTensorsReader &file) : file(file) {
    for (const plan::Program *program : *plan.programs())
      for (const plan::Parameter *parameter :
           plan::orEmpty(program->parameters()))
        parameters.try_emplace(parameter->name()->str(), parameter);
  }

  absl::Status findParameters();
  absl::Status findRest(bool readsHead);
  Renamed::Names inFile;                // by the plan's name
  std::map<std::string, size_t> counts; // of the skipped, by kind

private:
  std::string nameInFile(const std::string &parameter);
  absl::Status compareHead(const std::string &embedding);
  const std::string *tiedEmbedding() const;
  absl::Status verdict() const;

  const SafeTensorsReader &file;
  std::map<std::string, const plan::Parameter *> parameters;
  std::map<std::string, std::string> planName; // by the file's
  std::vector<std::string> missing, extra, reshaped;
};

/// "" when the file does not have it, or has it for another parameter. A file
/// may give the table of a tied model under the head's name alone.
std::string Match::nameInFile(const std::string &parameter) {
  std::vector<std::string> names = namesInFiles(parameter);
  if (isTokenEmbedding(parameter) &&
      !parameters.contains(std::string(headName)))
    names.push_back(std::string(headName));
  for (const std::string &name : names)
    if (file.find(name) && (name == parameter || !parameters.contains(name)) &&
        planName.try_emplace(name, parameter).second)
      return name;
  return "";
}

absl::Status Match::findParameters() {
  for (const auto &[name, parameter] : parameters) {
    std::string found = nameInFile(name);
    if (found.empty()) {
      missing.push_back(quote(name));
      continue;
    }
    std::vector<uint64_t> shape = file.find(found)->shape;
    if (shape != fileShape(*parameter))
      reshaped.push_back(absl::StrCat(quote(found), " is ", shapeText(shape),
                                      " in the file, the plan has ",
                                      shapeText(fileShape(*parameter))));
    // No elements: whether it is of a type that can be read.
    MESHWORK_RETURN_IF_ERROR(fromIo(file.readRange(found, 0, {})));
    inFile[name] = found;
  }
  return absl::OkStatus();
}

const std::string *Match::tiedEmbedding() const {
  for (const auto &[name, other] : inFile)
    if (isTokenEmbedding(name))
      return &other;
  return nullptr;
}

/// After findParameters.
absl::Status Match::findRest(bool readsHead) {
  const std::string *embedding = tiedEmbedding();
  bool hasHead = false;
  for (const std::string &name : file.names()) {
    if (planName.contains(name))
      continue;
    bool isHead = embedding && name == headName;
    hasHead |= isHead;
    if (isHead || followsFromConfig(name))
      ++counts[withoutNumbers(name)];
    else
      extra.push_back(quote(name));
  }
  MESHWORK_RETURN_IF_ERROR(verdict());
  return hasHead && readsHead ? compareHead(*embedding) : absl::OkStatus();
}

absl::Status Match::verdict() const {
  std::vector<std::string> parts;
  if (!missing.empty())
    parts.push_back("missing: " + firstOf(missing));
  if (missing.size() == 1 && missing[0] == quote(headName))
    parts.push_back("if the embedding is to serve as the head, import the "
                    "model with \"tie_word_embeddings\": true");
  if (!extra.empty())
    parts.push_back("not in the plan: " + firstOf(extra));
  if (!reshaped.empty())
    parts.push_back("of another shape: " + firstOf(reshaped));
  if (parts.empty())
    return absl::OkStatus();
  return plan::bad("the weights are of another model; ",
                   absl::StrJoin(parts, "; "));
}

absl::Status Match::compareHead(const std::string &embedding) {
  std::string head(headName);
  absl::Status differs = plan::bad(
      quote(head), " and ", quote(embedding),
      " differ, but the plan's model uses the latter for both: import it with "
      "\"tie_word_embeddings\": false, or take the head out of the file");
  if (file.find(head)->shape != file.find(embedding)->shape)
    return differs;
  uint64_t elements = file.find(head)->numElements;
  std::vector<float> a, b;
  for (uint64_t at = 0; at < elements; at += comparedAtOnce) {
    a.resize(std::min(elements - at, comparedAtOnce));
    b.resize(a.size());
    MESHWORK_RETURN_IF_ERROR(
        fromIo(file.readRange(head, at, absl::MakeSpan(a))));
    MESHWORK_RETURN_IF_ERROR(
        fromIo(file.readRange(embedding, at, absl::MakeSpan(b))));
    if (std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) != 0)
      return differs;
  }
  return absl::OkStatus();
}

std::string skippedText(const std::map<std::string, size_t> &counts) {
  std::vector<std::string> kinds;
  for (const auto &[name, count] : counts)
    kinds.push_back(count > 1 ? absl::StrCat(name, " (", count, ")") : name);
  return firstOf(kinds);
}
} // namespace

absl::StatusOr<MatchedWeights>
matchWeights(const plan::Plan &plan,
             std::shared_ptr<const SafeTensorsReader> file, bool readsHead) {
  Match match(plan, *file);
  MESHWORK_RETURN_IF_ERROR(match.findParameters());
  MESHWORK_RETURN_IF_ERROR(match.findRest(readsHead));
  return MatchedWeights{
      std::make_shared<Renamed>(std::move(file), std::move(match.inFile)),
      skippedText(match.counts)};
}

} // namespace meshwork::runtime
