#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <sys/stat.h>

#include "lib/Text/FileKind.h"
#include "runtime/io/Convert.h"
#include "runtime/io/Files.h"
#include "runtime/io/HubFolder.h"
#include "runtime/io/SafeTensors.h"
#include "runtime/io/SafeTensorsHeader.h"

namespace meshwork::runtime {
namespace {

constexpr char indexName[] = "model.safetensors.index.json";
constexpr char singleName[] = "model.safetensors";
constexpr uint64_t chunkBytes = uint64_t{1} << 20;

absl::Status inFile(const InputFile &file, const absl::Status &status) {
  return absl::Status(status.code(),
                      absl::StrCat(quote(file.path()), ": ", status.message()));
}

struct StoredTensor {
  TensorInfo info;
  size_t file;
  uint64_t offset; // from the start of the file
};

class Reader final : public SafeTensorsReader {
public:
  absl::Status addFile(InputFile file);
  absl::Status addFolder(const std::string &folder, const InputFile &index,
                         const LinkRule &links);

  const TensorInfo *find(std::string_view name) const override {
    auto found = tensors.find(name);
    return found == tensors.end() ? nullptr : &found->second.info;
  }
  absl::Status read(std::string_view name,
                    absl::Span<float> out) const override;
  absl::Status readRange(std::string_view name, uint64_t first,
                         absl::Span<float> out) const override;
  std::vector<std::string> names() const override;
  std::vector<std::string> paths() const override;

private:
  absl::StatusOr<const StoredTensor *> get(std::string_view name) const;
  absl::Status
  checkIndex(const InputFile &index,
             const std::vector<std::pair<std::string, std::string>> &map,
             const std::map<std::string, size_t> &fileOfName) const;

  std::string indexPath; // or none
  std::vector<InputFile> files;
  std::map<std::string, StoredTensor, std::less<>> tensors;
};

/// An error for what is no `expected`, and is known to be something else.
absl::Status checkKind(const InputFile &file, FileKind::Group expected) {
  std::optional<FileKind> kind = kindOf(file);
  if (!kind || kind->group == expected)
    return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(quote(file.path()), ": is ",
                                          kind->name, adviceForWeights(*kind)));
}

absl::Status Reader::addFile(InputFile file) {
  uint64_t length = 0;
  if (file.size() < sizeof(length))
    return absl::DataLossError(absl::StrCat(
        quote(file.path()), ": is ", plural(file.size(), "byte"),
        ", expected at least 8; it was cut off or is no safetensors file"));
  if (absl::Status status = file.readAt(0, &length, sizeof(length));
      !status.ok())
    return status;
  uint64_t limit = std::min(file.size() - sizeof(length), maxHeaderBytes);
  if (length > limit) {
    absl::Status known = checkKind(file, FileKind::Group::weights);
    return !known.ok() ? known
                       : absl::DataLossError(absl::StrCat(
                             quote(file.path()),
                             ": its first 8 bytes promise a header of ", length,
                             " bytes, expected at most ", limit,
                             "; it was cut off or is no safetensors file"));
  }
  std::string header(length, '\0');
  if (absl::Status status =
          file.readAt(sizeof(length), header.data(), header.size());
      !status.ok())
    return status;
  uint64_t dataStart = sizeof(length) + length;
  absl::StatusOr<std::vector<TensorEntry>> entries =
      parseSafeTensorsHeader(header, file.size() - dataStart);
  if (!entries.ok())
    return inFile(
        file, absl::DataLossError(absl::StrCat("safetensors header: ",
                                               entries.status().message())));
  for (TensorEntry &entry : *entries) {
    StoredTensor tensor{std::move(entry.info), files.size(),
                        dataStart + entry.begin};
    auto [other, fresh] = tensors.try_emplace(entry.name, std::move(tensor));
    if (!fresh)
      return absl::DataLossError(
          absl::StrCat("tensor ", quote(entry.name), " is in ",
                       quote(files[other->second.file].path()), " and in ",
                       quote(file.path())));
  }
  files.push_back(std::move(file));
  return absl::OkStatus();
}

absl::Status Reader::addFolder(const std::string &folder,
                               const InputFile &index, const LinkRule &links) {
  if (absl::Status status = checkKind(index, FileKind::Group::json);
      !status.ok())
    return status;
  if (index.size() > maxHeaderBytes)
    return absl::DataLossError(
        absl::StrCat(quote(index.path()), ": is ", index.size(),
                     " bytes, expected at most ", maxHeaderBytes));
  indexPath = index.path();
  std::string text(index.size(), '\0');
  if (absl::Status status = index.readAt(0, text.data(), text.size());
      !status.ok())
    return status;
  auto map = parseSafeTensorsIndex(text);
  if (!map.ok())
    return inFile(index, map.status());
  std::map<std::string, size_t> fileOfName;
  for (const auto &[tensor, name] : *map) {
    if (!fileOfName.try_emplace(name, files.size()).second)
      continue;
    absl::StatusOr<InputFile> file =
        InputFile::openInFolder(folder, name, links);
    if (!file.ok())
      return inFile(index,
                    absl::Status(file.status().code(),
                                 absl::StrCat("tensor ", quote(tensor),
                                              " is mapped to a file that "
                                              "cannot be used: ",
                                              file.status().message())));
    if (absl::Status status = addFile(*std::move(file)); !status.ok())
      return status;
  }
  return checkIndex(index, *map, fileOfName);
}

absl::Status
Reader::checkIndex(const InputFile &index,
                   const std::vector<std::pair<std::string, std::string>> &map,
                   const std::map<std::string, size_t> &fileOfName) const {
  for (const auto &[name, fileName] : map) {
    auto tensor = tensors.find(name);
    if (tensor == tensors.end() ||
        tensor->second.file != fileOfName.at(fileName))
      return absl::DataLossError(
          absl::StrCat(quote(index.path()), ": maps tensor ", quote(name),
                       " to ", quote(fileName), ", which does not hold it"));
  }
  if (map.size() == tensors.size())
    return absl::OkStatus();
  std::set<std::string_view> mapped;
  for (const auto &[name, fileName] : map)
    mapped.insert(name);
  for (const std::string &name : names())
    if (!mapped.contains(name))
      return absl::DataLossError(absl::StrCat(
          quote(index.path()), ": does not map tensor ", quote(name),
          ", which ", quote(files[tensors.at(name).file].path()), " holds"));
  return absl::OkStatus();
}

absl::StatusOr<const StoredTensor *> Reader::get(std::string_view name) const {
  auto found = tensors.find(name);
  if (found != tensors.end())
    return &found->second;
  return absl::NotFoundError(
      absl::StrCat("there is no tensor ", quote(name), " among the ",
                   plural(tensors.size(), "tensor"), " of ",
                   files.empty() ? "the index" : quote(files.front().path())));
}

absl::Status Reader::read(std::string_view name, absl::Span<float> out) const {
  absl::StatusOr<const StoredTensor *> tensor = get(name);
  if (!tensor.ok())
    return tensor.status();
  if (out.size() != (*tensor)->info.numElements)
    return absl::InvalidArgumentError(absl::StrCat(
        quote(files[(*tensor)->file].path()), ": tensor ", quote(name), " has ",
        plural((*tensor)->info.numElements, "element"), ", expected ",
        out.size()));
  return readRange(name, 0, out);
}

absl::Status Reader::readRange(std::string_view name, uint64_t begin,
                               absl::Span<float> out) const {
  absl::StatusOr<const StoredTensor *> found = get(name);
  if (!found.ok())
    return found.status();
  const StoredTensor &tensor = **found;
  const InputFile &file = files[tensor.file];
  if (begin > tensor.info.numElements ||
      out.size() > tensor.info.numElements - begin)
    return absl::InvalidArgumentError(
        absl::StrCat(quote(file.path()), ": tensor ", quote(name), " has ",
                     plural(tensor.info.numElements, "element"), ", expected ",
                     out.size(), " from ", begin, " on"));
  Converter convert = converterToFloat(tensor.info.dtype);
  if (!convert)
    return absl::DataLossError(
        absl::StrCat(quote(file.path()), ": tensor ", quote(name), " is ",
                     tensor.info.dtype, ", expected F32, F16, BF16 or F64"));
  uint64_t width = bitsOfDType(tensor.info.dtype) / 8;
  uint64_t offset = tensor.offset + begin * width;
  if (tensor.info.dtype == "F32")
    return file.readAt(offset, out.data(), out.size() * sizeof(float));
  uint64_t step = chunkBytes / width;
  std::vector<unsigned char> bytes(std::min<uint64_t>(step, out.size()) *
                                   width);
  for (uint64_t first = 0; first < out.size(); first += step) {
    uint64_t count = std::min<uint64_t>(step, out.size() - first);
    if (absl::Status status =
            file.readAt(offset + first * width, bytes.data(), count * width);
        !status.ok())
      return status;
    convert(bytes.data(), count, out.data() + first);
  }
  return absl::OkStatus();
}

std::vector<std::string> Reader::names() const {
  std::vector<std::string> all;
  all.reserve(tensors.size());
  for (const auto &[name, tensor] : tensors)
    all.push_back(name);
  return all;
}

std::vector<std::string> Reader::paths() const {
  std::vector<std::string> all;
  if (!indexPath.empty())
    all.push_back(indexPath);
  for (const InputFile &file : files)
    all.push_back(file.path());
  return all;
}

bool isFolder(const std::string &path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

using Opened = absl::StatusOr<std::unique_ptr<SafeTensorsReader>>;

Opened openIndex(const std::string &folder, const InputFile &index,
                 const LinkRule &links) {
  auto reader = std::make_unique<Reader>();
  if (absl::Status status = reader->addFolder(folder, index, links);
      !status.ok())
    return status;
  return reader;
}

Opened openFile(InputFile file) {
  auto reader = std::make_unique<Reader>();
  if (absl::Status status = reader->addFile(std::move(file)); !status.ok())
    return status;
  return reader;
}

Opened openFolder(const std::string &path, const LinkRule &links) {
  absl::StatusOr<std::string> folder = modelFolder(path);
  if (!folder.ok())
    return folder.status();
  auto index = InputFile::open(absl::StrCat(*folder, "/", indexName));
  if (index.ok())
    return openIndex(*folder, *index, links);
  if (!absl::IsNotFound(index.status()))
    return index.status();
  auto file = InputFile::open(absl::StrCat(*folder, "/", singleName));
  if (file.ok())
    return openFile(*std::move(file));
  if (!absl::IsNotFound(file.status()))
    return file.status();
  return absl::NotFoundError(
      absl::StrCat(quote(*folder), ": the folder holds neither ", indexName,
                   " nor ", singleName, otherWeightsIn(*folder)));
}

} // namespace

Opened SafeTensorsReader::open(const std::string &path, const LinkRule &links) {
  if (isFolder(path))
    return openFolder(path, links);
  absl::StatusOr<InputFile> file = InputFile::open(path);
  if (absl::IsNotFound(file.status()))
    return absl::NotFoundError(
        absl::StrCat(file.status().message(), hubNameHint(path)));
  if (!file.ok())
    return file.status();
  return absl::EndsWith(path, ".json") ? openIndex(folderOf(path), *file, links)
                                       : openFile(*std::move(file));
}

} // namespace meshwork::runtime
