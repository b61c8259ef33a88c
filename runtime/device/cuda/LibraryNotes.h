// What libraries have run and what was left to kernels, for the end of a run.
//
//   LibraryNotes notes({"cuDNN", "instructions of attention",
//                       "the plan's kernels"});
//   notes.runs();
//   notes.leaves("h.0.attn", "q is f32, expected bf16");
//   std::string text = notes.text();
#pragma once

#include "absl/strings/string_view.h"
#include <map>
#include <mutex>
#include <string>

namespace meshwork::runtime::cuda {

/// By ranks in threads of their own.
class LibraryNotes {
public:
  struct Words {
    const char *library, *work, *others;
    bool onlyWhenLeft = false; // nothing to tell where the library ran all
  };
  explicit LibraryNotes(const Words &words) : words(words) {}

  /// Whoever runs the rest, where it is not who was said before.
  void leaveTo(const char *others) { words.others = others; }
  void runs();
  /// The first instruction of each reason is told.
  void leaves(absl::string_view instruction, const std::string &why);
  /// Lines, or nothing.
  std::string text() const;

private:
  struct Left {
    int count = 0;
    std::string first;
  };
  Words words;
  mutable std::mutex mutex;
  int run = 0;
  std::map<std::string, Left> left; // by why
};

} // namespace meshwork::runtime::cuda
