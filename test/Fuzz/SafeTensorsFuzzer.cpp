// A safetensors file: header, and the elements of every tensor that it names.
#include "runtime/io/SafeTensors.h"
#include "test/Fuzz/Fuzz.h"
#include "test/Fuzz/MemoryFolder.h"

namespace meshwork::fuzz {

bool accept(std::string_view input) {
  static MemoryFolder folder;
  auto reader = runtime::SafeTensorsReader::open(
      folder.write("model.safetensors", input));
  if (!reader.ok())
    return false;
  for (const std::string &name : (*reader)->names()) {
    const runtime::TensorInfo *info = (*reader)->find(name);
    // No element is smaller than a bit, so an honest reader keeps below this.
    if (info == nullptr || info->numElements > 8 * input.size())
      abort();
    std::vector<float> elements(info->numElements);
    (*reader)->read(name, absl::MakeSpan(elements)).IgnoreError();
  }
  return true;
}

const std::vector<std::string> &seeds() {
  static const std::vector<std::string> all = [] {
    std::string header = R"({"__metadata__":{"format":"pt"},)"
                         R"("a":{"dtype":"F32","shape":[2,2],)"
                         R"("data_offsets":[0,16]},"b":{"dtype":"BF16",)"
                         R"("shape":[3],"data_offsets":[16,22]}})";
    std::string file(8, '\0');
    file[0] = static_cast<char>(header.size());
    return std::vector<std::string>{file + header + std::string(22, 'x')};
  }();
  return all;
}

} // namespace meshwork::fuzz
