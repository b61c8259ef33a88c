#include "lib/Explain/Trace.h"
#include "absl/strings/str_cat.h"
#include "lib/Explain/Listing.h"
#include "lib/Explain/TraceActions.h"
#include "lib/Text/JsonHandler.h"
#include <algorithm>
#include <array>
#include <cmath>

namespace meshwork::explain {
namespace {

constexpr size_t maxDepth = 64;
/// Thirty years in microseconds.
constexpr double longest = 1e15;

/// An event as it stands in the file; keys that are missing keep these.
struct RawEvent {
  std::string ph, name, cat, action;
  double pid = -1, ts = -1, dur = -1, step = -1, instruction = -1, wait = 0;
};

struct StringKey {
  const char *name;
  std::string RawEvent::*member;
  bool isArgument;
};
constexpr StringKey stringKeys[] = {{"ph", &RawEvent::ph, false},
                                    {"name", &RawEvent::name, false},
                                    {"cat", &RawEvent::cat, false},
                                    {"action", &RawEvent::action, true}};
struct NumberKey {
  const char *name;
  double RawEvent::*member;
  bool isArgument, isWhole;
};
constexpr NumberKey numberKeys[] = {
    {"pid", &RawEvent::pid, false, true},
    {"ts", &RawEvent::ts, false, false},
    {"dur", &RawEvent::dur, false, false},
    {"step", &RawEvent::step, true, true},
    {"instruction", &RawEvent::instruction, true, true},
    {"wait_us", &RawEvent::wait, true, false}};

/// Of {"otherData": {"plan": ...}, "traceEvents": [{..., "args": {...}}]};
/// whatever else is there is passed over.
class TraceHandler : public JsonHandler {
public:
  explicit TraceHandler(const plan::Plan &plan) : plan(plan), actions(plan) {}

  std::vector<TraceEvent> events;

  bool null() { return other("null"); }
  bool boolean(bool) { return other("a boolean"); }
  bool number_integer(number_integer_t value) {
    return number(static_cast<double>(value));
  }
  bool number_unsigned(number_unsigned_t value) {
    return number(static_cast<double>(value));
  }
  bool number_float(number_float_t value, const string_t &) {
    return number(value);
  }
  bool binary(binary_t &) { return other("binary data"); }

  bool string(string_t &value) {
    if (depth == 2 && keys[1] == "otherData" && keys[2] == "plan")
      return checkPlan(value);
    for (const StringKey &one : stringKeys)
      if (isAt(one.name, one.isArgument))
        event.*one.member = std::move(value);
    return other("a string");
  }

  bool start_object(std::size_t) {
    if (isEventPlace())
      event = RawEvent();
    return deeper();
  }
  bool end_object() {
    --depth;
    return !isEventPlace() || event.ph != "X" || accept();
  }
  bool start_array(std::size_t) {
    if (depth == 1 && keys[1] == "traceEvents")
      inEvents = true;
    return other("an array") && deeper();
  }
  bool end_array() {
    --depth;
    inEvents &= depth > 1;
    return true;
  }
  bool key(string_t &name) {
    if (depth < numKeys)
      keys[depth] = std::move(name);
    return true;
  }

  absl::Status end() {
    if (!namesPlan)
      fail("names no plan, expected \"otherData\": {\"plan\": ...}, which "
           "meshwork-run --trace writes");
    else if (events.empty())
      fail("holds no event of a step, expected those that meshwork-run --trace "
           "writes");
    return status();
  }

private:
  /// Elements of traceEvents stand two deep, their keys three.
  bool isEventPlace() const { return inEvents && depth == 2; }
  bool isAt(const char *name, bool isArgument) const {
    return inEvents && depth == (isArgument ? 4 : 3) && keys[depth] == name &&
           (!isArgument || keys[3] == "args");
  }

  bool deeper() {
    return ++depth <= maxDepth ||
           fail(absl::StrCat("nests deeper than ", maxDepth));
  }

  bool other(const char *what) {
    if (depth == 0)
      return fail(
          absl::StrCat("found ", what, ", expected a trace, an object"));
    return !isEventPlace() ||
           fail(absl::StrCat("has ", what,
                             " among \"traceEvents\", expected "
                             "objects"));
  }

  bool checkPlan(const std::string &hash) {
    std::string expected =
        plan.source_hash() ? plan.source_hash()->str() : std::string();
    namesPlan = true;
    return hash == expected ||
           fail(absl::StrCat("is a trace of the plan with the source ",
                             quote(hash), ", this one's is ", quote(expected)));
  }

  bool number(double value) {
    for (const NumberKey &one : numberKeys) {
      if (!isAt(one.name, one.isArgument))
        continue;
      bool fits = value >= 0 && value <= longest &&
                  (!one.isWhole || std::floor(value) == value);
      if (!fits)
        return fail(absl::StrCat("event ", events.size(), ": \"", one.name,
                                 "\" is ", value, ", expected a ",
                                 one.isWhole ? "whole number" : "number",
                                 " from 0 to ", longest));
      event.*one.member = value;
    }
    return other("a number");
  }

  bool misfit(const std::string &what) {
    return fail(absl::StrCat("event ", events.size(), " is of ", what,
                             ", which the plan does not have: expected a trace "
                             "of this plan"));
  }

  bool accept() {
    if (event.ts < 0 || event.dur < 0 || event.pid < 0 || event.step < 0 ||
        event.instruction < 0)
      return fail(absl::StrCat("event ", events.size(),
                               " lacks one of pid, ts, dur, args.step and "
                               "args.instruction, which meshwork-run --trace "
                               "writes"));
    auto rank = static_cast<uint64_t>(event.pid);
    if (rank >= numRanks(plan))
      return misfit(absl::StrCat("rank ", rank));
    auto action = actions.find(rank, event.action);
    if (!action)
      return misfit(
          absl::StrCat("action ", quote(event.action), " of rank ", rank));
    auto instruction = static_cast<uint64_t>(event.instruction);
    if (!actions.isInstruction(rank, action->list, instruction, event.name,
                               event.cat))
      return misfit(absl::StrCat("instruction ", instruction, " of ",
                                 quote(event.action), ", ", event.cat, " ",
                                 quote(event.name)));
    events.push_back(
        {static_cast<uint64_t>(event.step), static_cast<uint32_t>(rank),
         action->list, action->microbatch, static_cast<uint32_t>(instruction),
         event.ts, event.ts + event.dur, std::min(event.wait, event.dur)});
    return true;
  }

  static constexpr size_t numKeys = 5;
  const plan::Plan &plan;
  TraceActions actions;
  std::array<std::string, numKeys> keys; // by depth
  RawEvent event;
  size_t depth = 0;
  bool inEvents = false, namesPlan = false;
};
} // namespace

absl::StatusOr<std::vector<TraceEvent>> readTrace(std::string_view text,
                                                  const plan::Plan &plan) {
  TraceHandler handler(plan);
  if (absl::Status status = parseJson(text, handler); !status.ok())
    return status;
  if (absl::Status status = handler.end(); !status.ok())
    return status;
  return std::move(handler.events);
}

} // namespace meshwork::explain
