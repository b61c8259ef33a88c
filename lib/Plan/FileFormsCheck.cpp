// Whether forms of files hold a parameter. Pieces are few, so pairs of them are
// compared; their tensors are not looked at one by one.
#include "absl/strings/str_join.h"
#include "lib/Plan/Checked.h"
#include "lib/Plan/FileForms.h"
#include "lib/Plan/Views.h"
#include <algorithm>

namespace meshwork::plan {
namespace {
constexpr size_t mostNameBytes = 1024, mostFileDims = 8;
constexpr int64_t mostFirst = 1'000'000'000;
using Sizes = std::vector<int64_t>;

std::string text(const Sizes &sizes) {
  return absl::StrCat("[", absl::StrJoin(sizes, ","), "]");
}

/// How often the mark stands alone between dots; -1: also elsewhere.
int countMarks(std::string_view pattern) {
  int found = 0;
  for (size_t at = pattern.find(numberMark); at != pattern.npos;
       at = pattern.find(numberMark, at + 1)) {
    size_t end = at + numberMark.size();
    bool isAlone = (at == 0 || pattern[at - 1] == '.') &&
                   (end == pattern.size() || pattern[end] == '.');
    if (!isAlone)
      return -1;
    ++found;
  }
  return found;
}

absl::Status checkPattern(const FilePieceT &piece) {
  if (piece.pattern.empty() || piece.pattern.size() > mostNameBytes)
    return bad("has a name of ", piece.pattern.size(), " bytes, expected 1 to ",
               mostNameBytes);
  if (piece.counted >= 0 && countMarks(piece.pattern) != 1)
    return bad("counts dim ", piece.counted,
               ""
               ", expected {} once in the name, alone between dots");
  if (std::count(piece.pattern.begin(), piece.pattern.end(), '.') >=
      mostNameParts)
    return bad("has ", mostNameParts, " dots or more in the name");
  if (piece.counted < 0 && piece.pattern.find(numberMark) != std::string::npos)
    return bad("has {} in the name but counts no dim");
  return absl::OkStatus();
}

/// The box lies in the parameter, and its tensors can be counted.
absl::Status checkBox(const Sizes &shape, const FilePieceT &piece) {
  if (piece.begin.size() != shape.size() || piece.extent.size() != shape.size())
    return bad("holds the box ", text(piece.extent), " from ",
               text(piece.begin), " on, expected ", shape.size(), " dims");
  for (size_t dim = 0; dim < shape.size(); ++dim)
    if (piece.extent[dim] < 1 || piece.begin[dim] < 0 ||
        piece.begin[dim] > shape[dim] ||
        piece.extent[dim] > shape[dim] - piece.begin[dim])
      return bad("holds the box ", text(piece.extent), " from ",
                 text(piece.begin), " on, which does not lie in ", text(shape));
  if (piece.counted < -1 || piece.counted >= static_cast<int64_t>(shape.size()))
    return bad("counts dim ", piece.counted, ", the parameter has ",
               shape.size());
  if (tensorsOf(piece) > mostTensors || piece.first < 0 ||
      piece.first > mostFirst)
    return bad("is ", tensorsOf(piece), " tensors from number ", piece.first,
               " on, expected at most ", mostTensors,
               " and a number from 0 to ", mostFirst);
  return absl::OkStatus();
}

/// Elements; 0 where a size is not positive or the product does not fit.
uint64_t elementsIn(const Sizes &shape) {
  uint64_t elements = 1;
  for (int64_t size : shape)
    if (size < 1 ||
        !checkedMul(elements, static_cast<uint64_t>(size), elements))
      return 0;
  return elements <= INT64_MAX ? elements : 0;
}

/// The dims of one tensor's part.
Sizes partOfTensor(const FilePieceT &piece) {
  Sizes part = piece.extent;
  if (piece.counted >= 0)
    part.erase(part.begin() + piece.counted);
  return part;
}

absl::Status checkShape(const FilePieceT &piece, bool isWritten) {
  Sizes part = partOfTensor(piece);
  uint64_t elements = elementsIn(piece.shape);
  if (piece.shape.size() > mostFileDims || elements == 0)
    return bad("has tensors of the shape ", text(piece.shape),
               ", expected at most ", mostFileDims,
               " sizes from 1 on whose product fits 63 bits");
  if (piece.offset.empty())
    return elements == elementsIn(part)
               ? absl::OkStatus()
               : bad("has tensors of the shape ", text(piece.shape),
                     ", expected as many elements as in ", text(part));
  if (isWritten)
    return bad("is a part of its tensors, expected all of them in the form "
               "that is written");
  bool fits =
      piece.offset.size() == part.size() && piece.shape.size() == part.size();
  for (size_t dim = 0; fits && dim < part.size(); ++dim)
    fits = piece.offset[dim] >= 0 && piece.offset[dim] <= piece.shape[dim] &&
           part[dim] <= piece.shape[dim] - piece.offset[dim];
  return fits ? absl::OkStatus()
              : bad("has its part ", text(part), " from ", text(piece.offset),
                    " on, which does not lie in tensors of the shape ",
                    text(piece.shape));
}

absl::Status checkPiece(const Sizes &shape, const FilePieceT &piece,
                        bool isWritten) {
  absl::Status status = checkBox(shape, piece);
  if (status.ok())
    status = checkPattern(piece);
  if (status.ok())
    status = checkShape(piece, isWritten);
  if (status.ok())
    return status;
  return bad("file ", quote(piece.pattern.substr(0, mostNameBytes)), " ",
             status.message());
}

/// Boxes that do not meet and have as many elements as the whole cover it.
absl::Status checkCover(const Sizes &shape, const FileForm &form) {
  uint64_t held = 0;
  for (size_t i = 0; i < form.size(); ++i) {
    Block own{form[i].begin, form[i].extent, {}};
    held += elementsIn(form[i].extent); // Parts of the whole: no overflow.
    for (size_t j = 0; j < i; ++j)
      if (auto shared = sharedBlock(own, {form[j].begin, form[j].extent, {}}))
        return bad("files ", quote(form[j].pattern), " and ",
                   quote(form[i].pattern), " both hold the element ",
                   text(shared->begin));
  }
  if (held != elementsIn(shape))
    return bad("files hold ", held, " elements, the parameter has ",
               elementsIn(shape), ": expected each in one file");
  return absl::OkStatus();
}

/// Whether each tensor of `piece` lies in one tensor of `other`.
bool liesIn(const FilePieceT &piece, const FilePieceT &other) {
  auto shared = sharedBlock({piece.begin, piece.extent, {}},
                            {other.begin, other.extent, {}});
  bool isInside = shared && shared->extent == piece.extent;
  return isInside && (other.counted < 0 || other.counted == piece.counted ||
                      piece.extent[static_cast<size_t>(other.counted)] == 1);
}

absl::Status checkCoarser(const FileForm &written, const FileForm &other) {
  for (const FilePieceT &piece : written)
    if (std::none_of(other.begin(), other.end(),
                     [&](const FilePieceT &one) { return liesIn(piece, one); }))
      return bad("file ", quote(piece.pattern),
                 " does not lie in one file of another form");
  return absl::OkStatus();
}

absl::Status checkForm(const Sizes &shape, const FileForm &form,
                       bool isWritten) {
  if (form.empty() || form.size() > mostPieces)
    return bad("has a form of ", form.size(), " files, expected 1 to ",
               mostPieces);
  for (const FilePieceT &piece : form)
    MESHWORK_RETURN_IF_ERROR(checkPiece(shape, piece, isWritten));
  return checkCover(shape, form);
}
} // namespace

absl::Status checkForms(const std::vector<int64_t> &shape,
                        const std::vector<FileForm> &forms) {
  if (forms.size() > mostForms + 1)
    return bad("has ", forms.size() - 1,
               " other forms of files, expected at "
               "most ",
               mostForms);
  for (size_t i = 0; i < forms.size(); ++i) {
    MESHWORK_RETURN_IF_ERROR(checkForm(shape, forms[i], i == 0));
    if (i > 0)
      MESHWORK_RETURN_IF_ERROR(checkCoarser(forms[0], forms[i]));
  }
  std::vector<PieceNames> names;
  addNames(forms, names);
  if (auto same = findSameName(names))
    return bad("files ", quote(names[same->one].pattern), " and ",
               quote(names[same->other].pattern), " may be of the same name");
  return absl::OkStatus();
}

} // namespace meshwork::plan
