// Which of a file's tensors are those that a plan wants. Internal to
// runtime/save.
#pragma once

#include "lib/Plan/FileForms.h"
#include "runtime/io/SafeTensors.h"
#include <map>
#include <set>

namespace meshwork::runtime {

class NamesInFile {
public:
  explicit NamesInFile(const SafeTensorsReader &file) : file(file) {}

  /// All are wanted before any is looked for.
  void want(const plan::FileForm &form);
  bool hasAny(const plan::FilePieceT &piece) const;
  /// What the file calls a wanted tensor; "" when it does not have it, or has
  /// it for another one.
  std::string claim(const std::string &tensor);
  /// As claim() has found it.
  std::string claimed(const std::string &tensor) const;
  bool isWanted(const std::string &tensor) const {
    return wanted.contains(tensor);
  }
  bool isClaimed(const std::string &nameInFile) const {
    return tensorOf.contains(nameInFile);
  }

private:
  std::string find(const std::string &tensor) const;

  const SafeTensorsReader &file;
  std::set<std::string, std::less<>> wanted;
  std::map<std::string, std::string> tensorOf; // by the file's name
  std::map<std::string, std::string> nameOf;   // in the file
};

} // namespace meshwork::runtime
