// A schedule.program as the tables of the plan: one to one.
#include "lib/Target/ProgramTables.h"

#include "dialects/mesh/Mesh.h"
#include "dialects/transformer/Facts.h"
#include "meshwork/Plan/Frame.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace meshwork::target {

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
  table = std::make_unique<plan::ProgramT>();
  table->arena_bytes = *program.getArenaBytes();
  addBuffers();
  for (Operation &op : program.getBody().front())
    if (auto list = dyn_cast<schedule::ListOp>(op))
      addList(list);
    else
      addDeclaration(&op);
  table->actions = schedule::orderOf(program).actions;
  findLoss();
  return std::move(table);
}

void ProgramTables::addBuffers() {
  for (auto buffer : program.getBody().getOps<schedule::BufferOp>()) {
    auto entry = std::make_unique<plan::BufferT>();
    entry->name = buffer.getName();
    entry->kind = static_cast<plan::BufferKind>(buffer.getKind());
    entry->offset = *buffer.getOffset();
    entry->size_bytes = buffer.getSizeBytes();
    entry->persistent = buffer.getPersistent();
    buffers[buffer.getResult()] = table->buffers.size();
    table->buffers.push_back(std::move(entry));
  }
}

static plan::DType typeOf(Type element) {
  return llvm::TypeSwitch<Type, plan::DType>(element)
      .Case([](Float32Type) { return plan::DType::f32; })
      .Case([](BFloat16Type) { return plan::DType::bf16; })
      .Case([](Float8E4M3FNType) { return plan::DType::e4m3; })
      .Case([](Float8E5M2Type) { return plan::DType::e5m2; })
      .Default([](Type) { return plan::DType::i32; });
}

uint32_t ProgramTables::view(Value value) {
  if (!value)
    return plan::noView;
  auto op = value.getDefiningOp<schedule::ViewOp>();
  auto type = cast<MemRefType>(value.getType());
  auto entry = std::make_unique<plan::ViewT>();
  int64_t unused;
  SmallVector<int64_t> strides;
  if (failed(type.getStridesAndOffset(strides, unused)))
    llvm_unreachable("verified by schedule.view");
  entry->buffer = buffers.at(op.getBuffer());
  entry->offset = op.getOffset();
  entry->dtype = typeOf(type.getElementType());
  entry->shape.assign(type.getShape().begin(), type.getShape().end());
  entry->strides.assign(strides.begin(), strides.end());
  if (op.getShifts())
    for (auto shift : op.getShifts()->getAsRange<schedule::ShiftAttr>()) {
      auto moved = std::make_unique<plan::ShiftT>();
      moved->axes = numbersOf(shift.getAxes());
      moved->bytes = shift.getBytes();
      entry->shifts.push_back(std::move(moved));
    }
  std::vector<int64_t> key = {entry->buffer,
                              static_cast<int64_t>(entry->offset),
                              static_cast<int64_t>(entry->dtype)};
  key.insert(key.end(), entry->shape.begin(), entry->shape.end());
  key.push_back(-1);
  key.insert(key.end(), strides.begin(), strides.end());
  for (const auto &shift : entry->shifts) {
    key.push_back(-1 - static_cast<int64_t>(shift->bytes));
    key.insert(key.end(), shift->axes.begin(), shift->axes.end());
  }
  auto [known, isNew] = views.try_emplace(key, table->views.size());
  if (isNew)
    table->views.push_back(std::move(entry));
  return known->second;
}

std::vector<uint32_t> ProgramTables::numbersOf(ArrayAttr names) {
  std::vector<uint32_t> numbers;
  for (StringRef axis : names.getAsValueRange<StringAttr>())
    numbers.push_back(axes.at(axis));
  return numbers;
}

std::unique_ptr<plan::ShardedT> ProgramTables::sharded(Value value,
                                                       Attribute sharding) {
  auto entry = std::make_unique<plan::ShardedT>();
  entry->view = view(value);
  if (auto split = dyn_cast_or_null<mesh::ShardingAttr>(sharding))
    for (mesh::DimShardingAttr dim : split.getDims()) {
      auto list = std::make_unique<plan::AxisListT>();
      for (StringAttr axis : dim.getAxes())
        list->axes.push_back(axes.at(axis.getValue()));
      entry->dims.push_back(std::move(list));
    }
  return entry;
}

std::unique_ptr<plan::StateT> ProgramTables::stateOf(schedule::StateAttr state,
                                                     Value view) {
  auto entry = std::make_unique<plan::StateT>();
  entry->name = state.getName().str();
  entry->role = static_cast<plan::StateRole>(state.getRole());
  entry->part = sharded(view, state.getSharding());
  if (state.getInitial())
    entry->initial = static_cast<float>(state.getInitial().getValueAsDouble());
  return entry;
}

void ProgramTables::addDeclaration(Operation *op) {
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](schedule::InputOp op) {
        auto entry = std::make_unique<plan::InputT>();
        entry->kind = static_cast<plan::InputKind>(op.getKind());
        entry->view = view(op.getView());
        if (op.getAxes())
          entry->axes = numbersOf(*op.getAxes());
        entry->size = static_cast<int32_t>(op.getSize());
        if (op.getBase())
          entry->base = op.getBase()->convertToFloat();
        table->inputs.push_back(std::move(entry));
      })
      .Case([&](schedule::ResultOp op) {
        auto entry = std::make_unique<plan::ResultT>();
        entry->kind = static_cast<plan::ResultKind>(op.getKind());
        entry->view = view(op.getView());
        table->results.push_back(std::move(entry));
      })
      .Case([&](schedule::ParameterOp op) {
        auto entry = std::make_unique<plan::ParameterT>();
        auto init = cast<transformer::InitAttr>(op.getInit());
        entry->name = op.getName();
        entry->file_shape.assign(op.getFileShape().begin(),
                                 op.getFileShape().end());
        entry->init = static_cast<plan::InitKind>(init.getKind());
        entry->init_a = static_cast<float>(init.getA().getValueAsDouble());
        entry->init_b = static_cast<float>(init.getB().getValueAsDouble());
        entry->shape.assign(op.getShape().begin(), op.getShape().end());
        for (auto [state, view] :
             llvm::zip_equal(op.getStates().getAsRange<schedule::StateAttr>(),
                             op.getViews()))
          entry->states.push_back(stateOf(state, view));
        entry->layer = layerNumber(op);
        table->parameters.push_back(std::move(entry));
      });
}

template <typename Op>
std::unique_ptr<plan::DropoutT> ProgramTables::dropout(Op op) {
  double rate = op.getRate().convertToDouble();
  if (rate == 0)
    return nullptr;
  auto entry = std::make_unique<plan::DropoutT>();
  entry->stream = op.getStream();
  entry->threshold = static_cast<uint32_t>(rate * 4294967296.0);
  entry->keep_scale = static_cast<float>(1.0 / (1.0 - rate));
  entry->random = view(op.getRandom()[0]);
  if (op.getRandom().size() > 1)
    entry->first_head = view(op.getRandom()[1]);
  entry->heads = op.getHeads();
  return entry;
}

plan::OperationUnion ProgramTables::operation(Operation *op) {
  plan::OperationUnion result;
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](schedule::LaunchOp op) {
        plan::LaunchT entry;
        entry.kernel = kernels.ofLaunch.at(op.getKernel());
        for (Value arg : op.getArgs())
          entry.args.push_back(view(arg));
        entry.num_outputs = op.getNumOutputs();
        entry.items = op.getItems();
        result.Set(std::move(entry));
      })
      .Case([&](schedule::MatmulOp op) {
        plan::MatmulT entry;
        entry.lhs = view(op.getLhs());
        entry.rhs = view(op.getRhs());
        entry.dst = view(op.getDst());
        entry.bias = view(op.getBias());
        entry.accumulate = static_cast<plan::Accumulate>(op.getAccumulate());
        entry.epilogue = static_cast<plan::Epilogue>(op.getEpilogue());
        entry.aux = view(op.getAux());
        if (!op.getScales().empty()) {
          entry.lhs_scale = view(op.getScales()[0]);
          entry.rhs_scale = view(op.getScales()[1]);
        }
        result.Set(std::move(entry));
      })
      .Case([&](schedule::AttentionOp op) {
        plan::AttentionT entry;
        entry.q = view(op.getQ());
        entry.k = view(op.getK());
        entry.v = view(op.getV());
        entry.out = view(op.getOut());
        entry.lse = view(op.getLse());
        entry.scale = static_cast<float>(op.getScale().convertToDouble());
        entry.causal = op.getCausal();
        entry.window = op.getWindow();
        entry.dropout = dropout(op);
        entry.documents = view(op.getDocuments());
        result.Set(std::move(entry));
      })
      .Case([&](schedule::AttentionGradOp op) {
        plan::AttentionGradT entry;
        entry.q = view(op.getQ());
        entry.k = view(op.getK());
        entry.v = view(op.getV());
        entry.out = view(op.getOut());
        entry.lse = view(op.getLse());
        entry.dout = view(op.getDout());
        entry.dq = view(op.getDq());
        entry.dk = view(op.getDk());
        entry.dv = view(op.getDv());
        entry.unique = !op.getDuplicated();
        entry.scale = static_cast<float>(op.getScale().convertToDouble());
        entry.causal = op.getCausal();
        entry.window = op.getWindow();
        entry.dropout = dropout(op);
        entry.documents = view(op.getDocuments());
        result.Set(std::move(entry));
      })
      .Case([&](schedule::EmbeddingOp op) {
        plan::EmbeddingT entry;
        entry.table = view(op.getTable());
        entry.ids = view(op.getIds());
        entry.first_row = view(op.getFirstRow());
        entry.out = view(op.getOut());
        result.Set(std::move(entry));
      })
      .Case([&](schedule::EmbeddingGradOp op) {
        plan::EmbeddingGradT entry;
        entry.ids = view(op.getIds());
        entry.dout = view(op.getDout());
        entry.dtable = view(op.getDtable());
        entry.first_row = view(op.getFirstRow());
        entry.accumulate = static_cast<plan::Accumulate>(op.getAccumulate());
        result.Set(std::move(entry));
      })
      .Case([&](schedule::RotaryTableOp op) {
        plan::RotaryTableT entry;
        entry.cos = view(op.getCosine());
        entry.sin = view(op.getSine());
        entry.inverse_frequencies.assign(op.getInverseFrequencies().begin(),
                                         op.getInverseFrequencies().end());
        entry.scale = op.getScale().convertToFloat();
        result.Set(std::move(entry));
      })
      .Case([&](schedule::FillOp op) {
        plan::FillT entry;
        entry.dst = view(op.getDst());
        entry.value = op.getValue().convertToFloat();
        result.Set(std::move(entry));
      })
      .Case([&](schedule::CopyBlockOp op) {
        plan::CopyBlockT entry;
        entry.src = view(op.getSrc());
        entry.dst = view(op.getDst());
        entry.dim = static_cast<int32_t>(op.getDim());
        entry.first = view(op.getFirst());
        result.Set(std::move(entry));
      })
      .Case([&](schedule::CollectiveOp op) {
        plan::CollectiveT entry;
        entry.kind = static_cast<plan::CollectiveKind>(op.getKind());
        entry.reduction = static_cast<plan::Reduction>(op.getReduction());
        entry.axes = numbersOf(op.getAxes());
        for (size_t i = 0; i < op.getInputs().size(); ++i) {
          auto part = std::make_unique<plan::TransferT>();
          part->src = view(op.getInputs()[i]);
          part->dst = view(op.getOutputs()[i]);
          part->dim = static_cast<int32_t>(op.getDims()[i]);
          part->to_dim = static_cast<int32_t>(op.getToDims()[i]);
          entry.parts.push_back(std::move(part));
        }
        entry.sources.assign(op.getSources().begin(), op.getSources().end());
        entry.channel = static_cast<uint32_t>(op.getChannel());
        entry.last_only = op.getLastOnly();
        entry.pass = static_cast<plan::Pass>(op.getPass());
        entry.cause = causeTable(op.getCause());
        result.Set(std::move(entry));
      })
      .Case([&](schedule::WaitOp op) {
        plan::WaitT entry;
        entry.channel = static_cast<uint32_t>(op.getChannel());
        entry.count = static_cast<uint32_t>(op.getCount());
        result.Set(std::move(entry));
      });
  return result;
}

std::unique_ptr<plan::InstructionT> ProgramTables::instruction(Operation *op) {
  auto entry = std::make_unique<plan::InstructionT>();
  entry->name = op->getAttrOfType<StringAttr>("source").getValue();
  entry->flops = op->getAttrOfType<IntegerAttr>("flops").getInt();
  entry->bytes = op->getAttrOfType<IntegerAttr>("bytes").getInt();
  entry->layer = layerNumber(op);
  entry->op = operation(op);
  if (auto own = kernels.ofInstruction.find(op);
      own != kernels.ofInstruction.end())
    entry->kernels.assign(own->second.begin(), own->second.end());
  return entry;
}

void ProgramTables::addList(schedule::ListOp list) {
  auto entry = std::make_unique<plan::ListT>();
  entry->kind = static_cast<plan::ListKind>(list.getKind());
  entry->stage = static_cast<uint32_t>(list.getStage());
  for (Operation &op : list.getBody().front())
    if (schedule::isInstruction(&op))
      entry->instructions.push_back(instruction(&op));
  table->lists.push_back(std::move(entry));
}

/// The loss is reduced first in the update, in a collective of its own.
void ProgramTables::findLoss() {
  if (table->actions.empty())
    return;
  uint32_t known = 0, next = 0;
  if (schedule::ListOp update =
          schedule::listOf(program, schedule::ListKind::update))
    for (Operation &op : update.getBody().front()) {
      next += schedule::isInstruction(&op);
      auto collective = dyn_cast<schedule::CollectiveOp>(op);
      if (collective && collective.getMakesLoss())
        known = next;
    }
  table->loss_known = std::make_unique<plan::Moment>(
      static_cast<uint32_t>(table->actions.size() - 1), known);
}

} // namespace meshwork::target
