// What an optimizer is: the settings that a spec may give it, what it keeps for
// each element of a parameter, and how it updates one. Plain C++, no MLIR: the
// spec asks for settings, `-transformer-build-update` for the update, and
// nothing else knows one optimizer from another.
//
//   const Optimizer *lion = optimizer::find("lion");
//   Settings settings = lion->defaults();
//   for (const State &state : lion->states(settings)) ...
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace meshwork::optimizer {

/// Numbers that a setting takes; the update computes in f32, where a number too
/// near to 1 is 1, one too small 0, and one too large infinite.
struct Range {
  const char *expected; // for messages: "a number from 0 to below 1"
  bool (*holds)(double);
  bool isSwitch = false; // written as true and false, which are 1 and 0
};
extern const Range fraction;  // from 0 to below 1
extern const Range small;     // from 1e-30 to 1: what keeps a divisor from 0
extern const Range magnitude; // 0, or from 1e-30 to 1e30
extern const Range onOrOff;   // 0 or 1

/// A key of [optimizer]. One name takes the same range with every optimizer.
struct Setting {
  const char *name;
  double fallback;
  Range range;
  /// The setting without which this one means nothing: where this one is not 0,
  /// neither may that one be.
  const char *needs = nullptr;
};
/// The setting that tensors with fewer than two dims in files do without:
/// biases and norms do not decay.
inline constexpr const char *weightDecay = "weight_decay";

/// All settings of an optimizer by name.
using Settings = std::map<std::string, double, std::less<>>;

/// Computes for whoever builds an update; `value` is theirs.
class Arithmetic {
public:
  enum class Op { add, sub, mul, div, sqrt, sign };
  virtual ~Arithmetic() = default;
  virtual const void *constant(double value) = 0;
  /// `b` is null of sqrt and sign. The sign of 0 is 0.
  virtual const void *apply(Op op, const void *a, const void *b) = 0;
};

/// A number of one element, in f32: arithmetic on it builds the update.
struct Number {
  Arithmetic *in;
  const void *value;
};
Number operator+(Number a, Number b);
Number operator-(Number a, Number b);
Number operator*(Number a, Number b);
Number operator/(Number a, Number b);
Number operator+(Number a, double b);
Number operator-(double a, Number b);
Number operator*(Number a, double b);
Number sqrt(Number a);
Number sign(Number a);

/// Something kept for each element from one step to the next, in f32.
struct State {
  const char *name; // lower-case letters, digits and _: "first_moment"
  float initial = 0;
};

/// One element before the step.
struct Element {
  Number gradient;                 // of the whole batch, clipped
  Number weight;                   // the master weight, in f32
  Number rate;                     // learning rate
  std::vector<Number> states;      // in the order of Optimizer::states
  std::vector<Number> corrections; // in the order of Optimizer::corrections
};
/// And after it. What is behind a tensor's end, where all of Element but `rate`
/// and `corrections` is zero, stays zero.
struct Updated {
  Number weight;
  std::vector<Number> states;
};

struct Optimizer {
  const char *kind; // as optimizer.kind says it
  std::vector<Setting> settings;
  std::vector<State> (*states)(const Settings &settings);
  /// Numbers b from 0 to below 1: the update reads 1 - b^t in the t-th step,
  /// counted from 1.
  std::vector<double> (*corrections)(const Settings &settings);
  Updated (*update)(const Element &element, const Settings &settings);

  Settings defaults() const;
  const Setting *find(std::string_view setting) const;
  /// The first setting that lacks the one it needs; null: none does.
  const Setting *findLacking(const Settings &values) const;
};

/// All of them, the one that a spec has when it names none first.
const std::vector<Optimizer> &all();
/// Null when there is none of that kind.
const Optimizer *find(std::string_view kind);

// One file each.
Optimizer adamW();
Optimizer sgd();
Optimizer lion();

} // namespace meshwork::optimizer
