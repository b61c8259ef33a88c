// What options of passes hold that is more than a word or a number.
#pragma once

#include "llvm/Support/CommandLine.h"
#include <string>

namespace meshwork::autodiff {

/// A setting of the optimizer that is not its default.
struct Setting {
  std::string name;
  double value = 0;
};

} // namespace meshwork::autodiff

namespace llvm::cl {

/// "beta1=0.8".
template <>
class parser<meshwork::autodiff::Setting>
    : public basic_parser<meshwork::autodiff::Setting> {
public:
  using basic_parser::basic_parser;
  bool parse(Option &option, StringRef name, StringRef text,
             meshwork::autodiff::Setting &setting);
  static void print(raw_ostream &os,
                    const meshwork::autodiff::Setting &setting);
};

} // namespace llvm::cl
