#include "lib/Optimizer/Optimizer.h"

#include <algorithm>

namespace meshwork::optimizer {

const Range fraction{
    "a number from 0 to below 1 (f32 rounds those above 0.9999999 to 1)",
    [](double v) { return v >= 0 && static_cast<float>(v) < 1; }};
const Range small{"a number from 1e-30 to 1",
                  [](double v) { return v >= 1e-30 && v <= 1; }};
const Range magnitude{"0, or a number from 1e-30 to 1e30", [](double v) {
                        return v == 0 || (v >= 1e-30 && v <= 1e30);
                      }};
const Range onOrOff{"true or false", [](double v) { return v == 0 || v == 1; },
                    /*isSwitch=*/true};

const std::vector<Optimizer> &all() {
  static const std::vector<Optimizer> list = {adamW(), sgd(), lion()};
  return list;
}

const Optimizer *find(std::string_view kind) {
  for (const Optimizer &one : all())
    if (one.kind == kind)
      return &one;
  return nullptr;
}

Settings Optimizer::defaults() const {
  Settings values;
  for (const Setting &setting : settings)
    values[setting.name] = setting.fallback;
  return values;
}

const Setting *Optimizer::find(std::string_view setting) const {
  auto found =
      std::find_if(settings.begin(), settings.end(),
                   [&](const Setting &one) { return one.name == setting; });
  return found == settings.end() ? nullptr : &*found;
}

const Setting *Optimizer::findLacking(const Settings &values) const {
  for (const Setting &setting : settings)
    if (setting.needs && values.at(setting.name) != 0 &&
        values.at(setting.needs) == 0)
      return &setting;
  return nullptr;
}

namespace {
using Op = Arithmetic::Op;
Number apply(Op op, Number a, Number b) {
  return {a.in, a.in->apply(op, a.value, b.value)};
}
Number constant(Arithmetic *in, double value) {
  return {in, in->constant(value)};
}
} // namespace

Number operator+(Number a, Number b) { return apply(Op::add, a, b); }
Number operator-(Number a, Number b) { return apply(Op::sub, a, b); }
Number operator*(Number a, Number b) { return apply(Op::mul, a, b); }
Number operator/(Number a, Number b) { return apply(Op::div, a, b); }
Number operator+(Number a, double b) { return a + constant(a.in, b); }
Number operator-(double a, Number b) { return constant(b.in, a) - b; }
Number operator*(Number a, double b) { return a * constant(a.in, b); }
Number sqrt(Number a) { return apply(Op::sqrt, a, {a.in, nullptr}); }
Number sign(Number a) { return apply(Op::sign, a, {a.in, nullptr}); }

} // namespace meshwork::optimizer
