// A file that is hashed on its way to the disk.
//
//   auto file = HashedFile::create("run7/step-0000000020", "model.mlir");
//   status = file->write(text.data(), text.size());
//   absl::StatusOr<StoredFile> stored = file->commit();
#pragma once

#include "runtime/checkpoint/Manifest.h"
#include "runtime/io/Files.h"
#include <memory>

namespace meshwork::runtime {

/// XXH3-128 in hex, as manifests have it.
std::string hashText(std::string_view bytes);

/// Appears under its name when it is committed, or never; codes as in Files.h.
class HashedFile {
public:
  static absl::StatusOr<HashedFile> create(const std::string &folder,
                                           const std::string &name);
  HashedFile(HashedFile &&) noexcept;
  ~HashedFile();

  absl::Status write(const void *from, uint64_t bytes);
  /// Once it is durable: its size and hashes.
  absl::StatusOr<StoredFile> commit();

private:
  struct Hash; // of the bytes since the last whole hashedBytes
  HashedFile(OutputFile file, std::string name);
  void endHash();

  OutputFile file;
  StoredFile stored;
  std::unique_ptr<Hash> hash;
};

} // namespace meshwork::runtime
