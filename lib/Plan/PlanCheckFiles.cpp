// Which tensors in files hold a parameter.
#include "lib/Plan/FileForms.h"
#include "lib/Plan/PlanCheckInternal.h"
#include "lib/Plan/SavedTensors.h"

namespace meshwork::plan {
namespace {
using Pieces = flatbuffers::Vector<flatbuffers::Offset<FilePiece>>;

/// That pieces can be unpacked, and are few.
absl::Status checkPieces(const Pieces *pieces) {
  if (pieces && pieces->size() > mostPieces)
    return bad("it has ", pieces->size(), " files, expected at most ",
               mostPieces);
  for (const FilePiece *piece : orEmpty(pieces))
    for (const auto *numbers :
         {piece->begin(), piece->extent(), piece->shape(), piece->offset()}) {
      if (!isAligned(numbers))
        return bad("numbers of a file are not aligned to 8 bytes");
      if (orEmpty(numbers).size() > 8)
        return bad("a file has ", numbers->size(), " dims, expected at most 8");
    }
  return absl::OkStatus();
}
} // namespace

absl::Status checkFiles(const Parameter &parameter) {
  MESHWORK_RETURN_IF_ERROR(checkPieces(parameter.files()));
  const auto &others = orEmpty(parameter.other_files());
  if (others.size() > mostForms)
    return bad("it has ", others.size(),
               " other forms of files, expected at "
               "most ",
               mostForms);
  for (const OtherFiles *other : others)
    MESHWORK_RETURN_IF_ERROR(checkPieces(other->pieces()));
  if (orEmpty(parameter.files()).size() == 0 && others.size() == 0)
    return absl::OkStatus();
  const auto &shape = orEmpty(parameter.shape());
  return checkForms({shape.begin(), shape.end()}, readForms(parameter));
}

absl::Status checkFileNames(const Plan &plan) {
  std::vector<PieceNames> names;
  std::vector<const Parameter *> owners;
  int64_t tensors = 0;
  for (const Parameter *parameter : distinctParameters(plan)) {
    std::vector<FileForm> forms = readForms(*parameter);
    addNames(forms, names);
    owners.resize(names.size(), parameter);
    for (const FileForm &form : forms)
      tensors += tensorsOf(form);
    if (tensors > mostTensorsOfModel)
      return bad("its parameters are more than ", mostTensorsOfModel,
                 " tensors in files");
  }
  if (auto same = findSameName(names))
    return bad("parameters ", quote(owners[same->one]->name()), " and ",
               quote(owners[same->other]->name()), ": their files ",
               quote(names[same->one].pattern), " and ",
               quote(names[same->other].pattern), " may be of the same name");
  return absl::OkStatus();
}

} // namespace meshwork::plan
