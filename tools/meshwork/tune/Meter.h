// How far a search is, on a terminal; and whether its user has seen enough.
#pragma once

#include <chrono>
#include <cstddef>

namespace meshwork::tune {

class Meter {
public:
  /// From here on Ctrl-C is a wish, unless the process ignores it.
  Meter();
  ~Meter();
  Meter(const Meter &) = delete;
  Meter &operator=(const Meter &) = delete;

  bool isInterrupted() const;
  /// `done` of `all` choices; `seconds` of the best step, 0: none yet.
  void tell(size_t done, size_t all, double seconds);
  void clear();

private:
  const bool isTerminal;
  bool isShown = false;
  std::chrono::steady_clock::time_point last = {};
};

} // namespace meshwork::tune
