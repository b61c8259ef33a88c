// A word of a spec in one byte: there are millions of choices, and few words.
#pragma once

#include <compare>
#include <cstdint>
#include <string_view>

namespace meshwork::tune {

class Word {
public:
  Word() = default; // ""
  /// `text` lives as long as the program, or as the Specs whose choices have
  /// the word. One thread alone makes words.
  Word(std::string_view text) : number(numberOf(text)) {}
  Word(const char *text) : Word(std::string_view(text)) {}

  std::string_view text() const;
  operator std::string_view() const { return text(); }
  bool empty() const { return number == 0; }

  /// In the order in which they were first made.
  auto operator<=>(const Word &) const = default;
  bool operator==(const Word &) const = default;
  friend bool operator==(Word word, const char *text) {
    return word.text() == text;
  }

private:
  static uint8_t numberOf(std::string_view text);
  uint8_t number = 0;
};

} // namespace meshwork::tune
