// Parts of a spec as options of passes: from lib/Pipelines as they are, from
// meshwork-opt as texts.
#pragma once

#include "lib/Spec/Spec.h"
#include "llvm/Support/CommandLine.h"

namespace llvm::cl {

/// "dp=2".
template <>
class parser<meshwork::spec::Axis> : public basic_parser<meshwork::spec::Axis> {
public:
  using basic_parser::basic_parser;
  bool parse(Option &option, StringRef name, StringRef text,
             meshwork::spec::Axis &axis);
  static void print(raw_ostream &os, const meshwork::spec::Axis &axis);
};

/// "heads=tp", "embed=dp/tp".
template <>
class parser<meshwork::spec::ShardRule>
    : public basic_parser<meshwork::spec::ShardRule> {
public:
  using basic_parser::basic_parser;
  bool parse(Option &option, StringRef name, StringRef text,
             meshwork::spec::ShardRule &rule);
  static void print(raw_ostream &os, const meshwork::spec::ShardRule &rule);
};

/// "layers.*.up [{"tp"}, {}]": a glob, a blank, a sharding.
template <>
class parser<meshwork::spec::TensorPin>
    : public basic_parser<meshwork::spec::TensorPin> {
public:
  using basic_parser::basic_parser;
  bool parse(Option &option, StringRef name, StringRef text,
             meshwork::spec::TensorPin &pin);
  static void print(raw_ostream &os, const meshwork::spec::TensorPin &pin);
};

} // namespace llvm::cl
