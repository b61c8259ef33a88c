#include "lib/Plan/Evaluation.h"
#include "lib/Plan/Look.h"
#include "lib/Plan/Operands.h"
#include "lib/Plan/ProgramLives.h"
#include <algorithm>

namespace meshwork::plan {
namespace {

/// Goes through lists from their ends, and knows what those behind need. A
/// buffer stays needed in front of what writes it: that may be a part of it.
class Needs {
public:
  Needs(const Program &program, absl::Span<const ViewInfo> views)
      : program(program), views(views),
        needed(orEmpty(program.buffers()).size()) {
    for (const Result *result : orEmpty(program.results()))
      if (result->kind() == ResultKind::loss ||
          result->kind() == ResultKind::metric)
        need(result->view());
  }

  /// Which of the first `size` instructions of a list are kept.
  std::vector<bool> keep(uint32_t list, uint32_t size) {
    const Instructions &all = listOf(program, list);
    Repeats repeats = repeatsOf(program, list);
    std::vector<bool> kept(all.size());
    for (uint32_t end = std::min(size, all.size()); end > 0;) {
      std::vector<RepeatShape> around = repeats.around(end - 1);
      // The Repeat itself stands in front of what it repeats.
      uint32_t begin = around.empty() ? end - 1 : around.front().begin - 1;
      // What a turn leaves the next one may read.
      while (pass(all, begin, end, kept) && !around.empty()) {
      }
      end = begin;
    }
    if (isAnyOf(kept, 0, all.size())) // Whoever starts something waits for it.
      for (uint32_t i = 0; i < all.size(); ++i)
        kept[i] = kept[i] || all.Get(i)->op_as_Wait();
    return kept;
  }

private:
  void need(uint32_t view) {
    uint32_t buffer = views[view].buffer;
    grows |= !needed[buffer];
    needed[buffer] = true;
  }

  /// Whether more is needed than before.
  bool pass(const Instructions &all, uint32_t begin, uint32_t end,
            std::vector<bool> &kept) {
    grows = false;
    for (uint32_t i = end; i-- > begin;) {
      const Instruction &one = *all.Get(i);
      const Repeat *repeat = one.op_as_Repeat();
      kept[i] =
          repeat ? isAnyOf(kept, i + 1, repeat->instructions()) : isNeeded(one);
      if (kept[i])
        forEachOperand(one, [&](const Operand &operand) {
          if (operand.read)
            need(operand.view);
        });
    }
    return grows;
  }

  static bool isAnyOf(const std::vector<bool> &kept, uint32_t begin,
                      uint32_t count) {
    auto first = kept.begin() + begin;
    return std::find(first, first + count, true) != first + count;
  }

  bool isNeeded(const Instruction &one) const {
    bool found = one.op_as_Send() || one.op_as_Receive();
    forEachOperand(one, [&](const Operand &operand) {
      found |= operand.written && needed[views[operand.view].buffer];
    });
    return found;
  }

  const Program &program;
  absl::Span<const ViewInfo> views;
  std::vector<bool> needed; // by buffer
  bool grows = false;
};

/// In the order in which a microbatch and then a step ends with them.
std::vector<uint32_t> fromTheLast(const ActionTable &table) {
  std::vector<uint32_t> order;
  auto add = [&](bool isOfMicrobatches) {
    for (uint32_t list = static_cast<uint32_t>(table.lists().size());
         list-- > 0;) {
      ListKind kind = table.lists()[list].kind;
      if (kind != ListKind::once && list != table.lastList() &&
          isOfMicrobatch(kind) == isOfMicrobatches)
        order.push_back(list);
    }
  };
  add(true);
  add(false);
  return order;
}

bool goesBack(ListKind kind) {
  return kind == ListKind::send_grad || kind == ListKind::recv_grad;
}
} // namespace

Evaluation::Evaluation(std::vector<std::vector<bool>> given)
    : kept(std::move(given)) {
  for (const std::vector<bool> &list : kept)
    any.push_back(std::find(list.begin(), list.end(), true) != list.end());
}

Evaluation evaluationOf(const Program &program, const ActionTable &table,
                        absl::Span<const ViewInfo> views) {
  std::vector<std::vector<bool>> kept;
  for (const ListShape &list : table.lists())
    kept.emplace_back(list.size);
  if (table.actions().empty())
    return Evaluation(std::move(kept));
  Needs needs(program, views);
  kept[table.lastList()] =
      needs.keep(table.lastList(), lookPoint(program, views));
  for (uint32_t list : fromTheLast(table))
    if (!goesBack(table.lists()[list].kind))
      kept[list] = needs.keep(list, table.lists()[list].size);
  return Evaluation(std::move(kept));
}

} // namespace meshwork::plan
