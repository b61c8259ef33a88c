// Lists and the table of actions: text, rules, and what passes ask of them.
#include "dialects/schedule/Schedule.h"
#include "lib/Schedules/ListKinds.h"
#include "mlir/IR/Builders.h"
#include <map>
#include <set>

using namespace mlir;

namespace meshwork::schedule {
static std::string textOfAction(ListKind kind, uint32_t stage,
                                uint32_t microbatch) {
  return plan::textOf({static_cast<plan::ListKind>(kind), stage}, microbatch);
}

namespace {
constexpr size_t numbersOfAction = 3; // kind, stage, microbatch

void append(SmallVectorImpl<int32_t> &table, ListKind kind, int64_t stage,
            int64_t microbatch) {
  table.append({static_cast<int32_t>(kind), static_cast<int32_t>(stage),
                static_cast<int32_t>(microbatch)});
}

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
      append(table, static_cast<ListKind>(kind), stage, microbatch);
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
  append(table, *kind, 0, 0);
  return success();
}
} // namespace

ParseResult parseActions(AsmParser &parser, DenseI32ArrayAttr &table) {
  SmallVector<int32_t> numbers;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
        return parseAction(parser, numbers);
      }))
    return failure();
  table = parser.getBuilder().getDenseI32ArrayAttr(numbers);
  return success();
}

void printActions(AsmPrinter &printer, DenseI32ArrayAttr table) {
  printer << '[';
  ArrayRef<int32_t> rest = table.asArrayRef();
  for (; rest.size() >= numbersOfAction;
       rest = rest.drop_front(numbersOfAction))
    printer << textOfAction(static_cast<ListKind>(rest[0]), rest[1], rest[2])
            << (rest.size() > numbersOfAction ? ", " : "");
  printer << ']';
}

void printActions(OpAsmPrinter &printer, Operation *, DenseI32ArrayAttr table) {
  printActions(printer, table);
}

void setActionTable(ModuleOp module, ArrayRef<schedules::Action> actions) {
  SmallVector<int32_t> table;
  for (const schedules::Action &action : actions)
    append(table, static_cast<ListKind>(schedules::listKindOf(action.kind)),
           action.stage, action.microbatch);
  MLIRContext *context = module.getContext();
  module->setAttr(
      actionTableName,
      ActionTableAttr::get(context, DenseI32ArrayAttr::get(context, table)));
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

/// Each list of a microbatch, once.
static void appendOneMicrobatch(ArrayRef<ListOp> lists,
                                SmallVectorImpl<int32_t> &table) {
  for (ListOp list : lists)
    if (plan::isOfMicrobatch(static_cast<plan::ListKind>(list.getKind())))
      append(table, list.getKind(), list.getStage(), 0);
}

/// Of `rows`, what runs one of `lists`: a transfer of nothing is no list.
static void appendActions(ArrayRef<int32_t> rows, ArrayRef<ListOp> lists,
                          SmallVectorImpl<int32_t> &table) {
  std::set<std::pair<int64_t, int64_t>> known; // kind and stage
  for (ListOp list : lists)
    known.emplace(static_cast<int64_t>(list.getKind()), list.getStage());
  for (; rows.size() >= numbersOfAction;
       rows = rows.drop_front(numbersOfAction))
    if (known.contains({rows[0], rows[1]}))
      llvm::append_range(table, rows.take_front(numbersOfAction));
}

void createActions(OpBuilder &builder, ProgramOp program,
                   ActionTableAttr rows) {
  SmallVector<int32_t> table;
  SmallVector<ListOp> lists = listsOf(program);
  if (listOf(program, ListKind::step))
    append(table, ListKind::step, 0, 0);
  if (rows)
    appendActions(rows.getTable(), lists, table);
  else
    appendOneMicrobatch(lists, table);
  for (ListOp list : lists)
    if (list.getKind() != ListKind::once && list.getKind() != ListKind::step &&
        !plan::isOfMicrobatch(static_cast<plan::ListKind>(list.getKind())))
      append(table, list.getKind(), list.getStage(), 0);
  builder.setInsertionPointToEnd(&program.getBody().front());
  ActionsOp::create(builder, program.getLoc(), table);
}

std::string nameOfTransfer(ListKind kind, int64_t stage) {
  bool isForward = kind == ListKind::send || kind == ListKind::recv,
       isSend = kind == ListKind::send || kind == ListKind::send_grad;
  return (Twine(isForward ? "activations " : "gradients ") +
          (isSend ? "to" : "from") + " stage " +
          Twine(isForward == isSend ? stage + 1 : stage - 1))
      .str();
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
