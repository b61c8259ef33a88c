#include "test/Emulator/attention/Run.h"
#include "passes/codegen/gpu/library/AttentionGeometry.h"
#include "runtime/device/cpu/Bf16.h"
#include "test/Runtime/cpu/TestProgram.h"
#include "test/Support/Emulator/KernelTest.h"

#include <gtest/gtest.h>

#include <thread>

namespace meshwork::attention::test {
namespace {
namespace cpu = runtime::cpu;
using runtime::test::TestProgram;

/// [batch, length, count heads, d] on the device, with the gaps of the case.
template <typename T> class Heads {
public:
  Heads(const Case &c, long long count, long long length)
      : c(c), count(count), length(length),
        buffer(static_cast<size_t>(c.elements(count, length))) {}
  Heads(const Case &c, long long count, long long length, const Values &values)
      : Heads(c, count, length) {
    visit([&](size_t dense, size_t at) {
      cpu::assign(buffer[at], static_cast<float>(values[dense]));
    });
  }
  Values read() const {
    Values values(static_cast<size_t>(c.batch * length * count * c.d));
    visit([&](size_t dense, size_t at) {
      values[dense] = static_cast<double>(cpu::toFloat(buffer[at]));
    });
    return values;
  }
  /// Nothing was written between rows.
  bool gapsAreUntouched() const {
    std::vector<bool> used(buffer.size());
    visit([&](size_t, size_t at) { used[at] = true; });
    for (size_t at = 0; at < used.size(); ++at)
      for (size_t byte = 0; !used[at] && byte < sizeof(T); ++byte)
        if (reinterpret_cast<const unsigned char *>(buffer.data() + at)[byte] !=
            0xff)
          return false;
    return true;
  }
  uint64_t address() const {
    return buffer.address() + static_cast<uint64_t>(c.gap) * sizeof(T);
  }

private:
  template <typename Visit> void visit(Visit visit) const {
    size_t dense = 0;
    for (long long b = 0; b < c.batch; ++b)
      for (long long i = 0; i < length; ++i)
        for (long long h = 0; h < count; ++h)
          for (long long e = 0; e < c.d; ++e)
            visit(dense++,
                  static_cast<size_t>(
                      c.gap + b * c.sampleStride(count, length) +
                      i * c.positionStride(count) + h * c.headStride() + e));
  }

  const Case &c;
  long long count, length;
  mutable ptx::Buffer<T> buffer;
};

ptx::Kernels &kernels() {
  static ptx::Kernels all = ptx::Kernels::fromFile(ATTENTION_PTX);
  return all;
}

/// Of each row which query it is.
template <typename T> std::vector<T> positionsOf(const Case &c) {
  std::vector<T> positions;
  for (long long row = 0; row < c.rows(); ++row)
    positions.push_back(static_cast<T>(c.queryOf(row)));
  return positions;
}
/// Of each column which key it is.
template <typename T> std::vector<T> keysOf(const Case &c) {
  std::vector<T> keys;
  for (long long column = 0; column < c.columns(); ++column)
    keys.push_back(static_cast<T>(c.keyOf(column)));
  return keys;
}

/// Runs the four kernels of a case; `R` is the type of results.
template <typename T, typename R> class Device {
public:
  Device(const char *name, const Case &c, const Inputs &in)
      : name(name), c(c), padded(classOf(c.d)), documents(in.documents),
        positions(positionsOf<int32_t>(c)), keys(keysOf<int32_t>(c)),
        random(std::vector<int32_t>{in.seed, in.step, in.firstSample}),
        firstHead(std::vector<int32_t>{in.firstHead}),
        q(c, c.heads, c.rows(), in.q), k(c, c.kvHeads, c.columns(), in.k),
        v(c, c.kvHeads, c.columns(), in.v), dout(c, c.heads, c.rows(), in.dout),
        out(c, c.heads, c.rows()), dq(c, c.heads, c.rows()),
        dk(c, c.kvHeads, c.columns()), dv(c, c.kvHeads, c.columns()),
        lse(static_cast<size_t>(c.batch * c.heads * c.rows())),
        workspace(static_cast<size_t>(
            workspaceBytes(c.batch, c.rows(), c.heads) / 4)) {}

  Outcome run(const RowsOfAll *all) {
    uint64_t before = kernels().counts.instructions;
    runForward();
    Outcome outcome;
    outcome.out = out.read();
    outcome.lse = Values(lse.begin(), lse.end());
    if (all)
      std::copy(all->lse.begin(), all->lse.end(), lse.begin());
    // The gradient's operand has the type of q.
    Heads<T> wholeOut(c, c.heads, c.rows(), all ? all->out : outcome.out);
    runBackward(wholeOut);
    for (Heads<T> *each : {&q, &k, &v, &dout})
      EXPECT_TRUE(each->gapsAreUntouched());
    for (Heads<R> *each : {&out, &dq, &dk, &dv})
      EXPECT_TRUE(each->gapsAreUntouched());
    outcome.dq = dq.read();
    outcome.dk = dk.read();
    outcome.dv = dv.read();
    outcome.instructions = kernels().counts.instructions - before;
    return outcome;
  }

private:
  void runForward() {
    Tile tile = forwardTile(c.bf16, padded);
    launch("forward", forwardGrid(c.bf16, padded, c.batch, c.rows(), c.heads),
           tile.threads, tile.sharedBytes, q.address(), k.address(),
           v.address(), documents, positions, keys, random, firstHead,
           out.address(), lse, 0, workspace);
  }
  void runBackward(const Heads<T> &wholeOut) {
    auto grad = [&](const char *kernel, long long grid, const Tile &tile) {
      launch(kernel, grid, tile.threads, tile.sharedBytes, q.address(),
             k.address(), v.address(), wholeOut.address(), lse, dout.address(),
             documents, positions, keys, random, firstHead, dq.address(),
             dk.address(), dv.address(), 0, workspace);
    };
    grad("row_sums", rowSumGrid(c.batch, c.rows(), c.heads),
         {0, 0, rowSumThreads, 0});
    grad("grad_keys",
         keyGradGrid(c.bf16, padded, c.batch, c.columns(), c.kvHeads),
         keyGradTile(c.bf16, padded));
    grad("grad_queries",
         queryGradGrid(c.bf16, padded, c.batch, c.rows(), c.heads),
         queryGradTile(c.bf16, padded));
  }
  template <typename... Arguments>
  void launch(const char *kernel, long long grid, int threads, int sharedBytes,
              const Arguments &...arguments) {
    ptx::Shape shape;
    shape.grid = {static_cast<uint32_t>(grid)};
    shape.block = {static_cast<uint32_t>(threads)};
    shape.sharedBytes = static_cast<uint32_t>(sharedBytes);
    shape.numThreads = std::thread::hardware_concurrency();
    absl::Status status =
        kernels().launch(absl::StrCat(kernel, "_", name), shape, arguments...);
    ASSERT_TRUE(status.ok()) << status;
  }

  const char *name;
  const Case &c;
  int padded;
  ptx::Buffer<int32_t> documents, positions, keys, random, firstHead;
  Heads<T> q, k, v, dout;
  Heads<R> out, dq, dk, dv;
  ptx::Buffer<float> lse, workspace;
};

} // namespace

Outcome runOnDevice(const char *name, const Case &c, const Inputs &in,
                    const RowsOfAll *all) {
  using cpu::Bf16;
  if (!c.bf16)
    return Device<float, float>(name, c, in).run(all);
  return c.wideResults ? Device<Bf16, float>(name, c, in).run(all)
                       : Device<Bf16, Bf16>(name, c, in).run(all);
}

Outcome runOnCpu(const Case &c, const Inputs &in) {
  TestProgram program;
  plan::DType type = c.bf16 ? plan::DType::bf16 : plan::DType::f32;
  plan::DType resultType = c.wideResults ? plan::DType::f32 : type;
  auto add = [&](long long length, long long heads, const Values *values) {
    uint32_t view =
        program.add(values ? type : resultType, {c.batch, length, heads, c.d});
    if (values)
      program.write(view, *values);
    return view;
  };
  auto addRows = [&](const Values *values) {
    return add(c.rows(), c.heads, values);
  };
  auto addKeys = [&](const Values *values) {
    return add(c.columns(), c.kvHeads, values);
  };
  plan::AttentionT forward;
  plan::AttentionGradT backward;
  forward.q = backward.q = addRows(&in.q);
  forward.k = backward.k = addKeys(&in.k);
  forward.v = backward.v = addKeys(&in.v);
  forward.out = addRows(nullptr);
  // The gradient's operand has the type of q.
  backward.out = c.wideResults
                     ? program.add(type, {c.batch, c.rows(), c.heads, c.d})
                     : forward.out;
  forward.lse = backward.lse =
      program.add(plan::DType::f32, {c.batch, c.heads, c.rows()});
  backward.dout = addRows(&in.dout);
  backward.dq = addRows(nullptr);
  backward.dk = addKeys(nullptr);
  backward.dv = addKeys(nullptr);
  plan::AttentionPartT part;
  part.scale = c.scale;
  part.cap = c.cap;
  part.causal = c.causal;
  part.window = c.window;
  if (c.documents)
    part.documents =
        program.add(plan::DType::i32, {c.batch, c.rows()},
                    Values(in.documents.begin(), in.documents.end()));
  if (c.parts > 1)
    part.positions =
        program.add(plan::DType::i32, {c.rows()}, positionsOf<double>(c));
  if (c.hasKeys()) {
    part.key_positions =
        program.add(plan::DType::i32, {c.columns()}, keysOf<double>(c));
    part.total_keys = c.sequence;
  }
  if (c.rate > 0) {
    plan::DropoutT dropout;
    dropout.stream = dropoutStream;
    dropout.threshold = c.threshold();
    dropout.keep_scale = c.keepScale();
    dropout.random =
        program.add(plan::DType::i32, {3},
                    {double(in.seed), double(in.step), double(in.firstSample)});
    dropout.heads = c.globalHeads();
    if (c.someHeads)
      dropout.first_head =
          program.add(plan::DType::i32, {1}, {double(in.firstHead)});
    part.dropout = std::make_unique<plan::DropoutT>(dropout);
  }
  forward.part = std::make_unique<plan::AttentionPartT>(part);
  backward.part = std::make_unique<plan::AttentionPartT>(part);
  EXPECT_TRUE(program.run(forward).ok());
  if (backward.out != forward.out)
    program.write(backward.out, program.read(forward.out));
  EXPECT_TRUE(program.run(backward).ok());
  return {program.read(forward.out), program.read(forward.lse),
          program.read(backward.dq), program.read(backward.dk),
          program.read(backward.dv), 0};
}

} // namespace meshwork::attention::test
