#include "runtime/io/HubFolder.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>

#include "runtime/io/Files.h"

namespace meshwork::runtime {
namespace {
namespace fs = std::filesystem;

bool isFolder(const fs::path &path) {
  std::error_code none;
  return fs::is_directory(path, none);
}
bool isThere(const fs::path &path) {
  std::error_code none;
  return fs::exists(path, none);
}

/// Names in a folder, sorted; only the first of a great many.
std::vector<std::string> namesIn(const fs::path &folder) {
  constexpr size_t most = 10000;
  std::vector<std::string> names;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end;
       !failed && at != end && names.size() < most; at.increment(failed))
    names.push_back(at->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// The snapshot that refs/main names; "" when it names none.
std::string mainSnapshot(const std::string &path) {
  constexpr uint64_t longest = 100;
  absl::StatusOr<InputFile> file =
      InputFile::openInFolder(path + "/refs", "main");
  if (!file.ok() || file->size() > longest)
    return "";
  std::string text(file->size(), '\0');
  if (!file->readAt(0, text.data(), text.size()).ok())
    return "";
  std::string name(absl::StripAsciiWhitespace(text));
  bool isPlain = !name.empty() && name.find('/') == std::string::npos &&
                 name.find('\0') == std::string::npos && name[0] != '.';
  std::string folder = absl::StrCat(path, "/snapshots/", name);
  return isPlain && isFolder(folder) ? folder : "";
}

/// Where the tools of the Hub keep what they have fetched.
fs::path cacheOfHub() {
  if (const char *cache = std::getenv("HF_HUB_CACHE"); cache && *cache)
    return cache;
  if (const char *home = std::getenv("HF_HOME"); home && *home)
    return fs::path(home) / "hub";
  const char *home = std::getenv("HOME");
  return fs::path(home ? home : "") / ".cache/huggingface/hub";
}

/// NAME or ORG/NAME.
bool canBeHubName(const std::string &path) {
  constexpr std::string_view letters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./";
  size_t slash = path.find('/');
  if (path.empty() || path[0] == '.' || path[0] == '/' || path.back() == '/' ||
      path.find_first_not_of(letters) != std::string::npos)
    return false;
  if (slash == std::string::npos)
    return path.find('.') == std::string::npos;
  return path.find('/', slash + 1) == std::string::npos &&
         !isThere(path.substr(0, slash));
}

struct OtherWeights {
  bool (*isName)(std::string_view name);
  const char *what, *advice;
};
constexpr OtherWeights others[] = {
    {[](std::string_view name) {
       return name.starts_with("pytorch_model") ||
              (name.starts_with("consolidated") && name.ends_with(".pth"));
     },
     "pickled weights of PyTorch",
     "pickled files can run code and are never opened: load them where you "
     "trust them, and write model.safetensors with Transformers' "
     "save_pretrained"},
    {[](std::string_view name) { return name.starts_with("adapter_model."); },
     "an adapter (LoRA)",
     "merge it into its model first, with merge_and_unload of PEFT"},
    {[](std::string_view name) { return name.ends_with(".gguf"); },
     "weights for llama.cpp", "take the repository of the model itself"},
    {[](std::string_view name) {
       return name == "tf_model.h5" || name == "flax_model.msgpack" ||
              name == "rust_model.ot";
     },
     "weights of another framework",
     "load them with Transformers, and write model.safetensors with "
     "save_pretrained"},
    {[](std::string_view name) {
       return name.starts_with("model-0") && name.ends_with(".safetensors");
     },
     "a part of the weights, without their index",
     "fetch model.safetensors.index.json too"},
    {[](std::string_view name) { return name == "consolidated.safetensors"; },
     "weights under names of Mistral's own",
     "fetch the repository's model.safetensors, or its parts with their index"},
    {[](std::string_view name) { return name.ends_with(".safetensors"); },
     "safetensors under another name", "name the file itself"},
    {[](std::string_view name) { return name.starts_with("models--"); },
     "repositories in the cache of the Hub", "name one of them"},
};

} // namespace

absl::StatusOr<std::string> modelFolder(const std::string &path) {
  fs::path snapshots = fs::path(path) / "snapshots";
  // A folder with a model of its own is one, whatever else is in it.
  bool isCached = isFolder(snapshots) && isFolder(fs::path(path) / "blobs") &&
                  !isThere(fs::path(path) / "config.json");
  if (!isCached)
    return path;
  if (std::string main = mainSnapshot(path); !main.empty())
    return main;
  std::vector<std::string> names = namesIn(snapshots);
  std::erase_if(names, [&](const std::string &name) {
    return !isFolder(snapshots / name);
  });
  if (names.size() == 1)
    return absl::StrCat(path, "/snapshots/", names.front());
  if (names.empty())
    return absl::DataLossError(
        absl::StrCat(quote(path), ": is a repository in the cache of the "
                                  "Hugging Face Hub, but holds no snapshot; "
                                  "fetch it again"));
  return absl::DataLossError(absl::StrCat(
      quote(path),
      ": is a repository in the cache of the Hugging Face Hub "
      "with ",
      names.size(),
      " snapshots, and its refs/main names none of them; give one, like ",
      quote(absl::StrCat(path, "/snapshots/", names.front()))));
}

std::string hubNameHint(const std::string &path) {
  if (!canBeHubName(path))
    return "";
  fs::path cached =
      cacheOfHub() /
      absl::StrCat("models--", absl::StrReplaceAll(path, {{"/", "--"}}));
  std::string hint = "; if it is a name on the Hugging Face Hub: nothing is "
                     "fetched from there, ";
  if (isFolder(cached))
    return absl::StrCat(hint, "but its cache has it, give ",
                        quote(cached.string()));
  return absl::StrCat(hint, "run `hf download ", path,
                      "` and give the folder that it prints");
}

std::string otherWeightsIn(const std::string &folder) {
  std::vector<std::string> names = namesIn(folder);
  for (const OtherWeights &other : others)
    for (const std::string &name : names)
      if (other.isName(name))
        return absl::StrCat("; it holds ", quote(name), ", ", other.what, ": ",
                            other.advice);
  return "";
}

} // namespace meshwork::runtime
