#include "runtime/save/NamesInFile.h"
#include "runtime/io/HubNames.h"

namespace meshwork::runtime {

void NamesInFile::want(const plan::FileForm &form) {
  for (const plan::FilePieceT &piece : form)
    for (int64_t i = 0; i < plan::tensorsOf(piece); ++i)
      wanted.insert(plan::tensorName(piece, i));
}

/// A file may give the table of a tied model under the head's name alone.
/// Parameters may have parts of one tensor.
std::string NamesInFile::find(const std::string &tensor) const {
  std::vector<std::string> names = namesInFiles(tensor);
  if (isTokenEmbedding(tensor) && !wanted.contains(headName))
    names.push_back(std::string(headName));
  for (const std::string &name : names) {
    auto owner = tensorOf.find(name);
    bool isFree = owner == tensorOf.end() || owner->second == tensor;
    if (file.find(name) && isFree && (name == tensor || !wanted.contains(name)))
      return name;
  }
  return "";
}

bool NamesInFile::hasAny(const plan::FilePieceT &piece) const {
  for (int64_t i = 0; i < plan::tensorsOf(piece); ++i)
    if (!find(plan::tensorName(piece, i)).empty())
      return true;
  return false;
}

std::string NamesInFile::claim(const std::string &tensor) {
  std::string found = find(tensor);
  if (!found.empty()) {
    tensorOf[found] = tensor;
    nameOf[tensor] = found;
  }
  return found;
}

std::string NamesInFile::claimed(const std::string &tensor) const {
  auto found = nameOf.find(tensor);
  return found == nameOf.end() ? "" : found->second;
}

} // namespace meshwork::runtime
