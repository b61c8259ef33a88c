#include "lib/Explain/Choices.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "lib/Explain/Format.h"
#include "lib/Plan/Views.h"
#include <nlohmann/json.hpp>

namespace meshwork::explain {
namespace {
using plan::orEmpty;
using Annotations = std::vector<const plan::Annotation *>;

/// One of the annotations that say why (Plan.fbs), and the ways that were
/// tried.
struct Choice {
  const plan::Annotation *made;
  Annotations tried;
};

std::string textOf(const flatbuffers::String *text) {
  return text ? text->str() : "";
}

std::vector<Choice> choicesOf(const plan::Plan &plan) {
  std::vector<Choice> choices;
  if (!plan.provenance())
    return choices;
  for (const plan::Annotation *one :
       orEmpty(plan.provenance()->annotations())) {
    std::string key = textOf(one->key());
    if (key == "experts.exchange")
      choices.push_back({one, {}});
    else if (key == "experts.exchange.tried" && !choices.empty())
      choices.back().tried.push_back(one);
  }
  return choices;
}

/// Null where the plan does not say it as a number.
nlohmann::ordered_json numberOf(const flatbuffers::String *text) {
  double number = 0;
  return absl::SimpleAtod(textOf(text), &number)
             ? nlohmann::ordered_json(number)
             : nlohmann::ordered_json();
}

nlohmann::ordered_json stepMs(const Annotations &tried) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const plan::Annotation *one : tried)
    object[textOf(one->value())] = numberOf(one->place());
  return object;
}
} // namespace

std::string choicesText(const plan::Plan &plan) {
  std::string text;
  for (const Choice &choice : choicesOf(plan))
    absl::StrAppend(&text, "  chosen  ", clean(choice.made->key()), ": ",
                    clean(choice.made->value()), "; ",
                    clean(choice.made->place()), "\n");
  return text;
}

nlohmann::ordered_json choicesJson(const plan::Plan &plan) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Choice &choice : choicesOf(plan))
    list.push_back({{"key", textOf(choice.made->key())},
                    {"value", textOf(choice.made->value())},
                    {"why", textOf(choice.made->place())},
                    {"step_ms", stepMs(choice.tried)}});
  return list;
}

} // namespace meshwork::explain
