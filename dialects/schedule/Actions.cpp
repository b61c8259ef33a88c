// Lists and the table of actions: text, rules, and what passes ask of them.
#include "dialects/schedule/Schedule.h"
#include "mlir/IR/Builders.h"
#include <map>

using namespace mlir;

namespace meshwork::schedule {
static std::string textOfAction(ListKind kind, uint32_t stage,
                                uint32_t microbatch) {
  return plan::textOf({static_cast<plan::ListKind>(kind), stage}, microbatch);
}

namespace {
constexpr size_t numbersOfAction = 3; // kind, stage, microbatch

/// "F12" of "0F12", "SEND_F12": letters, then a number.
ParseResult parseOfStage(AsmParser &parser, int64_t stage,
                         SmallVectorImpl<int32_t> &table) {
  StringRef text;
  int32_t microbatch = 0;
  if (parser.parseKeyword(&text))
    return failure();
  for (plan::ListKind kind : plan::EnumValuesListKind()) {
    std::string first = plan::textOf({kind}, 0); // "0SEND_F0"
    StringRef letters = StringRef(first).drop_front().drop_back();
    if (plan::isOfMicrobatch(kind) && text.starts_with(letters) &&
        !text.drop_front(letters.size()).getAsInteger(10, microbatch)) {
      llvm::append_range(table, ArrayRef<int32_t>{static_cast<int32_t>(kind),
                                                  static_cast<int32_t>(stage),
                                                  microbatch});
      return success();
    }
  }
  return parser.emitError(parser.getCurrentLocation())
         << "unknown action '" << stage << text
         << "', expected one like 0F3, 0B3, step or update";
}

ParseResult parseAction(AsmParser &parser, SmallVectorImpl<int32_t> &table) {
  int32_t stage = 0;
  OptionalParseResult hasStage = parser.parseOptionalInteger(stage);
  if (hasStage.has_value())
    return failed(*hasStage) ? failure() : parseOfStage(parser, stage, table);
  StringRef name;
  if (parser.parseKeyword(&name))
    return failure();
  std::optional<ListKind> kind = symbolizeListKind(name);
  if (!kind)
    return parser.emitError(parser.getCurrentLocation())
           << "unknown action '" << name
           << "', expected one like 0F3, 0B3, step or update";
  llvm::append_range(table,
                     ArrayRef<int32_t>{static_cast<int32_t>(*kind), 0, 0});
  return success();
}
} // namespace

ParseResult parseActions(OpAsmParser &parser, DenseI32ArrayAttr &table) {
  SmallVector<int32_t> numbers;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
        return parseAction(parser, numbers);
      }))
    return failure();
  table = parser.getBuilder().getDenseI32ArrayAttr(numbers);
  return success();
}

void printActions(OpAsmPrinter &printer, Operation *, DenseI32ArrayAttr table) {
  printer << '[';
  ArrayRef<int32_t> rest = table.asArrayRef();
  for (; rest.size() >= numbersOfAction;
       rest = rest.drop_front(numbersOfAction))
    printer << textOfAction(static_cast<ListKind>(rest[0]), rest[1], rest[2])
            << (rest.size() > numbersOfAction ? ", " : "");
  printer << ']';
}

SmallVector<ListOp> listsOf(ProgramOp program) {
  return llvm::to_vector(program.getBody().getOps<ListOp>());
}

ListOp listOf(ProgramOp program, ListKind kind) {
  for (ListOp list : program.getBody().getOps<ListOp>())
    if (list.getKind() == kind)
      return list;
  return {};
}

Order orderOf(ProgramOp program) {
  Order order;
  std::map<std::pair<int32_t, int32_t>, uint32_t> numbers; // by kind and stage
  for (ListOp list : listsOf(program)) {
    auto kind = static_cast<int32_t>(list.getKind());
    auto stage = static_cast<int32_t>(list.getStage());
    numbers.try_emplace({kind, stage}, order.lists.size());
    order.lists.push_back({static_cast<plan::ListKind>(kind),
                           static_cast<uint32_t>(stage),
                           static_cast<uint32_t>(instructionsOf(list).size())});
  }
  for (ActionsOp actions : program.getBody().getOps<ActionsOp>()) {
    ArrayRef<int32_t> table = actions.getTable();
    for (; table.size() >= numbersOfAction;
         table = table.drop_front(numbersOfAction)) {
      auto list = numbers.find({table[0], table[1]});
      order.actions.emplace_back(
          list == numbers.end() ? UINT32_MAX : list->second, table[2]);
    }
  }
  return order;
}

void createActions(OpBuilder &builder, ProgramOp program,
                   ArrayRef<std::pair<ListOp, int64_t>> ofMicrobatches) {
  SmallVector<int32_t> table;
  auto add = [&](ListOp list, int64_t microbatch) {
    llvm::append_range(table,
                       ArrayRef<int32_t>{static_cast<int32_t>(list.getKind()),
                                         static_cast<int32_t>(list.getStage()),
                                         static_cast<int32_t>(microbatch)});
  };
  if (ListOp step = listOf(program, ListKind::step))
    add(step, 0);
  for (auto [list, microbatch] : ofMicrobatches)
    add(list, microbatch);
  for (ListOp list : listsOf(program))
    if (list.getKind() != ListKind::once && list.getKind() != ListKind::step &&
        !plan::isOfMicrobatch(static_cast<plan::ListKind>(list.getKind())))
      add(list, 0);
  builder.setInsertionPointToEnd(&program.getBody().front());
  ActionsOp::create(builder, program.getLoc(), table);
}

/// As many as the table names: it stands for them.
static uint64_t countMicrobatches(const Order &order) {
  uint64_t count = 0;
  for (const plan::Action &action : order.actions)
    count = std::max<uint64_t>(count, uint64_t{action.microbatch()} + 1);
  return count;
}

LogicalResult ProgramOp::verifyRegions() {
  auto tables = getBody().getOps<ActionsOp>();
  size_t count = std::distance(tables.begin(), tables.end());
  llvm::SmallDenseSet<std::pair<int32_t, int64_t>> known;
  for (ListOp list : listsOf(*this))
    if (!known.insert({static_cast<int32_t>(list.getKind()), list.getStage()})
             .second)
      return list.emitOpError("(C1) is the second of kind '")
             << stringifyListKind(list.getKind()) << "' and stage "
             << list.getStage() << ", expected one";
  if (count > 1)
    return emitOpError("(C1) has ")
           << count << " tables of actions, expected one";
  if (count == 0)
    return success();
  if ((*tables.begin()).getTable().size() % numbersOfAction != 0)
    return (*tables.begin()).emitOpError("(C1) has ")
           << (*tables.begin()).getTable().size()
           << " numbers, expected three for each action";
  Order order = orderOf(*this);
  std::string problem = plan::ActionTable::problem(order.lists, order.actions,
                                                   countMicrobatches(order));
  if (!problem.empty())
    return (*tables.begin()).emitOpError("(C1) ") << problem;
  return success();
}

} // namespace meshwork::schedule
