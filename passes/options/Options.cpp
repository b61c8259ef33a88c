#include "passes/options/Options.h"

#include "llvm/ADT/StringExtras.h"

#include <charconv>

using namespace meshwork;
namespace meshwork::options {

bool readNamed(llvm::cl::Option &option, llvm::StringRef text,
               std::string &name, double &value) {
  auto [first, second] = text.split('=');
  name = first.str();
  if (name.empty() || second.getAsDouble(value))
    return option.error("found '" + text +
                        "', expected a name and a number, like beta1=0.8");
  return false;
}

bool readNamed(llvm::cl::Option &option, llvm::StringRef text,
               std::string &name, int64_t &value) {
  auto [first, second] = text.split('=');
  name = first.str();
  if (name.empty() || second.getAsInteger(10, value) || value < 1)
    return option.error("found '" + text +
                        "', expected a name and a number from 1 on, like tp=2");
  return false;
}

std::string textOf(double value) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof(digits), value).ptr};
}

void printNamed(llvm::raw_ostream &os, llvm::StringRef name, double value) {
  os << name << '=' << textOf(value);
}

void printNamed(llvm::raw_ostream &os, llvm::StringRef name, int64_t value) {
  os << name << '=' << value;
}

} // namespace meshwork::options

namespace llvm::cl {

bool parser<spec::Axis>::parse(Option &option, StringRef, StringRef text,
                               spec::Axis &axis) {
  int64_t size = 0;
  if (options::readNamed(option, text, axis.name, size))
    return true;
  if (size > INT32_MAX)
    return option.error("axis has " + Twine(size) + " ranks, expected fewer");
  axis.size = static_cast<uint32_t>(size);
  return false;
}

void parser<spec::Axis>::print(raw_ostream &os, const spec::Axis &axis) {
  options::printNamed(os, axis.name, int64_t{axis.size});
}

bool parser<spec::ShardRule>::parse(Option &, StringRef, StringRef text,
                                    spec::ShardRule &rule) {
  auto [dim, list] = text.split('=');
  SmallVector<StringRef> axes;
  list.split(axes, '/', -1, /*KeepEmpty=*/false);
  rule.dim = dim.str();
  rule.axes.assign(axes.begin(), axes.end());
  return false;
}

void parser<spec::ShardRule>::print(raw_ostream &os,
                                    const spec::ShardRule &rule) {
  os << rule.dim << '=' << join(rule.axes, "/");
}

bool parser<spec::TensorPin>::parse(Option &, StringRef, StringRef text,
                                    spec::TensorPin &pin) {
  auto [glob, sharding] = text.split(' ');
  pin.name = glob.str();
  pin.dims = sharding.str();
  return false;
}

void parser<spec::TensorPin>::print(raw_ostream &os,
                                    const spec::TensorPin &pin) {
  os << '{' << pin.name << ' ' << pin.dims << '}';
}

bool parser<spec::OptimizerGroup>::parse(Option &option, StringRef,
                                         StringRef text,
                                         spec::OptimizerGroup &group) {
  auto [glob, factors] = text.split(' ');
  auto [rate, decay] = factors.split(' ');
  group.name = glob.str();
  if (glob.empty() || rate.getAsDouble(group.rate) ||
      decay.getAsDouble(group.weightDecay))
    return option.error(
        "found '" + text +
        "', expected a glob and two numbers, like *.bias 0.1 0");
  return false;
}

void parser<spec::OptimizerGroup>::print(raw_ostream &os,
                                         const spec::OptimizerGroup &group) {
  os << '{' << group.name << ' ' << options::textOf(group.rate) << ' '
     << options::textOf(group.weightDecay) << '}';
}

bool parser<cost::Machine>::parse(Option &option, StringRef, StringRef text,
                                  cost::Machine &machine) {
  cost::MachineResult result = cost::readFromOneLine(text);
  if (!result.machine) {
    std::string known;
    for (const cost::Machine &one : cost::shippedMachines())
      known += one.name + ", ";
    return option.error("found '" + text + "', expected " + known +
                        "or all keys of a machine file, parted by blanks");
  }
  machine = *result.machine;
  return false;
}

void parser<cost::Machine>::print(raw_ostream &os,
                                  const cost::Machine &machine) {
  std::string text = cost::printOnOneLine(machine);
  bool isName = text == machine.name;
  os << (isName ? "" : "{") << text << (isName ? "" : "}");
}

} // namespace llvm::cl
