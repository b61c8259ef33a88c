#include "TestPlan.h"
#include "meshwork/Plan/Frame.h"
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <unistd.h>

namespace meshwork::plan::test {
namespace {
constexpr int64_t rows = 256, width = 8, micro = 2, sequence = 16;
constexpr int64_t xElements = micro * sequence * width;

/// Adds buffers one after another, each with one view of its whole.
struct Builder {
  PlanT plan;
  ProgramT &program;

  Builder() : program(addProgram()) {}
  ProgramT &addProgram() {
    plan.programs.push_back(std::make_unique<ProgramT>());
    return *plan.programs.back();
  }

  uint32_t view(uint32_t buffer, DType dtype, std::vector<int64_t> shape) {
    auto view = std::make_unique<ViewT>();
    view->buffer = buffer;
    view->dtype = dtype;
    view->strides.assign(shape.size(), 1);
    for (size_t i = shape.size(); i-- > 1;)
      view->strides[i - 1] = view->strides[i] * shape[i];
    view->shape = std::move(shape);
    program.views.push_back(std::move(view));
    return static_cast<uint32_t>(program.views.size() - 1);
  }

  uint32_t tensor(const char *name, BufferKind kind, DType dtype,
                  std::vector<int64_t> shape, bool persistent = true) {
    auto buffer = std::make_unique<BufferT>();
    buffer->name = name;
    buffer->kind = kind;
    buffer->offset = program.arena_bytes;
    buffer->size_bytes = dtype == DType::bf16 ? 2 : 4;
    for (int64_t size : shape)
      buffer->size_bytes *= static_cast<uint64_t>(size);
    buffer->persistent = persistent;
    program.arena_bytes += (buffer->size_bytes + 63) / 64 * 64;
    program.buffers.push_back(std::move(buffer));
    return view(static_cast<uint32_t>(program.buffers.size() - 1), dtype,
                std::move(shape));
  }

  template <typename Op>
  void add(std::vector<std::unique_ptr<InstructionT>> &list, const char *name,
           Op op) {
    auto instruction = std::make_unique<InstructionT>();
    instruction->name = name;
    instruction->flops = 100;
    instruction->bytes = 1000;
    instruction->op.Set(std::move(op));
    list.push_back(std::move(instruction));
  }
};

MatmulT matmul(uint32_t lhs, uint32_t rhs, uint32_t dst,
               Accumulate accumulate) {
  MatmulT op;
  op.lhs = lhs;
  op.rhs = rhs;
  op.dst = dst;
  op.accumulate = accumulate;
  return op;
}

CollectiveT allReduce(uint32_t view) {
  CollectiveT op;
  op.axes = {0};
  op.parts.push_back(transfer(view, view));
  op.pass = Pass::update;
  op.cause = std::make_unique<CauseT>();
  op.cause->value = "each rank saw only its part of the batch";
  return op;
}

void addTensors(Builder &b) {
  b.tensor("wte", BufferKind::weights, DType::f32, {rows, width});
  b.tensor("wte gradient", BufferKind::gradients, DType::f32, {rows, width});
  b.tensor("x", BufferKind::activations, DType::f32, {micro, sequence, width},
           /*persistent=*/false);
  b.tensor("loss", BufferKind::results, DType::f32, {1});
  b.tensor("tokens", BufferKind::input, DType::i32, {micro, sequence});
  b.tensor("targets", BufferKind::input, DType::i32, {micro, sequence});
  b.tensor("learning rate", BufferKind::input, DType::f32, {1});
  b.tensor("bias correction 1", BufferKind::input, DType::f32, {1});
  b.tensor("bias correction 2", BufferKind::input, DType::f32, {1});
  b.tensor("random", BufferKind::input, DType::i32, {3});
  b.view(2, DType::f32, {1, 1, xElements});
  b.tensor("ones", BufferKind::constants, DType::f32, {1, xElements, 1});
  b.view(10, DType::f32, {micro, sequence, width});
  b.tensor("cos", BufferKind::constants, DType::f32, {sequence, width});
  b.tensor("sin", BufferKind::constants, DType::f32, {sequence, width});
  b.tensor("gradient norm", BufferKind::results, DType::f32, {1});
  b.view(0, DType::f32, {1, rows * width, 1});
  b.view(1, DType::f32, {1, rows * width, 1});
  b.view(1, DType::f32, {1, 1, rows * width});
  b.view(6, DType::f32, {1, 1, 1});
  b.view(3, DType::f32, {1, 1, 1});
  b.view(13, DType::f32, {1, 1, 1});
}

void addInstructions(Builder &b, float share) {
  FillT fill;
  fill.dst = ones;
  fill.value = share;
  b.add(onceOf(b.program), "share of a token", fill);
  RotaryTableT rotary;
  rotary.cos = cos;
  rotary.sin = sin;
  rotary.inverse_frequencies = {1.0f, 0.1f, 0.01f, 0.001f};
  rotary.scale = 1;
  b.add(onceOf(b.program), "rotary", rotary);
  EmbeddingT embedding;
  embedding.table = weight;
  embedding.ids = tokens;
  embedding.out = x;
  b.add(forwardOf(b.program), "wte", embedding);
  b.add(forwardOf(b.program), "mean",
        matmul(xRow, ones, lossCell, Accumulate::after_first));
  EmbeddingGradT grad;
  grad.ids = tokens;
  grad.dout = onesAsX;
  grad.dtable = gradient;
  grad.accumulate = Accumulate::after_first;
  b.add(forwardOf(b.program), "wte (gradient)", grad);
  b.add(updateOf(b.program), "loss", allReduce(loss));
  setLossKnown(b.program, 1);
  b.add(updateOf(b.program), "gradients", allReduce(gradient));
  b.add(updateOf(b.program), "norm",
        matmul(gradRow, gradColumn, gradNormCell, Accumulate::no));
  b.add(updateOf(b.program), "optimizer",
        matmul(gradColumn, rateCell, weightColumn, Accumulate::yes));
}

void addState(Builder &b) {
  const std::pair<InputKind, uint32_t> inputs[] = {
      {InputKind::tokens, tokens},
      {InputKind::targets, targets},
      {InputKind::learning_rate, learningRate},
      {InputKind::bias_correction, bias1},
      {InputKind::bias_correction, bias2},
      {InputKind::random, random}};
  for (auto [kind, view] : inputs) {
    b.program.inputs.push_back(std::make_unique<InputT>());
    b.program.inputs.back()->kind = kind;
    b.program.inputs.back()->view = view;
    if (kind == InputKind::bias_correction)
      b.program.inputs.back()->base = view == bias1 ? 0.9f : 0.95f;
  }
  for (auto [kind, view] : {std::pair{ResultKind::loss, loss},
                            std::pair{ResultKind::grad_norm, gradNorm}}) {
    b.program.results.push_back(std::make_unique<ResultT>());
    b.program.results.back()->kind = kind;
    b.program.results.back()->view = view;
  }
  auto parameter = std::make_unique<ParameterT>();
  parameter->name = "wte.weight";
  parameter->file_shape = {rows, width};
  parameter->init = InitKind::normal;
  parameter->init_b = 0.02f;
  parameter->shape = {rows, width};
  keep(*parameter, "weight", weight);
  keep(*parameter, "master", weight);
  keep(*parameter, "gradient", gradient);
  b.program.parameters.push_back(std::move(parameter));
}
} // namespace

InstructionList &listOf(ProgramT &program, ListKind kind) {
  for (auto &list : program.lists)
    if (list->kind == kind)
      return list->instructions;
  std::abort();
}

void addLists(ProgramT &program) {
  for (ListKind kind : {ListKind::once, ListKind::step, ListKind::forward,
                        ListKind::backward, ListKind::update}) {
    program.lists.push_back(std::make_unique<ListT>());
    program.lists.back()->kind = kind;
  }
}

void setActions(ProgramT &program, uint32_t microbatches) {
  uint32_t known = program.loss_known ? program.loss_known->instruction() : 0;
  program.actions = {Action(1, 0)};
  for (uint32_t m = 0; m < microbatches; ++m) {
    program.actions.emplace_back(2, m);
    program.actions.emplace_back(3, m);
  }
  program.actions.emplace_back(4, 0);
  setLossKnown(program, known);
}

void setLossKnown(ProgramT &program, uint32_t instruction) {
  program.loss_known = std::make_unique<Moment>(
      static_cast<uint32_t>(program.actions.size() - 1), instruction);
}

void setPrograms(PlanT &plan, std::vector<uint32_t> numbers) {
  plan.program_axes.clear();
  for (uint32_t axis = 0; axis < plan.mesh.size(); ++axis)
    plan.program_axes.push_back(axis);
  plan.program_numbers = std::move(numbers);
}

static auto find(ParameterT &parameter, const std::string &name) {
  return std::find_if(parameter.states.begin(), parameter.states.end(),
                      [&](const auto &state) { return state->name == name; });
}

StateT &keep(ParameterT &parameter, const char *name, uint32_t view,
             std::vector<std::vector<uint32_t>> dims) {
  drop(parameter, name);
  StateT &state = *parameter.states.emplace_back(std::make_unique<StateT>());
  state.name = name;
  state.role = StateRole::optimizer;
  for (StateRole role : EnumValuesStateRole())
    if (state.name == EnumNameStateRole(role))
      state.role = role;
  state.part = std::make_unique<ShardedT>();
  state.part->view = view;
  for (std::vector<uint32_t> &axes : dims) {
    state.part->dims.push_back(std::make_unique<AxisListT>());
    state.part->dims.back()->axes = std::move(axes);
  }
  return state;
}

StateT &stateOf(ParameterT &parameter, const std::string &name) {
  return **find(parameter, name);
}

void drop(ParameterT &parameter, const std::string &name) {
  if (auto known = find(parameter, name); known != parameter.states.end())
    parameter.states.erase(known);
}

void addAxis(PlanT &plan, const char *name, uint32_t size) {
  plan.mesh.push_back(std::make_unique<AxisT>());
  plan.mesh.back()->name = name;
  plan.mesh.back()->size = size;
}

uint32_t addView(ProgramT &program, uint32_t buffer, DType dtype,
                 std::vector<int64_t> shape, uint64_t offset) {
  auto view = std::make_unique<ViewT>();
  view->buffer = buffer;
  view->offset = offset;
  view->dtype = dtype;
  view->strides.assign(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;)
    view->strides[i - 1] = view->strides[i] * shape[i];
  view->shape = std::move(shape);
  program.views.push_back(std::move(view));
  return static_cast<uint32_t>(program.views.size() - 1);
}

uint32_t addTensor(ProgramT &program, const char *name, BufferKind kind,
                   DType dtype, std::vector<int64_t> shape) {
  auto buffer = std::make_unique<BufferT>();
  buffer->name = name;
  buffer->kind = kind;
  buffer->offset = (program.arena_bytes + 63) / 64 * 64;
  buffer->size_bytes = dtype == DType::bf16 ? 2 : 4;
  for (int64_t size : shape)
    buffer->size_bytes *= static_cast<uint64_t>(size);
  buffer->persistent = true;
  program.arena_bytes = buffer->offset + (buffer->size_bytes + 63) / 64 * 64;
  program.buffers.push_back(std::move(buffer));
  return addView(program, static_cast<uint32_t>(program.buffers.size() - 1),
                 dtype, std::move(shape));
}

uint32_t addOnHost(ProgramT &program, const char *name, BufferKind kind,
                   DType dtype, std::vector<int64_t> shape) {
  std::swap(program.arena_bytes, program.host_bytes);
  uint32_t view = addTensor(program, name, kind, dtype, std::move(shape));
  std::swap(program.arena_bytes, program.host_bytes);
  program.buffers.back()->space = Space::host;
  return view;
}

WaitT waitFor(uint32_t channel, uint32_t count) {
  WaitT wait;
  wait.channel = channel;
  wait.count = count;
  return wait;
}

static CopyT copyOf(uint32_t src, uint32_t dst) {
  CopyT op;
  op.src = src;
  op.dst = dst;
  return op;
}

/// Between the host and `near`, around instructions 1 to 4 of the update.
static void moveMomentum(ProgramT &p, uint32_t kept, uint32_t near) {
  InstructionList &update = updateOf(p);
  insert(update, 5, "put back", waitFor(2, 1));
  insert(update, 4, "momentum", copyOf(near, kept)).channel = 2;
  insert(update, 3, "fetched", waitFor(1, 1));
  insert(update, 1, "momentum", copyOf(kept, near)).channel = 1;
}

void addMomentum(PlanT &plan, bool onHost) {
  ProgramT &p = *plan.programs[0];
  auto add = onHost ? addOnHost : addTensor;
  uint32_t kept =
      add(p, "momentum", BufferKind::optimizer, DType::f32, {rows, width});
  keep(*p.parameters[0], "momentum", kept);
  uint32_t near = kept;
  if (onHost) {
    near = addTensor(p, "momentum here", BufferKind::workspace, DType::f32,
                     {rows, width});
    p.buffers.back()->persistent = false;
  }
  uint32_t buffer = p.views[near]->buffer;
  uint32_t column = addView(p, buffer, DType::f32, {1, rows * width, 1}),
           changed = addView(p, buffer, DType::f32, {1, rows * width, 1});
  p.views[changed]->updated = !onHost;
  opOf<MatmulT>(*updateOf(p)[3]).lhs = changed;
  insert(updateOf(p), 3, "momentum",
         matmul(gradColumn, rateCell, column, Accumulate::yes));
  if (onHost)
    moveMomentum(p, kept, near);
}

uint32_t addRank(PlanT &plan) {
  ProgramT &program = *plan.programs[0];
  auto input = std::make_unique<InputT>();
  input->kind = InputKind::coordinate;
  input->view = addTensor(program, "rank", BufferKind::input, DType::i32, {1});
  input->axes = {0};
  input->size = static_cast<int32_t>(plan.mesh[0]->size);
  program.inputs.push_back(std::move(input));
  return program.inputs.back()->view;
}

static CollectiveT maximum(uint32_t src, uint32_t dst) {
  CollectiveT op;
  op.reduction = Reduction::max;
  op.axes = {0};
  op.parts.push_back(transfer(src, dst));
  return op;
}

/// A row of a buffer of x's shape, another one in each turn.
static uint32_t addRow(ProgramT &p, uint32_t buffer) {
  uint32_t row = addView(p, buffer, DType::f32, {width});
  p.views[row]->advances = {width * sizeof(float)};
  return row;
}

namespace {
/// Of a row of x: where the largest is brought, and copied from.
struct Round {
  RepeatT repeat;
  CollectiveT bring;
  CopyT copy;
};
} // namespace

static Round roundOf(PlanT &plan) {
  ProgramT &p = *plan.programs[0];
  opOf<EmbeddingGradT>(*forwardOf(p)[2]).dout = x;
  uint32_t brought = addTensor(p, "brought", BufferKind::activations,
                               DType::f32, {micro, sequence, width});
  uint32_t from = addRow(p, p.views[brought]->buffer),
           to = addRow(p, p.views[x]->buffer);
  return {{}, maximum(to, from), copyOf(from, to)};
}

void addRounds(PlanT &plan) {
  ProgramT &p = *plan.programs[0];
  Round round = roundOf(plan);
  uint32_t rank = addRank(plan);
  round.repeat.count =
      addTensor(p, "rounds", BufferKind::workspace, DType::i32, {1});
  round.repeat.times = 4;
  round.repeat.instructions = 4;
  InstructionList &list = forwardOf(p);
  insert(list, 1, "copied", waitFor(2, 1));
  insert(list, 1, "copy", round.copy).channel = 2;
  insert(list, 1, "brought", waitFor(1, 1));
  insert(list, 1, "bring", round.bring).channel = 1;
  insert(list, 1, "rounds", round.repeat);
  insert(list, 1, "most", maximum(rank, round.repeat.count));
}

void addTurns(PlanT &plan, uint32_t turns) {
  Round round = roundOf(plan);
  if (turns == 0)
    return;
  InstructionList &list = forwardOf(*plan.programs[0]);
  round.repeat.times = turns;
  round.repeat.instructions = 2;
  insert(list, 1, "copy", round.copy);
  insert(list, 1, "bring", round.bring);
  insert(list, 1, "turns", round.repeat);
}

uint32_t addDocuments(PlanT &plan) {
  ProgramT &program = *plan.programs[0];
  auto input = std::make_unique<InputT>();
  input->kind = InputKind::documents;
  input->view = addTensor(program, "documents", BufferKind::input, DType::i32,
                          {micro, sequence});
  program.inputs.push_back(std::move(input));
  return program.inputs.back()->view;
}

void shift(ProgramT &program, uint32_t view, std::vector<uint32_t> axes,
           uint64_t bytes) {
  auto one = std::make_unique<ShiftT>();
  one->axes = std::move(axes);
  one->bytes = bytes;
  program.views[view]->shifts.push_back(std::move(one));
}

std::unique_ptr<TransferT> transfer(uint32_t src, uint32_t dst, int32_t dim,
                                    int32_t toDim) {
  auto part = std::make_unique<TransferT>();
  part->src = src;
  part->dst = dst;
  part->dim = dim;
  part->to_dim = toDim;
  return part;
}

PlanT tinyPlan(const TinyOptions &options) {
  Builder b;
  b.plan.producer = "test";
  b.plan.arch = "x86-64-v3";
  b.plan.mesh.push_back(std::make_unique<AxisT>());
  b.plan.mesh[0]->name = "dp";
  b.plan.mesh[0]->size = options.ranks;
  b.plan.batch_axes = {0};
  b.plan.micro_batch = micro;
  b.plan.microbatches = options.microbatches;
  b.plan.global_batch = micro * options.microbatches * options.ranks;
  b.plan.sequence = sequence;
  b.plan.vocabulary = rows;
  b.plan.model_flops_per_step = 1000000;
  b.plan.palm_flops_per_step = 3000000;
  b.plan.parameter_count = rows * width;
  addTensors(b);
  addLists(b.program);
  setActions(b.program, options.microbatches);
  addInstructions(
      b, 1.0f / (static_cast<float>(xElements) *
                 static_cast<float>(options.microbatches * options.ranks)));
  addState(b);
  return std::move(b.plan);
}

PlanT tinyGpuPlan(const TinyOptions &options) {
  PlanT plan = tinyPlan(options);
  plan.device = Device::cuda;
  plan.arch = "sm_80";
  plan.cpu_features.clear();
  plan.images.push_back(std::make_unique<ImageT>());
  plan.images[0]->arch = "sm_80";
  plan.images[0]->kind = ImageKind::ptx;
  plan.images[0]->code = {'.', 0};
  auto addKernel = [&](InstructionT &instruction, const char *symbol,
                       uint32_t pointers) {
    instruction.kernels = {static_cast<uint32_t>(plan.kernels.size())};
    plan.kernels.push_back(std::make_unique<KernelT>());
    KernelT &kernel = *plan.kernels.back();
    kernel.symbol = symbol;
    kernel.num_args = pointers;
    kernel.grid = 1;
    kernel.block = 32;
  };
  ProgramT &program = *plan.programs[0];
  addKernel(*onceOf(program)[0], "fill_0", 1);
  addKernel(*forwardOf(program)[0], "embedding_0", 3);
  addKernel(*forwardOf(program)[2], "embedding_grad_0", 3);
  return plan;
}

std::vector<unsigned char> encode(const PlanT &plan) {
  flatbuffers::FlatBufferBuilder builder;
  FinishPlanBuffer(builder, Plan::Pack(builder, &plan));
  std::vector<unsigned char> file(plan::frameBytes + builder.GetSize());
  plan::writeFrame(builder.GetBufferPointer(), builder.GetSize(), file.data());
  std::memcpy(file.data() + plan::frameBytes, builder.GetBufferPointer(),
              builder.GetSize());
  return file;
}

std::string temporary(const std::string &name) {
  struct Folder {
    std::string path = ::testing::TempDir() + "meshwork-core-XXXXXX";
    Folder() {
      if (!::mkdtemp(path.data()))
        std::abort();
    }
    ~Folder() { std::filesystem::remove_all(path); }
  };
  static const Folder folder;
  return folder.path + "/" + name;
}

void writeFile(const std::string &path, const void *data, size_t bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(static_cast<const char *>(data),
             static_cast<std::streamsize>(bytes));
  ASSERT_TRUE(file.flush().good()) << path;
}

std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string writePlan(const PlanT &plan, const std::string &name) {
  std::vector<unsigned char> bytes = encode(plan);
  std::string path = temporary(name);
  writeFile(path, bytes.data(), bytes.size());
  return path;
}

std::string writeText(size_t bytes, const std::string &name) {
  std::string text(bytes, ' ');
  uint32_t state = 1;
  for (char &letter : text)
    letter = static_cast<char>('a' + (state = state * 1664525u + 1013904223u) /
                                         0x10000000u);
  std::string path = temporary(name);
  writeFile(path, text.data(), text.size());
  return path;
}

} // namespace meshwork::plan::test
