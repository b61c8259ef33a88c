// A schedule.program as the tables of the plan: one to one.
#include "dialects/schedule/ProgramTables.h"

#include "dialects/mesh/Mesh.h"
#include "dialects/schedule/Views.h"
#include "dialects/transformer/Facts.h"
#include "dialects/transformer/FileForms.h"
#include "meshwork/Plan/Frame.h"
#include "meshwork/Plan/Instructions.h"
#include "meshwork/Text/Escape.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace meshwork::schedule {

static int32_t layerNumber(Operation *op) {
  return static_cast<int32_t>(transformer::layerOf(op).value_or(-1));
}

static std::unique_ptr<plan::CauseT> causeTable(mesh::CauseAttr cause) {
  auto entry = std::make_unique<plan::CauseT>();
  entry->value = cause.getValue().str();
  entry->user = cause.getUser().str();
  entry->reason = cause.getReason().str();
  for (StringAttr key : cause.getAnnotations())
    entry->annotations.push_back(key.str());
  return entry;
}

std::unique_ptr<plan::ProgramT> ProgramTables::build() {
  addAll();
  return std::move(table);
}

std::unique_ptr<plan::ProgramT> ProgramTables::buildWithWaits() {
  addAll();
  program.walk([&](WaitOp wait) {
    for (Value operand : wait.getOperands())
      view(operand);
  });
  return std::move(table);
}

std::unique_ptr<plan::ProgramT> ProgramTables::buildViews() {
  addBuffers();
  program.walk([&](InstructionOpInterface op) {
    for (OperandRange values : {op.getReads(), op.getWrites()})
      for (Value value : values)
        view(value);
  });
  return std::move(table);
}

void ProgramTables::addAll() {
  table->arena_bytes = program.getArenaBytes().value_or(0);
  table->host_bytes = program.getHostBytes().value_or(0);
  addBuffers();
  for (Operation &op : program.getBody().front())
    if (auto list = dyn_cast<ListOp>(op))
      addList(list);
    else
      addDeclaration(&op);
  table->actions = orderOf(program).actions;
  findLoss();
}

void ProgramTables::addBuffers() {
  for (auto buffer : program.getBody().getOps<BufferOp>()) {
    auto entry = std::make_unique<plan::BufferT>();
    entry->name = buffer.getName();
    entry->kind = static_cast<plan::BufferKind>(buffer.getKind());
    entry->offset = buffer.getOffset().value_or(0);
    entry->size_bytes = buffer.getSizeBytes();
    entry->persistent = buffer.getPersistent();
    entry->space = buffer.getOnHost() ? plan::Space::host : plan::Space::device;
    entry->copies = static_cast<uint32_t>(buffer.getCopies().value_or(1));
    buffers[buffer.getResult()] = table->buffers.size();
    table->buffers.push_back(std::move(entry));
  }
}

uint32_t ProgramTables::view(Value value) {
  if (!value)
    return plan::noView;
  auto [known, isNew] = numbers.try_emplace(value, 0);
  if (isNew)
    known->second = addView(value.getDefiningOp<ViewOp>());
  return known->second;
}

uint32_t ProgramTables::addView(ViewOp op) {
  auto [known, isNew] = said.try_emplace(
      SaidOfView(op.getBuffer(), op.getType(), op.getOffsetAttr(),
                 op.getShiftsAttr(), op.getAdvancesAttr(), op.getUpdatedAttr()),
      0);
  if (isNew)
    known->second = addSaid(op);
  return known->second;
}

uint32_t ProgramTables::addSaid(ViewOp op) {
  MemRefType type = op.getType();
  auto entry = std::make_unique<plan::ViewT>();
  int64_t unused;
  SmallVector<int64_t> strides;
  if (failed(type.getStridesAndOffset(strides, unused)))
    llvm_unreachable("verified by schedule.view");
  auto advances = op.getAdvances().value_or(ArrayRef<int64_t>());
  entry->buffer =
      buffers.try_emplace(op.getBuffer(), buffers.size()).first->second;
  entry->offset = op.getOffset();
  entry->dtype = *elementTypeOf(type.getElementType());
  entry->shape.assign(type.getShape().begin(), type.getShape().end());
  entry->strides.assign(strides.begin(), strides.end());
  if (op.getShifts())
    for (auto shift : op.getShifts()->getAsRange<ShiftAttr>()) {
      auto moved = std::make_unique<plan::ShiftT>();
      moved->axes = numbersOf(shift.getAxes());
      moved->bytes = shift.getBytes();
      moved->hop = static_cast<uint32_t>(shift.getHop());
      entry->shifts.push_back(std::move(moved));
    }
  std::vector<int64_t> key = {entry->buffer,
                              static_cast<int64_t>(entry->offset),
                              static_cast<int64_t>(entry->dtype)};
  key.insert(key.end(), entry->shape.begin(), entry->shape.end());
  key.push_back(-1);
  key.insert(key.end(), strides.begin(), strides.end());
  entry->advances.assign(advances.begin(), advances.end());
  key.push_back(-1);
  llvm::append_range(key, advances);
  entry->updated = op.getUpdated();
  key.push_back(entry->updated);
  for (const auto &shift : entry->shifts) {
    key.push_back(-1 - static_cast<int64_t>(shift->bytes));
    key.push_back(shift->hop);
    key.insert(key.end(), shift->axes.begin(), shift->axes.end());
  }
  auto [known, isNew] = views.try_emplace(key, views.size());
  if (isNew)
    table->views.push_back(std::move(entry));
  return known->second;
}

/// Of an axis that the mesh has not: no axis, which the check of a plan tells.
uint32_t ProgramTables::numberOf(StringRef axis) {
  auto found = axes.find(axis);
  return found == axes.end() ? UINT32_MAX : found->second;
}

std::string ProgramTables::nameOfBuffer(uint32_t number) const {
  for (auto [buffer, own] : buffers)
    if (own == number)
      return quote(buffer.getDefiningOp<BufferOp>().getName().str());
  return "";
}

std::vector<uint32_t> ProgramTables::numbersOf(ArrayAttr names) {
  std::vector<uint32_t> numbers;
  for (StringRef axis : names.getAsValueRange<StringAttr>())
    numbers.push_back(numberOf(axis));
  return numbers;
}

/// Layouts only where one is not of blocks.
void ProgramTables::addSplit(mesh::DimShardingAttr split,
                             std::vector<uint32_t> &to,
                             std::vector<plan::Layout> &layouts) {
  for (StringAttr axis : split.getAxes()) {
    to.push_back(numberOf(axis.getValue()));
    if (!split.isOfBlocks())
      layouts.push_back(split.layoutOf(axis));
  }
}

std::unique_ptr<plan::ShardedT> ProgramTables::sharded(Value value,
                                                       Attribute sharding) {
  auto entry = std::make_unique<plan::ShardedT>();
  entry->view = view(value);
  if (auto split = dyn_cast_or_null<mesh::ShardingAttr>(sharding))
    for (mesh::DimShardingAttr dim : split.getDims()) {
      auto list = std::make_unique<plan::AxisListT>();
      addSplit(dim, list->axes, list->layouts);
      entry->dims.push_back(std::move(list));
    }
  return entry;
}

std::unique_ptr<plan::StateT> ProgramTables::stateOf(StateAttr state,
                                                     Value view) {
  auto entry = std::make_unique<plan::StateT>();
  entry->name = state.getName().str();
  entry->role = static_cast<plan::StateRole>(state.getRole());
  entry->part = sharded(view, state.getSharding());
  entry->part->is_number = state.getRole() == StateRole::optimizer &&
                           cast<MemRefType>(view.getType()).getRank() == 0;
  if (state.getInitial())
    entry->initial = static_cast<float>(state.getInitial().getValueAsDouble());
  return entry;
}

std::unique_ptr<plan::InputT> ProgramTables::input(InputOp op) {
  auto entry = std::make_unique<plan::InputT>();
  entry->kind = static_cast<plan::InputKind>(op.getKind());
  entry->view = view(op.getView());
  if (op.getSplitAttr())
    addSplit(op.getSplitAttr(), entry->axes, entry->layouts);
  setNumber(entry->size, op.getSize());
  setNumber(entry->hop, op.getHop());
  if (op.getBase())
    entry->base = op.getBase()->convertToFloat();
  return entry;
}

std::unique_ptr<plan::ResultT> ProgramTables::result(ResultOp op) {
  auto entry = std::make_unique<plan::ResultT>();
  entry->kind = static_cast<plan::ResultKind>(op.getKind());
  entry->view = view(op.getView());
  entry->name = op.getName().value_or("").str();
  return entry;
}

static std::vector<std::unique_ptr<plan::FilePieceT>>
filePieces(Attribute files, ArrayRef<int64_t> shape) {
  std::vector<std::unique_ptr<plan::FilePieceT>> pieces;
  for (plan::FilePieceT &piece :
       transformer::formOf(cast<ArrayAttr>(files), shape))
    pieces.push_back(std::make_unique<plan::FilePieceT>(std::move(piece)));
  return pieces;
}

static void addFiles(ParameterOp op, plan::ParameterT &to) {
  if (ArrayAttr files = op.getFilesAttr())
    to.files = filePieces(files, op.getShape());
  if (ArrayAttr others = op.getOtherFilesAttr())
    for (Attribute other : others) {
      to.other_files.push_back(std::make_unique<plan::OtherFilesT>());
      to.other_files.back()->pieces = filePieces(other, op.getShape());
    }
}

void ProgramTables::addDeclaration(Operation *op) {
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](InputOp op) { table->inputs.push_back(input(op)); })
      .Case([&](ResultOp op) { table->results.push_back(result(op)); })
      .Case([&](ParameterOp op) {
        auto entry = std::make_unique<plan::ParameterT>();
        auto init = cast<transformer::InitAttr>(op.getInit());
        entry->name = op.getName();
        entry->file_shape.assign(op.getFileShape().begin(),
                                 op.getFileShape().end());
        entry->init = static_cast<plan::InitKind>(init.getKind());
        entry->init_a = static_cast<float>(init.getA().getValueAsDouble());
        entry->init_b = static_cast<float>(init.getB().getValueAsDouble());
        entry->shape.assign(op.getShape().begin(), op.getShape().end());
        for (auto [state, view] : llvm::zip_equal(
                 op.getStates().getAsRange<StateAttr>(), op.getViews()))
          entry->states.push_back(stateOf(state, view));
        entry->layer = layerNumber(op);
        addFiles(op, *entry);
        table->parameters.push_back(std::move(entry));
      });
}

namespace {
/// Sets fields of the plan's tables from what an op's accessors return.
struct FieldSetter {
  ProgramTables &tables;
  const KernelNumbers &kernels;

  void operator()(uint32_t &field, Value view) { field = tables.view(view); }
  void operator()(uint32_t &field, StringRef kernel) {
    field = kernels.ofLaunch.lookup(kernel);
  }
  void operator()(uint32_t &field, AxisName axis) {
    field = tables.numberOf(axis.name);
  }
  template <typename From>
    requires(std::is_arithmetic_v<From> || std::is_enum_v<From>)
  void operator()(auto &field, From value) {
    tables.setNumber(field, value);
  }
  void operator()(float &field, const llvm::APFloat &value) {
    field = static_cast<float>(value.convertToDouble());
  }
  void operator()(std::string &field, StringRef text) { field = text.str(); }
  void operator()(std::vector<uint32_t> &field, OperandRange views) {
    for (Value view : views)
      field.push_back(tables.view(view));
  }
  void operator()(std::vector<uint32_t> &field, ArrayAttr axes) {
    field = tables.numbersOf(axes);
  }
  template <typename To, typename From>
  void operator()(std::vector<To> &field, ArrayRef<From> numbers) {
    field.assign(numbers.begin(), numbers.end());
  }
  void operator()(std::unique_ptr<plan::CauseT> &field, mesh::CauseAttr cause) {
    field = causeTable(cause);
  }
  void operator()(std::unique_ptr<plan::DropoutT> &field,
                  const transformer::AttentionPart &part) {
    double rate = part.terms.getRate().convertToDouble();
    if (rate == 0)
      return;
    field = std::make_unique<plan::DropoutT>();
    field->stream = part.terms.getStream();
    field->threshold = static_cast<uint32_t>(rate * 4294967296.0);
    field->keep_scale = static_cast<float>(1.0 / (1.0 - rate));
    field->random = tables.view(part.random[0]);
    if (part.random.size() > 1)
      field->first_head = tables.view(part.random[1]);
    field->heads = part.terms.getTotalHeads();
  }
  void operator()(std::unique_ptr<plan::AttentionPartT> &field,
                  const transformer::AttentionPart &part) {
    field = std::make_unique<plan::AttentionPartT>();
    (*this)(field->scale, part.terms.getScale());
    field->causal = part.terms.getCausal();
    field->window = part.terms.getWindow();
    (*this)(field->dropout, part);
    field->documents = tables.view(part.documents);
    field->positions = tables.view(part.positions);
    field->key_positions = tables.view(part.keys);
    field->total_keys = part.terms.getTotalKeys();
    (*this)(field->cap, part.terms.getCap());
  }
  void operator()(std::vector<std::unique_ptr<plan::TransferT>> &field,
                  ArrayRef<Transfer> parts) {
    for (const Transfer &part : parts) {
      field.push_back(std::make_unique<plan::TransferT>());
      field.back()->src = tables.view(part.src);
      field.back()->dst = tables.view(part.dst);
      tables.setNumber(field.back()->dim, part.dim);
      tables.setNumber(field.back()->to_dim, part.toDim);
    }
  }
};
} // namespace

plan::OperationUnion ProgramTables::operation(Operation *op) {
  plan::OperationUnion result;
  FieldSetter set{*this, kernels};
#define MESHWORK_WRITE(Kind)                                                   \
  if (auto from = dyn_cast<Kind##Op>(op)) {                                    \
    plan::Kind##T table;                                                       \
    plan::setFields(table, from, set);                                         \
    result.Set(std::move(table));                                              \
  }
  MESHWORK_PLAN_INSTRUCTIONS(MESHWORK_WRITE)
#undef MESHWORK_WRITE
  return result;
}

std::unique_ptr<plan::InstructionT>
ProgramTables::instruction(InstructionOpInterface op) {
  auto entry = std::make_unique<plan::InstructionT>();
  entry->name = op.getSource();
  entry->flops = op.getFlops();
  entry->bytes = op.getBytes();
  entry->layer = layerNumber(op);
  entry->op = operation(op);
  setNumber(entry->channel, op.startsOn());
  if (auto own = kernels.ofInstruction.find(op);
      own != kernels.ofInstruction.end())
    entry->kernels.assign(own->second.begin(), own->second.end());
  return entry;
}

void ProgramTables::addList(ListOp list) {
  auto entry = std::make_unique<plan::ListT>();
  entry->kind = static_cast<plan::ListKind>(list.getKind());
  entry->stage = static_cast<uint32_t>(list.getStage());
  for (Operation *op : instructionsOf(list))
    entry->instructions.push_back(
        instruction(cast<InstructionOpInterface>(op)));
  table->lists.push_back(std::move(entry));
}

/// The loss is reduced first in the update, and what is told beside it.
void ProgramTables::findLoss() {
  if (table->actions.empty())
    return;
  uint32_t known = 0, next = 0;
  if (ListOp update = listOf(program, ListKind::update))
    for (Operation &op : update.getBody().front()) {
      next += isInstruction(&op);
      auto collective = dyn_cast<CollectiveOp>(op);
      if (collective && collective.getMakesLoss())
        known = next;
    }
  table->loss_known = std::make_unique<plan::Moment>(
      static_cast<uint32_t>(table->actions.size() - 1), known);
}

llvm::StringMap<uint32_t> axisNumbers(Operation *op) {
  llvm::StringMap<uint32_t> numbers;
  if (mesh::MeshAttr mesh = mesh::meshOf(op))
    for (auto [i, name] : llvm::enumerate(mesh.getNames()))
      numbers[name.getValue()] = static_cast<uint32_t>(i);
  return numbers;
}

std::vector<std::unique_ptr<plan::AxisT>> meshTable(Operation *op) {
  std::vector<std::unique_ptr<plan::AxisT>> axes;
  if (mesh::MeshAttr mesh = mesh::meshOf(op))
    for (auto [name, size] :
         llvm::zip_equal(mesh.getNames(), mesh.getSizes())) {
      axes.push_back(std::make_unique<plan::AxisT>());
      axes.back()->name = name.str();
      axes.back()->size = size;
    }
  return axes;
}

PackedProgram::PackedProgram(ProgramOp program, Part part)
    : axes(axisNumbers(program)), tables(program, noKernels, axes) {
  plan::PlanT plan;
  plan.mesh = meshTable(program);
  plan.programs.push_back(part == Part::all ? tables.buildWithWaits()
                                            : tables.buildViews());
  flatbuffers::FlatBufferBuilder builder(1 << 16);
  builder.Finish(plan::Plan::Pack(builder, &plan));
  bytes = builder.Release();
}

} // namespace meshwork::schedule
