// From the notes of a plan to sentences, and to JSON.
#include "lib/Explain/Why.h"
#include "absl/strings/str_cat.h"
#include "lib/Explain/Format.h"
#include "lib/Plan/Views.h"
#include "meshwork/Plan/StateNames.h"
#include <nlohmann/json.hpp>
#include <set>

namespace meshwork::explain {
using Json = nlohmann::ordered_json;
using plan::orEmpty;

namespace {
template <typename Vector> auto at(const Vector *list, uint64_t index) {
  using Item = decltype(list->Get(0));
  return list && index < list->size() ? list->Get(index) : Item{};
}

std::string raw(const flatbuffers::String *text) {
  return text ? text->str() : std::string();
}

std::string axesOf(const plan::DimStory &dim) {
  std::string axes;
  for (const plan::DimCause *cause : orEmpty(dim.causes()))
    absl::StrAppend(&axes, axes.empty() ? "" : ", ", clean(cause->axis()));
  return axes;
}

std::string moveText(const plan::Move &move) {
  std::string text = absl::StrCat(
      "  ", clean(move.phase()), ": ", clean(move.reason()), "\n    ",
      clean(move.from()), " to ", clean(move.to()), "\n");
  for (const plan::MoveStep *step : orEmpty(move.steps()))
    absl::StrAppend(&text, "      ", clean(step->text()), ": ",
                    bytesText(step->bytes_sent()), " sent by a rank\n");
  return text;
}

Json moveJson(const plan::Move &move) {
  Json steps = Json::array();
  for (const plan::MoveStep *step : orEmpty(move.steps()))
    steps.push_back({{"step", raw(step->text())},
                     {"bytes_sent_per_rank", step->bytes_sent()}});
  return {{"phase", raw(move.phase())},
          {"from", raw(move.from())},
          {"to", raw(move.to())},
          {"reason", raw(move.reason())},
          {"steps", std::move(steps)}};
}
} // namespace

Why::Why(const plan::Plan &plan) : plan(plan), notes(plan.provenance()) {
  if (!notes || !notes->values())
    return;
  for (const plan::StoredValue *value : *notes->values())
    list.push_back(raw(at(notes->scopes(), value->scope())) +
                   raw(at(notes->leaves(), value->leaf())));
}

std::vector<uint32_t> Why::about(std::string_view name) const {
  std::set<std::string> names = {std::string(name),
                                 plan::stateName(name, plan::inputGradient)};
  for (const plan::Program *program : orEmpty(plan.programs()))
    for (const plan::Parameter *parameter : orEmpty(program->parameters()))
      if (raw(parameter->name()) == name)
        for (const plan::State *state : orEmpty(parameter->states()))
          for (std::string_view more :
               {std::string_view(), plan::ofMicrobatch, plan::afterUpdate})
            names.insert(
                plan::stateName(name, raw(state->name()).append(more)));
  std::vector<uint32_t> places;
  for (uint32_t i = 0; i < list.size(); ++i)
    // A new state lies as the state does; of interest is what moves it there.
    if (names.contains(list[i]) &&
        (list[i].find(plan::afterUpdate) == list[i].npos ||
         (story(i) && orEmpty(story(i)->moves()).size() > 0)))
      places.push_back(i);
  return places;
}

const plan::ValueStory *Why::story(uint32_t place) const {
  return place < list.size()
             ? at(notes->stories(), notes->values()->Get(place)->story())
             : nullptr;
}

const plan::Annotation *Why::annotation(const plan::DimCause &cause) const {
  return at(notes->annotations(), cause.annotation());
}

std::vector<Why::Link> Why::chain(uint32_t place,
                                  const plan::DimCause &first) const {
  constexpr size_t longest = 10000; // A file may hold a circle.
  std::vector<Link> links;
  for (const plan::DimCause *cause = &first; cause && links.size() < longest;) {
    links.push_back({cause, std::nullopt, ""});
    int64_t from = int64_t{place} - cause->back();
    if (annotation(*cause) || cause->back() == 0 || from < 0 ||
        from >= static_cast<int64_t>(list.size()))
      break;
    place = static_cast<uint32_t>(from);
    const plan::ValueStory *next = story(place);
    const plan::DimStory *dim = next ? at(next->dims(), cause->dim()) : nullptr;
    if (!dim)
      break;
    links.back().from = place;
    links.back().fromDim = raw(dim->name());
    std::string axis = raw(cause->axis());
    cause = nullptr;
    for (const plan::DimCause *one : orEmpty(dim->causes()))
      if (!cause && raw(one->axis()) == axis)
        cause = one;
  }
  return links;
}

std::string Why::linkText(const Link &link) const {
  if (const plan::Annotation *found = annotation(*link.cause))
    return absl::StrCat(clean(found->key()), " = ", clean(found->value()), " (",
                        clean(found->place()), ")");
  if (!link.from)
    return absl::StrCat(clean(link.cause->op()), ", of a value without notes");
  std::string factor = raw(link.cause->factor());
  return absl::StrCat("as ", clean(link.fromDim), " of ",
                      clean(list[*link.from]), ", through ",
                      clean(link.cause->op()),
                      factor.empty() || factor == link.fromDim
                          ? ""
                          : absl::StrCat(" along ", clean(factor)));
}

Json Why::linkJson(const Link &link) const {
  if (const plan::Annotation *found = annotation(*link.cause))
    return {{"annotation", raw(found->key())},
            {"value", raw(found->value())},
            {"place", raw(found->place())}};
  Json object = {{"op", raw(link.cause->op())},
                 {"factor", raw(link.cause->factor())}};
  if (link.from) {
    object["follows"] = list[*link.from];
    object["dim"] = link.fromDim;
  }
  return object;
}

/// ZeRO-3 keeps a weight in parts, and each use gathers it: dims and chains are
/// of the gathered one.
static bool isStoredInParts(const plan::ValueStory &value) {
  for (const plan::Move *move : orEmpty(value.moves()))
    if (raw(move->reason()).starts_with("is stored over"))
      return true;
  return false;
}

std::string Why::text(uint32_t place) const {
  const plan::ValueStory *found = story(place);
  if (!found)
    return "";
  std::string text = absl::StrCat("\nWhy ", clean(list[place]), " lies so",
                                  isStoredInParts(*found)
                                      ? " where it is computed with, and not "
                                        "as it is stored\n"
                                      : "\n");
  for (const plan::DimStory *dim : orEmpty(found->dims())) {
    std::string axes = axesOf(*dim);
    absl::StrAppend(&text, "  ", clean(dim->name()), ": ",
                    axes.empty() ? "not split" : "split over " + axes, "\n");
    for (const plan::DimCause *cause : orEmpty(dim->causes())) {
      absl::StrAppend(&text, "    ", clean(cause->axis()), ":\n");
      for (const Link &link : chain(place, *cause))
        absl::StrAppend(&text, "      ", linkText(link), "\n");
    }
  }
  if (orEmpty(found->moves()).size() > 0)
    absl::StrAppend(&text, "Moved\n");
  for (const plan::Move *move : orEmpty(found->moves()))
    text += moveText(*move);
  return text;
}

Json Why::json(uint32_t place) const {
  Json dims = Json::array(), moves = Json::array();
  const plan::ValueStory *found = story(place);
  if (!found)
    return nullptr;
  for (const plan::DimStory *dim : orEmpty(found->dims())) {
    Json axes = Json::array();
    for (const plan::DimCause *cause : orEmpty(dim->causes())) {
      Json links = Json::array();
      for (const Link &link : chain(place, *cause))
        links.push_back(linkJson(link));
      axes.push_back({{"axis", raw(cause->axis())}, {"chain", links}});
    }
    dims.push_back({{"dim", raw(dim->name())}, {"axes", std::move(axes)}});
  }
  for (const plan::Move *move : orEmpty(found->moves()))
    moves.push_back(moveJson(*move));
  return {{"name", list[place]}, {"dims", dims}, {"moves", moves}};
}

namespace {
/// [axis, annotation or null, op, factor, back, dim]
Json causeJson(const plan::DimCause &cause) {
  bool ends = cause.annotation() != UINT32_MAX;
  return Json::array({raw(cause.axis()),
                      ends ? Json(cause.annotation()) : Json(), raw(cause.op()),
                      raw(cause.factor()), cause.back(), cause.dim()});
}

Json storyJson(const plan::ValueStory &story) {
  Json dims = Json::array(), moves = Json::array();
  for (const plan::DimStory *dim : orEmpty(story.dims())) {
    Json causes = Json::array();
    for (const plan::DimCause *cause : orEmpty(dim->causes()))
      causes.push_back(causeJson(*cause));
    dims.push_back({{"dim", raw(dim->name())}, {"causes", std::move(causes)}});
  }
  for (const plan::Move *move : orEmpty(story.moves()))
    moves.push_back(moveJson(*move));
  return {{"dims", std::move(dims)}, {"moves", std::move(moves)}};
}

using Texts = flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>;
Json textsJson(const Texts *texts) {
  Json list = Json::array();
  for (const flatbuffers::String *text : orEmpty(texts))
    list.push_back(raw(text));
  return list;
}
} // namespace

Json Why::tables() const {
  Json annotations = Json::array(), stories = Json::array(),
       values = Json::array();
  if (!notes)
    return nullptr;
  for (const plan::Annotation *one : orEmpty(notes->annotations()))
    annotations.push_back({{"annotation", raw(one->key())},
                           {"value", raw(one->value())},
                           {"place", raw(one->place())}});
  for (const plan::ValueStory *one : orEmpty(notes->stories()))
    stories.push_back(storyJson(*one));
  if (notes->values())
    for (const plan::StoredValue *one : *notes->values())
      values.push_back(Json::array({one->scope(), one->leaf(), one->story()}));
  return {{"annotations", std::move(annotations)},
          {"scopes", textsJson(notes->scopes())},
          {"leaves", textsJson(notes->leaves())},
          {"stories", std::move(stories)},
          {"values", std::move(values)}};
}

} // namespace meshwork::explain
