#include "passes/autodiff/Options.h"

#include <charconv>

using namespace meshwork;
namespace llvm::cl {

bool parser<autodiff::Setting>::parse(Option &option, StringRef, StringRef text,
                                      autodiff::Setting &setting) {
  auto [name, value] = text.split('=');
  setting.name = name.str();
  if (value.getAsDouble(setting.value))
    return option.error("setting is '" + text +
                        "', expected a form like beta1=0.8");
  return false;
}

/// Reads back as the same number.
void parser<autodiff::Setting>::print(raw_ostream &os,
                                      const autodiff::Setting &setting) {
  char digits[32];
  char *end = std::to_chars(digits, digits + sizeof(digits), setting.value).ptr;
  os << setting.name << '=' << StringRef(digits, end - digits);
}

} // namespace llvm::cl
