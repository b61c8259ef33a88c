#include "passes/sharding/Options.h"

#include "llvm/ADT/StringExtras.h"

using namespace meshwork;
namespace llvm::cl {

bool parser<spec::Axis>::parse(Option &option, StringRef, StringRef text,
                               spec::Axis &axis) {
  auto [name, size] = text.split('=');
  axis.name = name.str();
  if (size.getAsInteger(10, axis.size) || axis.size < 1)
    return option.error("axis is '" + text +
                        "', expected a form like dp=2, of one rank or more");
  return false;
}

void parser<spec::Axis>::print(raw_ostream &os, const spec::Axis &axis) {
  os << axis.name << '=' << axis.size;
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

} // namespace llvm::cl
