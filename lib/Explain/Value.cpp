// The story of one value: where it lies, how it is split, what moves it, who uses it.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "lib/Explain/Collectives.h"
#include "lib/Explain/Explain.h"
#include "lib/Explain/Format.h"
#include "lib/Explain/Memory.h"
#include "lib/Explain/Names.h"
#include "runtime/core/Operands.h"
#include "runtime/core/Views.h"
#include <algorithm>

namespace meshwork::explain {
namespace {
using runtime::orEmpty;
using runtime::ViewInfo;

/// Bytes of a buffer that belong to the value, under the name of what they are.
struct Part {
  std::string role; // "weight", "gradient"; "" for a buffer
  uint32_t buffer;
  uint64_t begin, end; // in the buffer
  std::string type;    // "f32[4,8]"
};

/// One value in one program.
class Story {
public:
  Story(const plan::Plan &plan, const plan::Program &program, std::vector<ViewInfo> views)
      : plan(plan), program(program), listing(plan, program), views(std::move(views)) {}

  void addParameter(const plan::Parameter &parameter);
  void addBuffer(uint32_t index);
  std::string tell() const {
    return absl::StrCat(head, places(), "\nHow it is split\n", split(), moves(), uses());
  }

private:
  void addPart(const char *role, uint32_t view);
  const Part *partOf(uint32_t view) const;
  std::string places() const;
  std::string split() const;
  std::string moves() const;
  std::string uses() const;
  std::string splitOf(plan::BufferKind kind) const;

  const plan::Plan &plan;
  const plan::Program &program;
  Listing listing;
  std::vector<ViewInfo> views;
  std::string head;
  std::vector<Part> parts;
};

std::string lifeText(const Listing &listing, const plan::Plan &plan, const plan::Buffer &buffer) {
  if (buffer.persistent())
    return "always";
  Life life = lifeOf(listing, plan, buffer);
  return absl::StrCat(life.first, " to ", life.last);
}

std::string initText(const plan::Parameter &p) {
  switch (p.init()) {
  case plan::InitKind::constant:
    return absl::StrFormat("%g", p.init_a());
  case plan::InitKind::normal:
    return absl::StrFormat("normal of mean %g and standard deviation %g", p.init_a(), p.init_b());
  case plan::InitKind::uniform:
    return absl::StrFormat("uniform from %g to %g", p.init_a(), p.init_b());
  }
  return "-";
}

void Story::addPart(const char *role, uint32_t view) {
  if (view >= views.size()) // noView: an optimizer without moments
    return;
  const ViewInfo &info = views[view];
  for (Part &part : parts)
    if (part.buffer == info.buffer && part.begin == info.offset) {
      absl::StrAppend(&part.role, ", ", role); // f32 training: the weight is the master
      return;
    }
  parts.push_back({role, info.buffer, info.offset, info.offset + info.spanBytes,
                   typeText(info.dtype, info.shape)});
}

void Story::addParameter(const plan::Parameter &p) {
  uint64_t elements = 1;
  std::string shape;
  for (int64_t size : orEmpty(p.file_shape())) {
    elements *= static_cast<uint64_t>(size);
    absl::StrAppend(&shape, shape.empty() ? "" : ",", size);
  }
  head = absl::StrCat(clean(p.name()), ": a parameter, [", shape, "] in files, ", elements,
                      " elements\n  starts as ", initText(p), "\n");
  addPart("weight", p.weight());
  addPart("master", p.master());
  addPart("first moment", p.first_moment());
  addPart("second moment", p.second_moment());
  addPart("gradient", p.gradient());
}

void Story::addBuffer(uint32_t index) {
  const plan::Buffer &buffer = *program.buffers()->Get(index);
  head = absl::StrCat(clean(buffer.name()), ": a buffer of ", buffer.size_bytes(), " bytes\n");
  std::vector<std::string> types; // It may be seen in several shapes.
  for (const ViewInfo &view : views)
    if (view.buffer == index) {
      std::string type = typeText(view.dtype, view.shape);
      if (std::find(types.begin(), types.end(), type) == types.end())
        types.push_back(std::move(type));
    }
  parts.push_back({"", index, 0, buffer.size_bytes(), types.empty() ? "-" : absl::StrJoin(types, " ")});
}

const Part *Story::partOf(uint32_t view) const {
  const ViewInfo &info = views[view];
  for (const Part &part : parts)
    if (part.buffer == info.buffer && info.offset < part.end && part.begin < info.offset + info.spanBytes)
      return &part;
  return nullptr;
}

std::string Story::places() const {
  Table table({"part", "type", ">bytes", "kind", "in the arena", "lives"});
  for (const Part &part : parts) {
    const plan::Buffer &buffer = *program.buffers()->Get(part.buffer);
    uint64_t at = buffer.offset() + part.begin;
    table.add({part.role.empty() ? "buffer" : part.role, part.type, bytesText(part.end - part.begin),
               plan::EnumNameBufferKind(buffer.kind()),
               absl::StrCat(at, " to ", buffer.offset() + part.end), lifeText(listing, plan, buffer)});
  }
  return absl::StrCat("\nWhere it lies on each rank\n", table.render());
}

std::string Story::splitOf(plan::BufferKind kind) const {
  uint64_t shares = 1;
  for (uint32_t axis : orEmpty(plan.batch_axes()))
    shares *= plan.mesh()->Get(axis)->size();
  std::string axes = axesText(plan, plan.batch_axes());
  switch (kind) {
  case plan::BufferKind::weights:
  case plan::BufferKind::optimizer:
  case plan::BufferKind::constants:
    return "replicated: every rank holds all of it, with the same bits";
  case plan::BufferKind::gradients:
    return shares == 1 ? "whole: the batch is not split"
                       : absl::StrCat("partial over ", axes, ": a sum over the rank's own 1/", shares,
                                      " of the batch, until a collective adds them up");
  case plan::BufferKind::results:
    return "partial until a collective of the update adds it up, then the same on every rank";
  default:
    return shares == 1 ? "whole: the batch is not split"
                       : absl::StrCat("split over ", axes, ": every rank has its own ", plan.micro_batch(),
                                      " sequences of each microbatch");
  }
}

std::string Story::split() const {
  if (numRanks(plan) == 1)
    return "  not at all: there is one rank\n";
  std::string text;
  for (const Part &part : parts)
    absl::StrAppend(&text, "  ", part.role, part.role.empty() ? "" : ": ",
                    splitOf(program.buffers()->Get(part.buffer)->kind()), "\n");
  return text;
}

std::string Story::moves() const {
  Table table({">#", "collective", "axis", "phase", "part", ">bucket", "cause"});
  for (uint64_t i = 0; i < listing.size(); ++i) {
    const plan::Collective *op = listing[i].op_as_Collective();
    if (!op)
      continue;
    for (uint32_t view : orEmpty(op->buffers()))
      if (const Part *part = partOf(view)) {
        table.add({absl::StrCat(i), operationKind(listing[i]), axesText(plan, op->axes()),
                   listing.phaseOf(i).name, part->role.empty() ? "all" : part->role,
                   absl::StrCat(op->buffers()->size(), op->buffers()->size() == 1 ? " view, " : " views, ", bytesText(bucketBytes(program, *op))),
                   clean(op->cause())});
        break;
      }
  }
  return table.empty() ? "\nNo collective touches it.\n"
                       : absl::StrCat("\nWhat moves it between ranks, and why\n", table.render());
}

std::string Story::uses() const {
  constexpr uint64_t shown = 50;
  Table table({">#", "phase", "instruction", "operation", "how"});
  uint64_t count = 0;
  for (uint64_t i = 0; i < listing.size(); ++i) {
    std::string how;
    runtime::forEachOperand(listing[i], [&](const runtime::Operand &operand) {
      if (const Part *part = partOf(operand.view))
        absl::StrAppend(&how, how.empty() ? "" : "; ",
                        operand.read && operand.written ? "updates" : operand.written ? "writes" : "reads",
                        part->role.empty() ? "" : " ", part->role, " as ", operand.role);
    });
    if (!how.empty() && count++ < shown)
      table.add({absl::StrCat(i), listing.phaseOf(i).name, clean(listing[i].name()),
                 operationText(plan, listing[i]), how});
  }
  std::string more = count > shown ? absl::StrCat("  and ", count - shown, " more\n") : std::string();
  return table.empty() ? "\nNo instruction uses it.\n"
                       : absl::StrCat("\nWho uses it\n", table.render(), more);
}

bool isCalled(const flatbuffers::String *found, const std::string &name) {
  return found && std::string_view(found->c_str(), found->size()) == name;
}

/// The story of `name` in one program; "" when it is not there.
absl::StatusOr<std::string> tell(const plan::Plan &plan, const plan::Program &program,
                                 const std::string &name) {
  auto views = runtime::decodeViews(program);
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

absl::StatusOr<std::string> value(const plan::Plan &plan, std::string_view query) {
  absl::StatusOr<std::string> name = findName(plan, query);
  if (!name.ok())
    return name.status();
  std::string text;
  for (uint32_t i = 0; i < plan.programs()->size(); ++i) {
    absl::StatusOr<std::string> story = tell(plan, *plan.programs()->Get(i), *name);
    if (!story.ok())
      return story.status();
    if (!story->empty() && plan.programs()->size() > 1)
      absl::StrAppend(&text, text.empty() ? "" : "\n", "== Program ", i, ", ", ranksText(plan, i), "\n");
    text += *story;
  }
  return text;
}

} // namespace meshwork::explain
