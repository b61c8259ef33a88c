// Files of a fuzzer's input, where writing them costs no disk.
#pragma once

#include <filesystem>
#include <fstream>
#include <stdlib.h>
#include <string>
#include <string_view>

namespace meshwork::fuzz {

/// A folder that goes with the program; one process, one thread.
class MemoryFolder {
public:
  MemoryFolder() {
    std::string name =
        (std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : "/tmp");
    name += "/meshwork-fuzz-XXXXXX";
    if (mkdtemp(name.data()) == nullptr)
      abort();
    root = name;
  }
  ~MemoryFolder() { std::filesystem::remove_all(root); }

  std::string write(const std::string &name, std::string_view bytes) const {
    std::ofstream(root + "/" + name, std::ios::binary) << bytes;
    return root + "/" + name;
  }

private:
  std::string root;
};

} // namespace meshwork::fuzz
