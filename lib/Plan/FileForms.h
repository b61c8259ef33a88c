// Which tensors in files hold a parameter, and which elements of it each has.
//
//   FileForm form = writtenForm(parameter);
//   for (const FileBox &box : fileBoxes(form, block)) {
//     std::string name = tensorName(*box.piece, box.number);
//     ... box.block of the parameter is in it from element box.first on ...
//   }
#pragma once

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/Plan/Shards.h"
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshwork::plan {

/// Tensors that hold a parameter together, as pieces (Plan.fbs).
using FileForm = std::vector<FilePieceT>;

/// Stands for the number in a pattern.
inline constexpr std::string_view numberMark = "{}";

/// One tensor with all of a parameter of `shape`.
FileForm wholeForm(std::string name, std::vector<int64_t> shape,
                   std::vector<int64_t> fileShape);
/// As files are written: the parameter's pieces, or one tensor of its name.
FileForm writtenForm(const Parameter &parameter);
/// As files are read, the written form first.
std::vector<FileForm> readForms(const Parameter &parameter);
/// Whether two parameters are the same tensors in files.
bool sameForms(const Parameter &a, const Parameter &b);

/// How many tensors a piece is.
int64_t tensorsOf(const FilePieceT &piece);
/// How many tensors a form is.
int64_t tensorsOf(const FileForm &form);
/// The name of the i-th.
std::string tensorName(const FilePieceT &piece, int64_t i);
/// For people: "a.0.w to a.7.w", or the one name.
std::string namesText(const FilePieceT &piece);
/// Which of the piece's tensors has this name.
std::optional<int64_t> numberOf(const FilePieceT &piece, std::string_view name);
/// What of the parameter the i-th holds; no offset.
Block regionOf(const FilePieceT &piece, int64_t i);

/// What a block of the parameter has of one tensor in files.
struct FileBox {
  const FilePieceT *piece; // of the form
  int64_t number;          // of the piece's tensors, from 0 on
  Block block;             // its offset is where it lies in the part
  int64_t first;           // element of the tensor that is the block's first
  std::vector<int64_t> strides; // in the tensor, for each dim of the parameter
};

/// Nothing where they share no element.
std::optional<Block> sharedBlock(const Block &block, const Block &region);
/// In the order of the form. The cost grows with the tensors that the block
/// meets, not with those of the form.
std::vector<FileBox> fileBoxes(const FileForm &form, const Block &block);

/// Elements between neighbours of each dim, row-major.
std::vector<int64_t> denseStrides(const std::vector<int64_t> &shape);

// --- What files of strangers say.

/// Pieces of a form, forms of a parameter, tensors of a piece, of a model.
inline constexpr size_t mostPieces = 64, mostForms = 8;
inline constexpr int64_t mostTensors = 65536, mostTensorsOfModel = 1 << 22;

/// dataLoss unless each form holds each element of `shape`, which has been
/// checked, once, and each tensor of the first, which is written, lies in one
/// tensor of each other one. The cost does not grow with the tensors.
absl::Status checkForms(const std::vector<int64_t> &shape,
                        const std::vector<FileForm> &forms);

/// Names of one piece.
struct PieceNames {
  std::string pattern;
  int64_t first = 0, count = 0; // 0: the pattern is a name as it stands
  bool isWritten = true;        // else of a form that is read alone
};
PieceNames namesOf(const FilePieceT &piece, bool isWritten);
/// Of the forms of one parameter, the first of which is written.
void addNames(const std::vector<FileForm> &forms,
              std::vector<PieceNames> &names);

/// Two entries of a list that may name the same tensor.
struct SameName {
  size_t one, other;
};
/// Parts between dots of a name in a form; looking for names relies on it.
inline constexpr int64_t mostNameParts = 32;
/// A name that is written is of one piece only. Forms that are read alone may
/// share tensors. Numbers in patterns have been checked.
std::optional<SameName> findSameName(absl::Span<const PieceNames> names);

} // namespace meshwork::plan
