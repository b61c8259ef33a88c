// A checkpoint's manifest, its hash made to fit. What it says of files is then
// used: their sizes bound what a reader takes for a tensor.
#include "runtime/checkpoint/HashedFile.h"
#include "test/Fuzz/Fuzz.h"

namespace meshwork::fuzz {

bool accept(std::string_view input) {
  std::string text(input);
  text += "\n\"xxh3_128\":\"" + runtime::hashText(text + "\n") + "\"}\n";
  absl::StatusOr<runtime::Manifest> manifest = runtime::parseManifest(text);
  if (!manifest.ok())
    return false;
  uint64_t bytes = 0, elements = 0;
  for (const runtime::StoredFile &file : manifest->files)
    bytes += file.bytes;
  for (const runtime::StoredTensor &tensor : manifest->tensors) {
    uint64_t of = tensor.states.size();
    for (int64_t size : tensor.shape)
      of *= static_cast<uint64_t>(size);
    elements += of;
  }
  if (elements > bytes / 2)
    abort();
  // What is written again is the same.
  absl::StatusOr<runtime::Manifest> again =
      runtime::parseManifest(runtime::manifestText(*manifest));
  if (!again.ok() ||
      runtime::manifestText(*again) != runtime::manifestText(*manifest))
    abort();
  return true;
}

const std::vector<std::string> &seeds() {
  static const std::vector<std::string> all = {
      R"({"format":"meshwork-checkpoint","version":1,"producer":"p","step":2,"updates":1,"samples":8,)"
      R"("options":{"--lr":"0.1"},"files":[{"name":"s","bytes":60,"hashes":["0123456789abcdef0123456789abcdef"]},)"
      R"({"name":"t","bytes":0,"hashes":[]}],"tensors":[{"name":"a","shape":[2,3],"file_shape":[6],)"
      R"("files":[{"name":"x.{}","counted":[0,4],"begin":[0,0],"extent":[2,2],"shape":[2]},)"
      R"({"name":"y","counted":[],"begin":[0,2],"extent":[2,1],"shape":[2,1]}],"states":[)"
      R"({"name":"weight","dtype":"F32","boxes":[[0,8,[0,0],[2,2]],[0,24,[0,2],[2,1]]]},)"
      R"({"name":"m","dtype":"BF16","boxes":[[0,40,[0,0],[2,3]]]}]},)"
      R"({"name":"b","shape":[],"file_shape":[1,1],"states":[{"name":"weight","dtype":"F32","boxes":[[0,52,[],[]]]}]}],)"};
  return all;
}

} // namespace meshwork::fuzz
