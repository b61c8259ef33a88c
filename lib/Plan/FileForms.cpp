#include "lib/Plan/FileForms.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "lib/Plan/Views.h"
#include <algorithm>
#include <tuple>

namespace meshwork::plan {
namespace {
template <typename Pieces> FileForm unpacked(const Pieces &pieces) {
  FileForm form;
  for (const FilePiece *piece : pieces)
    piece->UnPackTo(&form.emplace_back());
  return form;
}

bool same(const FilePieceT &a, const FilePieceT &b) {
  return std::tie(a.pattern, a.counted, a.first, a.begin, a.extent, a.shape,
                  a.offset) == std::tie(b.pattern, b.counted, b.first, b.begin,
                                        b.extent, b.shape, b.offset);
}

/// Numbers for the dims that are not counted, with `number` for that one.
std::vector<int64_t> withCounted(std::vector<int64_t> numbers, int32_t counted,
                                 int64_t number) {
  if (counted >= 0)
    numbers.insert(numbers.begin() + counted, number);
  return numbers;
}

/// A tensor's strides for each dim of the parameter; that of the counted one
/// means nothing, as a tensor has one index of it.
std::vector<int64_t> stridesIn(const FilePieceT &piece) {
  if (!piece.offset.empty())
    return denseStrides(withCounted(piece.shape, piece.counted, 1));
  std::vector<int64_t> sizes = piece.extent;
  if (piece.counted >= 0)
    sizes[static_cast<size_t>(piece.counted)] = 1;
  return denseStrides(sizes);
}

FileBox boxOf(const FilePieceT &piece, int64_t number, Block block) {
  FileBox box{&piece, number, std::move(block), 0, stridesIn(piece)};
  std::vector<int64_t> begin = regionOf(piece, number).begin;
  std::vector<int64_t> offset =
      piece.offset.empty() ? std::vector<int64_t>(begin.size(), 0)
                           : withCounted(piece.offset, piece.counted, 0);
  for (size_t dim = 0; dim < begin.size(); ++dim)
    box.first +=
        (box.block.begin[dim] - begin[dim] + offset[dim]) * box.strides[dim];
  return box;
}
} // namespace

FileForm wholeForm(std::string name, std::vector<int64_t> shape,
                   std::vector<int64_t> fileShape) {
  FilePieceT piece;
  piece.pattern = std::move(name);
  piece.begin.assign(shape.size(), 0);
  piece.extent = std::move(shape);
  piece.shape = std::move(fileShape);
  return {std::move(piece)};
}

FileForm writtenForm(const Parameter &parameter) {
  const auto &pieces = parameter.files();
  if (pieces && pieces->size() > 0)
    return unpacked(*pieces);
  const auto &shape = orEmpty(parameter.shape()),
             &inFile = orEmpty(parameter.file_shape());
  return wholeForm(parameter.name() ? parameter.name()->str() : std::string(),
                   {shape.begin(), shape.end()},
                   {inFile.begin(), inFile.end()});
}

std::vector<FileForm> readForms(const Parameter &parameter) {
  std::vector<FileForm> forms = {writtenForm(parameter)};
  for (const OtherFiles *other : orEmpty(parameter.other_files()))
    forms.push_back(unpacked(orEmpty(other->pieces())));
  return forms;
}

bool sameForms(const Parameter &a, const Parameter &b) {
  std::vector<FileForm> one = readForms(a), other = readForms(b);
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [](const FileForm &x, const FileForm &y) {
                      return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                                        same);
                    });
}

int64_t tensorsOf(const FilePieceT &piece) {
  return piece.counted < 0 ? 1
                           : piece.extent[static_cast<size_t>(piece.counted)];
}

int64_t tensorsOf(const FileForm &form) {
  int64_t count = 0;
  for (const FilePieceT &piece : form)
    count += tensorsOf(piece);
  return count;
}

std::string tensorName(const FilePieceT &piece, int64_t i) {
  if (piece.counted < 0)
    return piece.pattern;
  std::string name = piece.pattern;
  return name.replace(name.find(numberMark), numberMark.size(),
                      absl::StrCat(piece.first + i));
}

std::string namesText(const FilePieceT &piece) {
  int64_t count = tensorsOf(piece);
  std::string first = tensorName(piece, 0);
  return count == 1 ? first
                    : absl::StrCat(first, " to ", tensorName(piece, count - 1));
}

std::optional<int64_t> numberOf(const FilePieceT &piece,
                                std::string_view name) {
  if (piece.counted < 0)
    return name == piece.pattern ? std::optional<int64_t>(0) : std::nullopt;
  std::string_view pattern = piece.pattern;
  size_t at = pattern.find(numberMark);
  std::string_view after = pattern.substr(at + numberMark.size());
  int64_t number = 0;
  bool fits = name.size() > pattern.size() - numberMark.size() &&
              name.starts_with(pattern.substr(0, at)) && name.ends_with(after);
  std::string digits(fits ? name.substr(at, name.size() - at - after.size())
                          : std::string_view());
  if (!absl::SimpleAtoi(digits, &number) || number < piece.first)
    return std::nullopt;
  number -= piece.first;
  bool is = number < tensorsOf(piece) &&
            tensorName(piece, number) == name; // no sign, no leading zeros
  return is ? std::optional(number) : std::nullopt;
}

Block regionOf(const FilePieceT &piece, int64_t i) {
  Block region{piece.begin, piece.extent, {}};
  if (piece.counted >= 0) {
    auto dim = static_cast<size_t>(piece.counted);
    region.begin[dim] += i;
    region.extent[dim] = 1;
  }
  return region;
}

std::optional<Block> sharedBlock(const Block &block, const Block &region) {
  Block shared = block;
  for (size_t dim = 0; dim < block.begin.size(); ++dim) {
    int64_t from = std::max(block.begin[dim], region.begin[dim]);
    int64_t to = std::min(block.begin[dim] + block.extent[dim],
                          region.begin[dim] + region.extent[dim]);
    if (from >= to)
      return std::nullopt;
    shared.begin[dim] = from;
    shared.extent[dim] = to - from;
    if (!shared.offset.empty())
      shared.offset[dim] += from - block.begin[dim];
  }
  return shared;
}

std::vector<FileBox> fileBoxes(const FileForm &form, const Block &block) {
  std::vector<FileBox> boxes;
  for (const FilePieceT &piece : form) {
    std::optional<Block> all =
        sharedBlock(block, {piece.begin, piece.extent, {}});
    if (!all)
      continue;
    size_t dim = piece.counted < 0 ? 0 : static_cast<size_t>(piece.counted);
    int64_t first = piece.counted < 0 ? 0 : all->begin[dim] - piece.begin[dim];
    int64_t count = piece.counted < 0 ? 1 : all->extent[dim];
    for (int64_t i = first; i < first + count; ++i)
      boxes.push_back(boxOf(piece, i, *sharedBlock(*all, regionOf(piece, i))));
  }
  return boxes;
}

std::vector<int64_t> denseStrides(const std::vector<int64_t> &shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * shape[i];
  return strides;
}

} // namespace meshwork::plan
