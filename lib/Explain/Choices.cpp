#include "lib/Explain/Choices.h"

#include "absl/strings/str_cat.h"
#include "lib/Explain/Format.h"
#include "lib/Plan/Views.h"
#include <nlohmann/json.hpp>

namespace meshwork::explain {
namespace {
using plan::orEmpty;

/// Those of the annotations that say why (Plan.fbs).
std::vector<const plan::Annotation *> choicesOf(const plan::Plan &plan) {
  std::vector<const plan::Annotation *> choices;
  if (plan.provenance())
    for (const plan::Annotation *one :
         orEmpty(plan.provenance()->annotations()))
      if (one->key() && one->key()->string_view() == "experts.exchange")
        choices.push_back(one);
  return choices;
}

std::string textOf(const flatbuffers::String *text) {
  return text ? text->str() : "";
}
} // namespace

std::string choicesText(const plan::Plan &plan) {
  std::string text;
  for (const plan::Annotation *choice : choicesOf(plan))
    absl::StrAppend(&text, "  chosen  ", clean(choice->key()), ": ",
                    clean(choice->value()), "; ", clean(choice->place()), "\n");
  return text;
}

nlohmann::ordered_json choicesJson(const plan::Plan &plan) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const plan::Annotation *choice : choicesOf(plan))
    list.push_back({{"key", textOf(choice->key())},
                    {"value", textOf(choice->value())},
                    {"why", textOf(choice->place())}});
  return list;
}

} // namespace meshwork::explain
