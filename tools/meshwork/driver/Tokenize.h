// `meshwork tokenize`: a program in Python, which takes over this process.
#pragma once

#include <string>
#include <vector>

namespace meshwork::driver {

struct TokenizeOptions {
  std::string tokenizer; // a tokenizer.json
  std::vector<std::string> text;
  std::string output;
  std::string field = "text";
  std::string endOfDocument; // "": none
  /// Fields of two texts of a document, of which the second one's tokens count
  /// as targets; "": all of `field` do.
  std::string prompt, answer;
};

/// Does not return where the program starts; else its exit code.
int tokenize(const TokenizeOptions &options);

} // namespace meshwork::driver
