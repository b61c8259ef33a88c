// How a run that is watched has ended.
#pragma once

#include <string>

namespace meshwork {

struct Ending {
  int status = 0; // as waitpid gives it
  bool byCode() const;
  /// That of the process, or 128 + the signal that killed it.
  int code() const;
  /// "ended with exit code 74"
  std::string text() const;
  /// What a restart cannot mend, and what nobody wants mended.
  bool isFinal() const;
};

} // namespace meshwork
