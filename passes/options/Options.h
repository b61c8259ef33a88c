// What options of passes hold beside words and numbers: parts of a spec, from
// passes/pipelines as they are, from meshwork-opt as texts. Each form is read
// and printed here once.
#pragma once

#include "lib/Cost/Machine.h"
#include "lib/Spec/Spec.h"
#include "lib/Spec/Words.h"
#include "llvm/Support/CommandLine.h"

namespace meshwork::options {

/// "beta1=0.8", "ffn=2": whole numbers are 1 or more.
template <typename Number> struct Named {
  std::string name;
  Number value{};
};
using Setting = Named<double>;   // of an optimizer
using DimSplit = Named<int64_t>; // a dim, and the ranks that share it

/// Reads a name and a number; true, and an error of `option`, for other texts.
bool readNamed(llvm::cl::Option &option, llvm::StringRef text,
               std::string &name, double &value);
bool readNamed(llvm::cl::Option &option, llvm::StringRef text,
               std::string &name, int64_t &value);
/// A number reads back as the same.
std::string textOf(double value);
void printNamed(llvm::raw_ostream &os, llvm::StringRef name, double value);
void printNamed(llvm::raw_ostream &os, llvm::StringRef name, int64_t value);

/// An enumeration of a spec, by its words.
template <typename E> class WordParser : public llvm::cl::basic_parser<E> {
public:
  using llvm::cl::basic_parser<E>::basic_parser;
  bool parse(llvm::cl::Option &option, llvm::StringRef, llvm::StringRef text,
             E &value) {
    std::optional<E> read = spec::readWord<E>({text.data(), text.size()});
    if (!read)
      return option.error("found '" + text + "', expected " +
                          spec::listOfWords<E>());
    value = *read;
    return false;
  }
  static void print(llvm::raw_ostream &os, E value) {
    os << spec::wordOf(value);
  }
  void printOptionDiff(const llvm::cl::Option &option, E,
                       const llvm::cl::OptionValue<E> &, size_t width) const {
    this->printOptionNoValue(option, width);
  }
};

} // namespace meshwork::options

namespace llvm::cl {

template <typename Number>
class parser<meshwork::options::Named<Number>>
    : public basic_parser<meshwork::options::Named<Number>> {
public:
  using Value = meshwork::options::Named<Number>;
  using basic_parser<Value>::basic_parser;
  bool parse(Option &option, StringRef, StringRef text, Value &value) {
    return meshwork::options::readNamed(option, text, value.name, value.value);
  }
  static void print(raw_ostream &os, const Value &value) {
    meshwork::options::printNamed(os, value.name, value.value);
  }
};

template <>
class parser<meshwork::spec::Type>
    : public meshwork::options::WordParser<meshwork::spec::Type> {
  using WordParser::WordParser;
};
template <>
class parser<meshwork::spec::WeightType>
    : public meshwork::options::WordParser<meshwork::spec::WeightType> {
  using WordParser::WordParser;
};
template <>
class parser<meshwork::spec::GradientType>
    : public meshwork::options::WordParser<meshwork::spec::GradientType> {
  using WordParser::WordParser;
};
template <>
class parser<meshwork::spec::Balance>
    : public meshwork::options::WordParser<meshwork::spec::Balance> {
  using WordParser::WordParser;
};
template <>
class parser<meshwork::spec::Device>
    : public meshwork::options::WordParser<meshwork::spec::Device> {
  using WordParser::WordParser;
};
template <>
class parser<meshwork::spec::Rounding>
    : public meshwork::options::WordParser<meshwork::spec::Rounding> {
  using WordParser::WordParser;
};
template <>
class parser<meshwork::spec::ReductionOrder>
    : public meshwork::options::WordParser<meshwork::spec::ReductionOrder> {
  using WordParser::WordParser;
};
template <>
class parser<meshwork::spec::Recompute>
    : public meshwork::options::WordParser<meshwork::spec::Recompute> {
  using WordParser::WordParser;
};
template <>
class parser<meshwork::spec::When>
    : public meshwork::options::WordParser<meshwork::spec::When> {
  using WordParser::WordParser;
};

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

/// "*.bias 0.1 0": a glob, a factor of the rate, and one of the decay.
template <>
class parser<meshwork::spec::OptimizerGroup>
    : public basic_parser<meshwork::spec::OptimizerGroup> {
public:
  using basic_parser::basic_parser;
  bool parse(Option &option, StringRef name, StringRef text,
             meshwork::spec::OptimizerGroup &group);
  static void print(raw_ostream &os,
                    const meshwork::spec::OptimizerGroup &group);
};

/// "h100x8", or all keys of a machine file: "{name=\"m\" flops.f32=1e11 ...}".
template <>
class parser<meshwork::cost::Machine>
    : public basic_parser<meshwork::cost::Machine> {
public:
  using basic_parser::basic_parser;
  bool parse(Option &option, StringRef name, StringRef text,
             meshwork::cost::Machine &machine);
  static void print(raw_ostream &os, const meshwork::cost::Machine &machine);
  void printOptionDiff(const Option &option, const meshwork::cost::Machine &,
                       const OptionValue<meshwork::cost::Machine> &,
                       size_t width) const {
    printOptionNoValue(option, width);
  }
};

} // namespace llvm::cl
