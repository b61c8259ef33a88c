#include "lib/Explain/Classes.h"
#include "absl/strings/str_cat.h"
#include "lib/Explain/Format.h"
#include "lib/Explain/Listing.h"
#include "lib/Plan/FileForms.h"
#include "lib/Plan/Operands.h"
#include "lib/Plan/Programs.h"
#include "lib/Plan/Shards.h"
#include "lib/Plan/Views.h"
#include "meshwork/Plan/Frame.h"

namespace meshwork::explain {
namespace {
using Json = nlohmann::ordered_json;
using plan::orEmpty;
using plan::ViewInfo;

std::string textOf(const flatbuffers::String *text) {
  return text ? text->str() : "";
}

/// Null for all: the list would be as long as the mesh is large.
Json ranksOf(const plan::Plan &plan, uint32_t index) {
  if (orEmpty(plan.program_numbers()).size() <= 1)
    return nullptr;
  Json ranks = Json::array();
  for (uint64_t rank = 0; rank < numRanks(plan); ++rank)
    if (plan::programOf(plan, rank) == index)
      ranks.push_back(rank);
  return ranks;
}

class Class {
public:
  Class(const plan::Plan &plan, const plan::Program &program,
        std::vector<ViewInfo> views)
      : plan(plan), program(program), views(std::move(views)), listing(program),
        lives(plan::livesOf(program, listing.table())) {}

  uint64_t numOperands() const {
    uint64_t count = 0;
    for (uint64_t i = 0; i < listing.size(); ++i)
      plan::forEachOperand(listing[i], [&](const plan::Operand &) { ++count; });
    return count;
  }

  Json json(uint32_t index) const {
    return {{"ranks", ranksOf(plan, index)},
            {"arena_bytes", program.arena_bytes()},
            {"host_bytes", program.host_bytes()},
            {"parameters", parameters()},
            {"buffers", buffers()},
            {"instructions", instructions()}};
  }

private:
  Json tensor(uint32_t view) const {
    if (view == plan::noView)
      return nullptr;
    const ViewInfo &info = views[view];
    return {{"buffer", info.buffer},
            {"offset_bytes", info.offset},
            {"type", typeText(info.dtype, info.shape)}};
  }

  static Json filesOf(const plan::Parameter &parameter) {
    Json list = Json::array();
    for (const plan::FilePieceT &piece : plan::writtenForm(parameter))
      list.push_back({{"first", plan::tensorName(piece, 0)},
                      {"count", plan::tensorsOf(piece)},
                      {"shape", piece.shape}});
    return list;
  }

  Json parameters() const {
    Json list = Json::array();
    for (const plan::Parameter *p : orEmpty(program.parameters())) {
      Json one = {
          {"name", textOf(p->name())},
          {"file_shape", std::vector<int64_t>(orEmpty(p->file_shape()).begin(),
                                              orEmpty(p->file_shape()).end())}};
      if (orEmpty(p->files()).size() > 0)
        one.emplace("files", filesOf(*p));
      for (const plan::State *state : orEmpty(p->states()))
        one.emplace(textOf(state->name()), tensor(plan::viewOf(state->part())));
      list.push_back(std::move(one));
    }
    return list;
  }

  Json buffers() const {
    Json list = Json::array();
    uint32_t index = 0;
    for (const plan::Buffer *buffer : orEmpty(program.buffers())) {
      Json life = nullptr;
      if (lives.isTouched(index) && !buffer->persistent() &&
          !lives.isAlways(index))
        life = {listing.numberOf(lives.firstTouch(index)),
                listing.numberOf(lives.lastTouch(index))};
      ++index;
      list.push_back({{"name", textOf(buffer->name())},
                      {"kind", plan::EnumNameBufferKind(buffer->kind())},
                      {"space", plan::EnumNameSpace(buffer->space())},
                      {"offset_bytes", buffer->offset()},
                      {"bytes", buffer->size_bytes()},
                      {"life", life}});
    }
    return list;
  }

  Json instructions() const {
    Json list = Json::array();
    for (uint64_t i = 0; i < listing.size(); ++i) {
      Json operands[2] = {Json::array(), Json::array()};
      plan::forEachOperand(listing[i], [&](const plan::Operand &o) {
        Json operand = tensor(o.view);
        operand["role"] = o.role;
        for (bool written : {false, true})
          if (written ? o.written : o.read)
            operands[written].push_back(operand);
      });
      list.push_back({{"name", textOf(listing[i].name())},
                      {"phase", listing.phaseOf(i).name},
                      {"operation", operationText(plan, listing[i])},
                      {"times", listing.mostOf(i)},
                      {"flops", listing[i].flops()},
                      {"bytes", listing[i].bytes()},
                      {"reads", std::move(operands[0])},
                      {"writes", std::move(operands[1])}});
    }
    return list;
  }

  const plan::Plan &plan;
  const plan::Program &program;
  std::vector<ViewInfo> views;
  Listing listing;
  plan::Lives lives;
};
} // namespace

absl::StatusOr<Json> rankClasses(const plan::Plan &plan) {
  constexpr uint64_t mostOperands = uint64_t{1} << 20;
  uint64_t operands = 0;
  Json list = Json::array();
  for (uint32_t i = 0; i < plan.programs()->size(); ++i) {
    const plan::Program &program = *plan.programs()->Get(i);
    auto views = plan::decodeViews(plan, program);
    if (!views.ok())
      return views.status();
    Class ranks(plan, program, *std::move(views));
    if ((operands += ranks.numOperands()) > mostOperands)
      return absl::ResourceExhaustedError(absl::StrCat(
          "its instructions have more than ", mostOperands,
          " operands in all, too many for one JSON object; `explain` with the "
          "name of a value tells what uses it"));
    list.push_back(ranks.json(i));
  }
  return list;
}

} // namespace meshwork::explain
