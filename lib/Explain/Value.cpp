// Which value is asked for, and what it is made of.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "lib/Explain/Explain.h"
#include "lib/Explain/Format.h"
#include "lib/Explain/Names.h"
#include "lib/Explain/Story.h"
#include "lib/Explain/Why.h"
#include "lib/Plan/Copies.h"
#include "lib/Plan/FileForms.h"
#include "lib/Plan/Shards.h"
#include "meshwork/Text/Counted.h"
#include <algorithm>
#include <nlohmann/json.hpp>

namespace meshwork::explain {
using plan::orEmpty;
using plan::ViewInfo;
using plan::viewOf;
using Json = nlohmann::ordered_json;

namespace {
std::string initText(const plan::Parameter &p) {
  switch (p.init()) {
  case plan::InitKind::constant:
    return absl::StrFormat("%g", p.init_a());
  case plan::InitKind::normal:
    return absl::StrFormat("normal of mean %g and standard deviation %g",
                           p.init_a(), p.init_b());
  case plan::InitKind::uniform:
    return absl::StrFormat("uniform from %g to %g", p.init_a(), p.init_b());
  }
  return "-";
}
} // namespace

/// "dim 0 over dp, tp" of each dim that is split.
std::string Story::splitOf(const plan::Sharded *sharded) const {
  std::string text;
  uint64_t shares = 1;
  if (!sharded)
    return text;
  const auto &dims = orEmpty(sharded->dims());
  for (uint32_t d = 0; d < dims.size(); ++d) {
    const auto &axes = orEmpty(dims.Get(d)->axes());
    if (axes.size() == 0)
      continue;
    std::string layout; // of the major axes, which alone may have one
    for (plan::Layout one : orEmpty(dims.Get(d)->layouts()))
      layout = std::max(layout, layout::suffixOf(one));
    absl::StrAppend(&text, text.empty() ? "split: " : ", ", "dim ", d, " over ",
                    axesText(plan, &axes), layout);
    for (uint32_t axis : axes)
      shares *= plan.mesh()->Get(axis)->size();
  }
  return text.empty() ? text
                      : absl::StrCat(text, "; every rank holds one of ",
                                     counted(shares, "part"));
}

void Story::addPart(const std::string &role, const plan::Sharded *sharded) {
  const ViewInfo &info = views[viewOf(sharded)];
  for (Part &part : parts)
    if (part.buffer == info.buffer && part.begin == info.offset) {
      absl::StrAppend(&part.role, ", ",
                      role); // f32 training: the weight is the master
      return;
    }
  parts.push_back({role, info.buffer, info.offset, info.offset + info.spanBytes,
                   typeText(info.dtype, info.shape), splitOf(sharded)});
}

namespace {
/// "[64,16]", of several tensors "a.0.w to a.7.w [64,16]".
std::string filesText(const plan::Parameter &p) {
  std::vector<std::string> texts;
  for (const plan::FilePieceT &piece : plan::writtenForm(p)) {
    bool isNamed = orEmpty(p.files()).size() > 0;
    texts.push_back(absl::StrCat(isNamed ? clean(plan::namesText(piece)) + " ["
                                         : std::string("["),
                                 absl::StrJoin(piece.shape, ","), "]"));
  }
  return absl::StrJoin(texts, ", ");
}
} // namespace

void Story::addParameter(const plan::Parameter &p) {
  uint64_t elements = 1;
  for (int64_t size : orEmpty(p.shape()))
    elements *= static_cast<uint64_t>(size);
  head = absl::StrCat(clean(p.name()), ": a parameter, ", filesText(p),
                      " in files, ", counted(elements, "element"),
                      "\n  starts as ", initText(p), "\n");
  for (const plan::State *state : orEmpty(p.states()))
    addPart(absl::StrReplaceAll(state->name()->str(), {{"_", " "}}),
            state->part());
}

void Story::addBuffer(uint32_t index) {
  const plan::Buffer &buffer = *program.buffers()->Get(index);
  head = absl::StrCat(clean(buffer.name()), ": a buffer of ",
                      exactBytesText(plan::bytesOfCopy(buffer)));
  if (buffer.copies() > 1)
    absl::StrAppend(&head, ", ", counted(buffer.copies(), "copy"),
                    " for microbatches under way at once, ",
                    exactBytesText(buffer.size_bytes()), " in all");
  head += "\n";
  std::vector<std::string> types; // It may be seen in several shapes.
  for (const ViewInfo &view : views)
    if (view.buffer == index) {
      std::string type = typeText(view.dtype, view.shape);
      if (std::find(types.begin(), types.end(), type) == types.end())
        types.push_back(std::move(type));
    }
  parts.push_back({"", index, 0, buffer.size_bytes(),
                   types.empty() ? "-" : absl::StrJoin(types, " "), ""});
}

namespace {
bool isCalled(const flatbuffers::String *found, const std::string &name) {
  return found && std::string_view(found->c_str(), found->size()) == name;
}

/// The story of `name` in one program; "" when it is not there.
absl::StatusOr<std::string> tell(const plan::Plan &plan,
                                 const plan::Program &program,
                                 const std::string &name) {
  auto views = plan::decodeViews(plan, program);
  if (!views.ok())
    return views.status();
  Story story(plan, program, *std::move(views));
  for (const plan::Parameter *parameter : orEmpty(program.parameters()))
    if (isCalled(parameter->name(), name)) {
      story.addParameter(*parameter);
      return story.tell();
    }
  const auto &buffers = orEmpty(program.buffers());
  for (uint32_t i = 0; i < buffers.size(); ++i)
    if (isCalled(buffers.Get(i)->name(), name)) {
      story.addBuffer(i);
      return story.tell();
    }
  return "";
}
} // namespace

namespace {
/// Of a pattern: more fill no screen that anyone reads.
constexpr size_t mostTold = 16;

Json jsonOf(const Why &why, const std::string &name) {
  Json object{{"name", name}, {"values", Json::array()}};
  for (uint32_t place : why.about(name))
    object["values"].push_back(why.json(place));
  return object;
}

absl::StatusOr<std::string> textOf(const plan::Plan &plan, const Why &why,
                                   const std::string &name) {
  std::string text;
  for (uint32_t i = 0; i < plan.programs()->size(); ++i) {
    absl::StatusOr<std::string> story =
        tell(plan, *plan.programs()->Get(i), name);
    if (!story.ok())
      return story.status();
    if (!story->empty() && plan.programs()->size() > 1)
      absl::StrAppend(&text, text.empty() ? "" : "\n", "== Program ", i, ", ",
                      ranksText(plan, i), "\n");
    text += *story;
  }
  if (text.empty())
    text =
        absl::StrCat(clean(name), ": a value of the step on whole tensors\n");
  for (uint32_t place : why.about(name))
    text += why.text(place);
  return text;
}
} // namespace

absl::StatusOr<std::string> valueJson(const plan::Plan &plan,
                                      std::string_view query) {
  absl::StatusOr<std::vector<std::string>> names = findNames(plan, query);
  if (!names.ok())
    return names.status();
  Why why(plan);
  Json object;
  if (names->size() == 1)
    object = jsonOf(why, names->front());
  else
    for (const std::string &name : *names)
      object["matches"].push_back(jsonOf(why, name));
  return object.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::StatusOr<std::string> value(const plan::Plan &plan,
                                  std::string_view query) {
  absl::StatusOr<std::vector<std::string>> names = findNames(plan, query);
  if (!names.ok())
    return names.status();
  Why why(plan);
  std::string text;
  for (size_t i = 0; i < std::min(names->size(), mostTold); ++i) {
    absl::StatusOr<std::string> one = textOf(plan, why, (*names)[i]);
    if (!one.ok())
      return one.status();
    absl::StrAppend(&text, text.empty() ? "" : "\n", *one);
  }
  if (names->size() > mostTold)
    absl::StrAppend(&text, "\nand ", names->size() - mostTold,
                    " more that match ", quote(query),
                    ": a narrower pattern tells them, --json all\n");
  return text;
}

} // namespace meshwork::explain
