// Where a value lies, how it is split, what moves it, who uses it.
#include "lib/Explain/Story.h"
#include "absl/strings/str_cat.h"
#include "lib/Explain/Collectives.h"
#include "lib/Explain/Format.h"
#include "lib/Plan/Operands.h"
#include "meshwork/Text/Counted.h"
#include <algorithm>

namespace meshwork::explain {
using plan::orEmpty;
using plan::ViewInfo;

std::string Story::lifeOf(uint32_t buffer) const {
  if (program.buffers()->Get(buffer)->persistent() || lives.isAlways(buffer))
    return "always";
  if (!lives.isTouched(buffer))
    return "never";
  return absl::StrCat(listing.numberOf(lives.firstTouch(buffer)), " to ",
                      listing.numberOf(lives.lastTouch(buffer)));
}

std::string Story::tell() const {
  return absl::StrCat(head, places(), "\nHow it is split\n", split(), moves(),
                      uses());
}

const Part *Story::partOf(uint32_t view) const {
  const ViewInfo &info = views[view];
  for (const Part &part : parts)
    if (part.buffer == info.buffer && info.offset < part.end &&
        part.begin < info.offset + info.spanBytes)
      return &part;
  return nullptr;
}

std::string Story::places() const {
  Table table({"part", "type", ">bytes", "kind", "in the arena", "lives"});
  for (const Part &part : parts) {
    const plan::Buffer &buffer = *program.buffers()->Get(part.buffer);
    uint64_t at = buffer.offset() + part.begin;
    table.add({part.role.empty() ? "buffer" : part.role, part.type,
               bytesText(part.end - part.begin),
               plan::EnumNameBufferKind(buffer.kind()),
               absl::StrCat(at, " to ", buffer.offset() + part.end),
               lifeOf(part.buffer)});
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
    return shares == 1
               ? "whole: the batch is not split"
               : absl::StrCat("partial over ", axes,
                              ": a sum over the rank's own 1/", shares,
                              " of the batch, until a collective adds them up");
  case plan::BufferKind::results:
    return "partial until a collective of the update adds it up, then the same "
           "on every rank";
  default:
    return shares == 1
               ? "whole: the batch is not split"
               : absl::StrCat("split over ", axes, ": every rank has its own ",
                              counted(plan.micro_batch(), "sequence"),
                              " of each microbatch");
  }
}

std::string Story::split() const {
  if (numRanks(plan) == 1)
    return "  not at all: there is one rank\n";
  std::string text;
  for (const Part &part : parts)
    absl::StrAppend(&text, "  ", part.role, part.role.empty() ? "" : ": ",
                    part.split.empty()
                        ? splitOf(program.buffers()->Get(part.buffer)->kind())
                        : part.split,
                    "\n");
  return text;
}

/// The part that a sum over ranks is added to, as each microbatch's gradient
/// is: the first instruction that reads the sum writes it.
const Part *Story::addedTo(uint64_t at, uint32_t sum) const {
  const ViewInfo &info = views[sum];
  const plan::Collective &op = *listing[at].op_as_Collective();
  if (op.kind() != plan::CollectiveKind::reduce_scatter &&
      op.kind() != plan::CollectiveKind::all_reduce)
    return nullptr;
  for (uint64_t i = at + 1; i < listing.size(); ++i) {
    bool isReader = false;
    const Part *part = nullptr;
    plan::forEachOperand(listing[i], [&](const plan::Operand &operand) {
      const ViewInfo &other = views[operand.view];
      isReader |= operand.read && other.buffer == info.buffer &&
                  other.offset < info.offset + info.spanBytes &&
                  info.offset < other.offset + other.spanBytes;
      if (operand.written && other.shape == info.shape && !part)
        part = partOf(operand.view);
    });
    if (isReader)
      return part;
  }
  return nullptr;
}

std::string Story::moves() const {
  Table table(
      {">#", "collective", "axis", "phase", "part", ">bucket", "cause"});
  for (uint64_t i = 0; i < listing.size(); ++i) {
    const plan::Collective *op = listing[i].op_as_Collective();
    if (!op)
      continue;
    for (const plan::Transfer *transfer : *op->parts()) {
      const Part *part = partOf(transfer->src());
      if (!part)
        part = partOf(transfer->dst());
      if (!part)
        part = addedTo(i, transfer->dst());
      if (part) {
        table.add(
            {absl::StrCat(i), operationKind(listing[i]),
             axesText(plan, op->axes()), listing.phaseOf(i).name,
             part->role.empty() ? "all" : part->role,
             absl::StrCat(op->parts()->size(),
                          op->parts()->size() == 1 ? " view, " : " views, ",
                          bytesText(bucketBytes(program, *op))),
             causeText(*op)});
        break;
      }
    }
  }
  return table.empty()
             ? "\nNo collective touches it.\n"
             : absl::StrCat("\nWhat moves it between ranks, and why\n",
                            table.render());
}

/// "reads weight as rhs; writes gradient": what an instruction does to the
/// value, "" when nothing.
std::string Story::useOf(const plan::Instruction &instruction) const {
  std::vector<std::pair<std::string_view, std::string>> verbs;
  plan::forEachOperand(instruction, [&](const plan::Operand &operand) {
    const Part *part = partOf(operand.view);
    if (!part)
      return;
    std::string_view verb = operand.read && operand.written ? "updates"
                            : operand.written               ? "writes"
                                                            : "reads";
    auto known = std::find_if(verbs.begin(), verbs.end(),
                              [&](auto &entry) { return entry.first == verb; });
    if (known == verbs.end())
      known = verbs.insert(verbs.end(), {verb, ""});
    absl::StrAppend(&known->second, known->second.empty() ? "" : ",",
                    part->role.empty() ? "" : " ", part->role);
    if (!instruction.op_as_Launch()) // Arguments of a kernel have no names.
      absl::StrAppend(&known->second, " as ", operand.role);
  });
  std::string text;
  for (const auto &[verb, what] : verbs)
    absl::StrAppend(&text, text.empty() ? "" : "; ", std::string(verb), what);
  return text;
}

std::string Story::uses() const {
  constexpr uint64_t shown = 50;
  Table table({">#", "phase", "instruction", "operation", "how"});
  uint64_t count = 0;
  for (uint64_t i = 0; i < listing.size(); ++i) {
    std::string how = useOf(listing[i]);
    if (!how.empty() && count++ < shown)
      table.add({absl::StrCat(i), listing.phaseOf(i).name,
                 clean(listing[i].name()), operationText(plan, listing[i]),
                 how});
  }
  std::string more = count > shown
                         ? absl::StrCat("  and ", count - shown, " more\n")
                         : std::string();
  return table.empty() ? "\nNo instruction uses it.\n"
                       : absl::StrCat("\nWho uses it\n", table.render(), more);
}

} // namespace meshwork::explain
