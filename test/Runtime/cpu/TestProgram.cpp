#include "test/Runtime/cpu/TestProgram.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>

#include "runtime/device/cpu/Bf16.h"
#include "runtime/device/cpu/Prepare.h"
#include "test/Runtime/Float8.h"

namespace meshwork::runtime::test {
namespace {

/// Arenas and workspaces are aligned; poisoned, so that reads of what was
/// never written show.
struct AlignedBytes {
  explicit AlignedBytes(uint64_t size)
      : size((size + 63) / 64 * 64),
        data(static_cast<std::byte *>(
            std::aligned_alloc(64, std::max<uint64_t>(this->size, 64)))) {
    std::memset(data, 0xff, this->size);
  }
  ~AlignedBytes() { std::free(data); }
  AlignedBytes(const AlignedBytes &) = delete;
  AlignedBytes &operator=(const AlignedBytes &) = delete;
  uint64_t size;
  std::byte *data;
};

using plan::bytesOf;

} // namespace

int64_t countOf(const Dims &shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

Dims rowMajor(const Dims &shape) {
  Dims strides(shape.size());
  int64_t next = 1;
  for (size_t i = shape.size(); i-- > 0; next *= shape[i])
    strides[i] = next;
  return strides;
}

double roundTo(DType dtype, double value) {
  if (dtype == DType::bf16)
    return cpu::toFloat(cpu::toBf16(static_cast<float>(value)));
  if (plan::isFloat8(dtype))
    return fromFloat8(dtype, toFloat8(dtype, value));
  return static_cast<float>(value);
}

Values randomValues(int64_t count, DType dtype, uint32_t seed) {
  std::mt19937 generator(seed);
  Values values(count);
  for (double &value : values)
    value = roundTo(dtype, (generator() >> 8) * 0x1p-23 - 1.0);
  return values;
}

double maxDifference(const Values &a, const Values &b) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (a.size() != b.size())
    return infinity;
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    double difference = std::fabs(a[i] - b[i]);
    if (!(difference <= largest))
      largest = std::isnan(difference) ? infinity : difference;
  }
  return largest;
}

uint32_t TestProgram::addBuffer(DType dtype, int64_t elements) {
  plan::BufferT buffer;
  buffer.offset = arena.size();
  buffer.size_bytes = elements * bytesOf(dtype);
  arena.resize((arena.size() + buffer.size_bytes + 63) / 64 * 64,
               std::byte{0xff});
  buffers.push_back(buffer);
  return buffers.size() - 1;
}

uint32_t TestProgram::addView(uint32_t buffer, DType dtype, const Dims &shape,
                              const Dims &strides, int64_t first) {
  plan::ViewT view;
  view.buffer = buffer;
  view.offset = first * bytesOf(dtype);
  view.dtype = dtype;
  view.shape = shape;
  view.strides = strides.empty() ? rowMajor(shape) : strides;
  views.push_back(view);
  return views.size() - 1;
}

uint32_t TestProgram::add(DType dtype, const Dims &shape) {
  return addView(addBuffer(dtype, countOf(shape)), dtype, shape);
}

uint32_t TestProgram::add(DType dtype, const Dims &shape,
                          const Values &values) {
  uint32_t view = add(dtype, shape);
  write(view, values);
  return view;
}

/// Visits the byte offsets of a view's elements in row-major order.
template <typename Visit>
void TestProgram::forEach(uint32_t index, Visit visit) const {
  const plan::ViewT &view = views[index];
  uint64_t base = buffers[view.buffer].offset + view.offset;
  int64_t count = countOf(view.shape);
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, place = 0;
    for (size_t dim = view.shape.size(); dim-- > 0;) {
      place += rest % view.shape[dim] * view.strides[dim];
      rest /= view.shape[dim];
    }
    visit(i, base + place * bytesOf(view.dtype));
  }
}

void TestProgram::write(uint32_t index, const Values &values) {
  DType dtype = views[index].dtype;
  forEach(index, [&](int64_t i, uint64_t at) {
    float value = static_cast<float>(values.at(i));
    cpu::Bf16 half = cpu::toBf16(value);
    int32_t whole = dtype == DType::i32 ? static_cast<int32_t>(values[i]) : 0;
    const void *from = &value;
    if (dtype == DType::bf16)
      from = &half;
    if (dtype == DType::i32)
      from = &whole;
    uint8_t bits = 0;
    if (plan::isFloat8(dtype))
      bits = toFloat8(dtype, values[i]), from = &bits;
    std::memcpy(arena.data() + at, from, bytesOf(dtype));
  });
}

Values TestProgram::read(uint32_t index) const {
  DType dtype = views[index].dtype;
  Values values(countOf(views[index].shape));
  forEach(index, [&](int64_t i, uint64_t at) {
    float value;
    cpu::Bf16 half;
    int32_t whole;
    std::memcpy(&half, arena.data() + at, 2);
    if (dtype == DType::bf16) {
      values[i] = cpu::toFloat(half);
      return;
    }
    std::memcpy(&value, arena.data() + at, 4);
    std::memcpy(&whole, arena.data() + at, 4);
    values[i] = dtype == DType::i32 ? whole : value;
  });
  return values;
}

std::vector<uint8_t> TestProgram::serialize(plan::OperationUnion op) const {
  plan::PlanT plan;
  auto program = std::make_unique<plan::ProgramT>();
  program->arena_bytes = arena.size();
  for (const plan::BufferT &buffer : buffers)
    program->buffers.push_back(std::make_unique<plan::BufferT>(buffer));
  for (const plan::ViewT &view : views)
    program->views.push_back(std::make_unique<plan::ViewT>(view));
  auto instruction = std::make_unique<plan::InstructionT>();
  instruction->name = "under.test";
  instruction->op = std::move(op);
  program->lists.push_back(std::make_unique<plan::ListT>());
  program->lists[0]->instructions.push_back(std::move(instruction));
  plan.programs.push_back(std::move(program));
  for (const plan::KernelT &kernel : kernels)
    plan.kernels.push_back(std::make_unique<plan::KernelT>(kernel));
  plan.code = code;
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(plan::Plan::Pack(builder, &plan));
  return {builder.GetBufferPointer(),
          builder.GetBufferPointer() + builder.GetSize()};
}

absl::StatusOr<uint64_t>
TestProgram::workspaceOfInstruction(plan::OperationUnion op) {
  std::vector<uint8_t> bytes = serialize(std::move(op));
  return workspaceBytesPerThread(
      *flatbuffers::GetRoot<plan::Plan>(bytes.data())->programs()->Get(0));
}

absl::Status TestProgram::runInstruction(plan::OperationUnion op,
                                         Options options) {
  std::vector<uint8_t> bytes = serialize(std::move(op));
  const plan::Plan &plan = *flatbuffers::GetRoot<plan::Plan>(bytes.data());
  const plan::Program &program = *plan.programs()->Get(0);
  absl::StatusOr<std::unique_ptr<KernelLibrary>> library =
      KernelLibrary::load(plan);
  if (!library.ok())
    return library.status();
  absl::StatusOr<uint64_t> perThread = workspaceBytesPerThread(program);
  if (!perThread.ok())
    return perThread.status();
  ThreadTeam team(options.threads, {});
  AlignedBytes memory(arena.size()), workspace(*perThread * options.threads);
  std::memcpy(memory.data, arena.data(), arena.size());
  PrepareContext context{plan,       program, memory.data, workspace.data,
                         *perThread, team,    **library};
  auto executable =
      prepare(*program.lists()->Get(0)->instructions()->Get(0), context);
  if (!executable.ok())
    return executable.status();
  (*executable)->run({.sets = options.microbatch == 0});
  std::memcpy(arena.data(), memory.data, arena.size());
  return absl::OkStatus();
}

} // namespace meshwork::runtime::test
