// Which tensor of a file is which parameter.
#include "absl/strings/str_join.h"
#include "lib/Plan/Checked.h"
#include "lib/Plan/FileForms.h"
#include "lib/Plan/SavedTensors.h"
#include "runtime/io/Files.h"
#include "runtime/io/HubNames.h"
#include "runtime/io/IoStatus.h"
#include "runtime/rank/Names.h"
#include "runtime/save/NamesInFile.h"
#include "runtime/save/RenamedWeights.h"
#include "runtime/save/Weights.h"
#include <algorithm>
#include <cstring>
#include <map>

namespace meshwork::runtime {
namespace {
constexpr uint64_t comparedAtOnce = 1 << 20; // elements

class Match {
public:
  Match(const plan::Plan &plan, const SafeTensorsReader &file);

  absl::Status findParameters();
  absl::Status findRest(bool readsHead);
  RenamedWeights::Places places;        // by the plan's name
  std::map<std::string, size_t> counts; // of the skipped, by kind

private:
  using Forms = std::vector<plan::FileForm>;
  const plan::FileForm &chooseForm(const Forms &forms);
  absl::Status checkTensor(const std::string &found,
                           const plan::FilePieceT &piece);
  absl::Status claimPiece(const plan::FilePieceT &piece);
  void place(const plan::FileForm &written, const plan::FileForm &chosen);
  absl::Status compareHead(const std::string &embedding);
  const std::string *tiedEmbedding() const;
  absl::Status verdict() const;

  const SafeTensorsReader &file;
  std::map<std::string, Forms> parameters;
  NamesInFile names;
  std::vector<std::string> missing, extra, reshaped, twice;
};

Match::Match(const plan::Plan &plan, const SafeTensorsReader &file)
    : file(file), names(file) {
  for (const plan::Parameter *parameter : plan::distinctParameters(plan)) {
    Forms &forms = parameters[parameter->name()->str()];
    forms = plan::readForms(*parameter);
    for (const plan::FileForm &form : forms)
      names.want(form);
  }
}

/// The first of which the file has a tensor. Another one is not to be there
/// too: it may have other values.
const plan::FileForm &Match::chooseForm(const Forms &forms) {
  const plan::FilePieceT *found = nullptr;
  const plan::FileForm *chosen = &forms[0];
  for (const plan::FileForm &form : forms) {
    auto piece = std::find_if(form.begin(), form.end(), [&](const auto &one) {
      return forms.size() > 1 && names.hasAny(one);
    });
    if (piece == form.end())
      continue;
    if (found)
      twice.push_back(absl::StrCat(quote(plan::namesText(*found)), " and ",
                                   quote(plan::namesText(*piece))));
    else
      chosen = &form;
    found = found ? found : &*piece;
  }
  return *chosen;
}

absl::Status Match::checkTensor(const std::string &found,
                                const plan::FilePieceT &piece) {
  const std::vector<uint64_t> &shape = file.find(found)->shape;
  if (!std::equal(shape.begin(), shape.end(), piece.shape.begin(),
                  piece.shape.end(), [](uint64_t size, int64_t expected) {
                    return size == static_cast<uint64_t>(expected);
                  }))
    reshaped.push_back(absl::StrCat(quote(found), " is ", shapeText(shape),
                                    " in the file, the plan has ",
                                    shapeText(piece.shape)));
  // No elements: whether it is of a type that can be read.
  return fromIo(file.readRange(found, 0, {}));
}

absl::Status Match::claimPiece(const plan::FilePieceT &piece) {
  std::vector<std::string> without;
  for (int64_t i = 0; i < plan::tensorsOf(piece); ++i) {
    std::string tensor = plan::tensorName(piece, i),
                found = names.claim(tensor);
    if (found.empty())
      without.push_back(quote(tensor));
    else
      MESHWORK_RETURN_IF_ERROR(checkTensor(found, piece));
  }
  if (static_cast<int64_t>(without.size()) == plan::tensorsOf(piece))
    without = {quote(plan::namesText(piece))};
  missing.insert(missing.end(), without.begin(), without.end());
  return absl::OkStatus();
}

/// Where the written tensors are in those of the chosen form.
void Match::place(const plan::FileForm &written, const plan::FileForm &chosen) {
  for (const plan::FilePieceT &piece : written)
    for (int64_t i = 0; i < plan::tensorsOf(piece); ++i) {
      plan::Block region = plan::regionOf(piece, i);
      plan::FileBox box = plan::fileBoxes(chosen, region)[0];
      std::string tensor = plan::tensorName(*box.piece, box.number);
      PlaceInFile &to = places[plan::tensorName(piece, i)];
      to.tensor = names.claimed(tensor);
      if (&written == &chosen || to.tensor.empty())
        continue;
      TensorInfo info{file.find(to.tensor)->dtype,
                      {piece.shape.begin(), piece.shape.end()},
                      static_cast<uint64_t>(elementsOf(region))};
      to.part =
          PartInFile{std::move(info),
                     Box(region.extent, box.strides,
                         plan::denseStrides(region.extent), box.first, 0)};
    }
}

absl::Status Match::findParameters() {
  for (const auto &[name, forms] : parameters) {
    const plan::FileForm &chosen = chooseForm(forms);
    for (const plan::FilePieceT &piece : chosen)
      MESHWORK_RETURN_IF_ERROR(claimPiece(piece));
    place(forms[0], chosen);
  }
  return absl::OkStatus();
}

const std::string *Match::tiedEmbedding() const {
  for (const auto &[name, place] : places)
    if (isTokenEmbedding(name) && !place.tensor.empty())
      return &place.tensor;
  return nullptr;
}

/// After findParameters.
absl::Status Match::findRest(bool readsHead) {
  const std::string *embedding = tiedEmbedding();
  bool hasHead = false;
  for (const std::string &name : file.names()) {
    if (names.isClaimed(name) || names.isWanted(name)) // told as in two forms
      continue;
    bool isHead = embedding && name == headName;
    hasHead |= isHead;
    if (isHead || followsFromConfig(name) || isOfOtherPart(name))
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
  if (!twice.empty())
    parts.push_back(
        absl::StrCat("in two forms: ", firstOf(twice), "; keep one of each"));
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
  return MatchedWeights{std::make_shared<RenamedWeights>(
                            std::move(file), std::move(match.places)),
                        skippedText(match.counts)};
}

} // namespace meshwork::runtime
