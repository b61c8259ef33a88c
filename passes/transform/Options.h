// What options of passes hold that is more than a word or a number.
#pragma once

#include "llvm/Support/CommandLine.h"
#include <string>

namespace meshwork::transform {

/// A dim and the number of ranks that share it.
struct DimSplit {
  std::string dim;
  int64_t ranks = 1;
};

} // namespace meshwork::transform

namespace llvm::cl {

/// "ffn=2".
template <>
class parser<meshwork::transform::DimSplit>
    : public basic_parser<meshwork::transform::DimSplit> {
public:
  using basic_parser::basic_parser;
  bool parse(Option &option, StringRef name, StringRef text,
             meshwork::transform::DimSplit &split);
  static void print(raw_ostream &os,
                    const meshwork::transform::DimSplit &split);
};

} // namespace llvm::cl
