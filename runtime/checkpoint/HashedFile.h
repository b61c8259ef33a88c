// A file that is hashed on its way to the disk.
//
//   auto file = HashedFile::create("run7/step-0000000020", "model.mlir");
//   status = file->write(text.data(), text.size());
//   absl::StatusOr<StoredFile> stored = file->commit();
#pragma once

#include "runtime/checkpoint/Manifest.h"
#include "runtime/io/Files.h"
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <memory>

namespace meshwork::runtime {

/// XXH3-128 in hex, as manifests have it.
std::string hashText(std::string_view bytes);

/// Appears under its name when it is committed, or never; codes as in Files.h.
/// Goes to the disk past the page cache, hashedBytes at a time.
class HashedFile {
public:
  ///   afterEach  called when another hashedBytes are written
  static absl::StatusOr<HashedFile> create(
      const std::string &folder, const std::string &name,
      std::function<void()> afterEach = [] {});

  absl::Status write(const void *from, uint64_t bytes);
  /// Once it is durable: its size and hashes.
  absl::StatusOr<StoredFile> commit();

private:
  struct Free {
    void operator()(std::byte *block) const { std::free(block); }
  };
  HashedFile(OutputFile file, std::function<void()> afterEach)
      : file(std::move(file)), afterEach(std::move(afterEach)) {}
  absl::Status put(const std::byte *from, uint64_t bytes);

  OutputFile file;
  std::function<void()> afterEach;
  StoredFile stored;
  // Of hashedBytes, for what comes in smaller pieces or unaligned: hashed and
  // written when it is full.
  std::unique_ptr<std::byte, Free> block;
  uint64_t filled = 0;
};

} // namespace meshwork::runtime
