// bench_cpu: products and attention against what oneDNN reaches in the same
// run. Prints one line each: GF/s, and the ratio to the peak measured between
// the repetitions, so that a machine that slows down slows both.
//
//   bench_cpu [matmul|attention|experts] [threads] [cold]
//   bench_cpu attention THREADS f32|bf16 HEADS SEQUENCE
//
// `cold` empties the caches before each repetition, as in a training step,
// where hundreds of megabytes pass by before an operand is used again. The
// second form is one causal attention on random values, as
// test/Benchmarks/attention.py compares it. `experts` compares products of
// experts' rows with one dense product of as many flops, and with a batch that
// reads and writes as much.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <time.h>

#include "runtime/device/cpu/Gemm.h"
#include "runtime/device/cpu/Prepare.h"
#include "test/Runtime/cpu/AttentionReference.h"

namespace meshwork::runtime::test {
namespace {

/// Seconds. On one thread, of that thread's own time: other programs on the
/// machine then count for less.
clockid_t measuringClock = CLOCK_MONOTONIC;
double now(clockid_t clock = measuringClock) {
  timespec time;
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * time.tv_nsec;
}

bool startsCold = false;

void emptyCaches() {
  static std::vector<char> lines(size_t{128} << 20);
  for (size_t i = 0; i < lines.size(); i += 64)
    ++lines[i];
}

/// Seconds of the fastest run in about a fifth of a second.
double fastest(const std::function<void()> &run) {
  run();
  double best = 1e30, end = now(CLOCK_MONOTONIC) + 0.2;
  do {
    if (startsCold)
      emptyCaches();
    double start = now();
    run();
    best = std::min(best, now() - start);
  } while (now(CLOCK_MONOTONIC) < end);
  return best;
}

/// Zeroed bytes in large pages, as the runtime's arena is; the benchmarks'
/// numbers do not matter.
struct Zeros {
  explicit Zeros(uint64_t size) {
    constexpr uint64_t page = uint64_t{2} << 20;
    uint64_t bytes = (size + 64) / page * page + page;
    data = static_cast<std::byte *>(std::aligned_alloc(page, bytes));
    madvise(data, bytes, MADV_HUGEPAGE);
    std::memset(data, 0, bytes);
  }
  ~Zeros() { std::free(data); }
  Zeros(const Zeros &) = delete;
  Zeros &operator=(const Zeros &) = delete;
  std::byte *data;
};

/// GF/s of one product that fits the caches, on `threads` threads at once.
class Peak {
public:
  Peak(const cpu::GemmSpec &spec, ThreadTeam &team)
      : spec(spec), team(team), lhs(spec.m * spec.k * 4),
        rhs(spec.k * spec.n * 4) {
    gemm = *cpu::Gemm::create(spec);
    (void)gemm->generate(team.size());
    for (int i = 0; i < team.size(); ++i) {
      scratch.push_back(std::make_unique<Zeros>(gemm->scratchBytes()));
      packed.push_back(std::make_unique<Zeros>(gemm->packedBytes()));
      dst.push_back(std::make_unique<Zeros>(spec.m * spec.n * 4));
    }
  }
  double gflops() {
    double seconds = fastest([&] {
      team.parallelFor(team.size() * 4, [&](int64_t begin, int64_t end, int t) {
        for (int64_t i = begin; i < end; ++i)
          gemm->run(t, lhs.data,
                    gemm->packedBytes() > 0 ? packed[t]->data : rhs.data,
                    dst[t]->data, nullptr, scratch[t]->data);
      });
    });
    return 8e-9 * spec.m * spec.n * spec.k * team.size() / seconds;
  }

private:
  cpu::GemmSpec spec;
  ThreadTeam &team;
  Zeros lhs, rhs;
  std::unique_ptr<cpu::Gemm> gemm;
  std::vector<std::unique_ptr<Zeros>> scratch, packed, dst;
};

cpu::GemmSpec dense(int64_t m, int64_t n, int64_t k, DType dtype) {
  cpu::GemmSpec spec;
  spec.m = m, spec.n = n, spec.k = k;
  spec.type = spec.dstType = dtype;
  spec.lhsLd = k, spec.rhsLd = n, spec.dstLd = n;
  return spec;
}

/// A prepared instruction with zeroed memory.
template <typename OperationT> class Runner {
public:
  Runner(TestProgram &program, const OperationT &op, ThreadTeam &team)
      : bytes(program.serializeFor(op)),
        plan(*flatbuffers::GetRoot<plan::Plan>(bytes.data())),
        program(*plan.programs()->Get(0)), arena(this->program.arena_bytes()),
        perThread(*workspaceBytesPerThread(this->program)),
        workspace(perThread * team.size()),
        library(*KernelLibrary::load(plan)) {
    PrepareContext context{plan,      this->program, arena.data, workspace.data,
                           perThread, team,          *library};
    double start = now();
    auto prepared = prepare(
        *this->program.lists()->Get(0)->instructions()->Get(0), context);
    prepareMs = 1e3 * (now() - start);
    if (!prepared.ok()) {
      std::fprintf(stderr, "%s\n", prepared.status().ToString().c_str());
      std::exit(1);
    }
    executable = *std::move(prepared);
  }
  void write(const std::vector<std::byte> &values) {
    std::memcpy(arena.data, values.data(), values.size());
  }
  double seconds() {
    return fastest([&] { executable->run({.sets = false}); });
  }
  uint64_t workspaceBytes() const { return perThread; }
  double prepareMs = 0;

private:
  std::vector<uint8_t> bytes;
  const plan::Plan &plan;
  const plan::Program &program;
  Zeros arena;
  uint64_t perThread;
  Zeros workspace;
  std::unique_ptr<KernelLibrary> library;
  std::unique_ptr<Executable> executable;
};

struct Product {
  int64_t m, k, n;
  bool lhsTransposed, rhsTransposed;
  DType out;
  plan::Accumulate accumulate;
};

void benchProduct(const Product &p, DType in, ThreadTeam &team, Peak &peak) {
  TestProgram program;
  plan::MatmulT op;
  auto add = [&](DType dtype, int64_t r, int64_t c, bool transposed) {
    uint32_t buffer = program.addBuffer(dtype, r * c);
    return program.addView(buffer, dtype, {1, r, c},
                           {r * c, transposed ? 1 : c, transposed ? r : 1});
  };
  DType out = in == DType::bf16 ? p.out : DType::f32;
  op.lhs = add(in, p.m, p.k, p.lhsTransposed);
  op.rhs = add(in, p.k, p.n, p.rhsTransposed);
  op.dst = add(out, p.m, p.n, false);
  op.accumulate = p.accumulate;
  Runner<plan::MatmulT> runner(program, op, team);
  double before = peak.gflops();
  double rate = 2e-9 * p.m * p.k * p.n / runner.seconds();
  double best = std::max(before, peak.gflops());
  std::printf("%6ld x %5ld x %5ld %s%s%s %-4s -> %-4s %7.1f GF/s  %.3f of "
              "%.1f  workspace %lu KiB, prepared in %.1f ms\n",
              long(p.m), long(p.k), long(p.n), p.lhsTransposed ? "T" : "-",
              p.rhsTransposed ? "T" : "-",
              p.accumulate == plan::Accumulate::no ? "-" : "+",
              in == DType::bf16 ? "bf16" : "f32",
              out == DType::bf16 ? "bf16" : "f32", rate, rate / best, best,
              (unsigned long)(runner.workspaceBytes() / 1024),
              runner.prepareMs);
}

void benchProducts(ThreadTeam &team) {
  using plan::Accumulate;
  const Product products[] = {
      {2048, 768, 3072, false, false, DType::bf16, Accumulate::no},
      {2048, 3072, 768, false, false, DType::bf16, Accumulate::no},
      {2048, 768, 2304, false, false, DType::bf16, Accumulate::no},
      {2048, 3072, 768, false, true, DType::bf16, Accumulate::no},
      {768, 2048, 3072, true, false, DType::f32, Accumulate::yes},
      {768, 2048, 3072, true, false, DType::f32, Accumulate::no},
      {3072, 2048, 768, true, false, DType::f32, Accumulate::no},
      {256, 768, 50257, false, true, DType::f32, Accumulate::no},
      {256, 768, 50257, false, true, DType::bf16, Accumulate::no},
      {256, 50257, 768, false, false, DType::bf16, Accumulate::no},
      {50257, 256, 768, true, false, DType::f32, Accumulate::yes}};
  for (DType dtype : {DType::f32, DType::bf16}) {
    cpu::GemmSpec spec = dense(256, 256, 768, dtype);
    spec.packRhs = true;
    Peak peak(spec, team);
    for (const Product &product : products)
      benchProduct(product, dtype, team, peak);
  }
}

/// Blocks that a causal mask leaves, in products of 128 x 128 x d.
double causalBlocks(int64_t s) {
  double blocks = (s + 127) / 128;
  return blocks * (blocks + 1) / 2;
}

void benchAttention(const AttentionCase &c, ThreadTeam &team) {
  // The fastest that there is: a machine without bf16 instructions has f32, and
  // f32 has oneDNN and tiles of our own.
  cpu::GemmSpec spec = dense(128, 128, 64, DType::f32);
  Peak wide(spec, team);
  spec.inCache = true;
  Peak tiles(spec, team);
  Peak peak(dense(128, 128, 64, c.dtype), team);
  AttentionProblem problem(c);
  double block = 2e-9 * 128 * 128 * c.d * causalBlocks(c.s) * c.b * c.heads;
  auto report = [&](const char *what, double products, double seconds,
                    uint64_t workspace) {
    double floor = products * block /
                   std::max({peak.gflops(), wide.gflops(), tiles.gflops()});
    std::printf("attention %s b %ld h %ld s %ld d %ld %s%s: %.2f ms, %.2f of "
                "its products' %.2f ms, workspace %lu KiB\n",
                what, long(c.b), long(c.heads), long(c.s), long(c.d),
                c.dtype == DType::bf16 ? "bf16" : "f32",
                c.rate > 0 ? " dropout" : "", 1e3 * seconds, seconds / floor,
                1e3 * floor, (unsigned long)(workspace / 1024));
  };
  if (!c.empty && !problem.program.run(problem.forward).ok())
    std::exit(1);
  Runner<plan::AttentionT> forward(problem.program, problem.forward, team);
  if (!c.empty)
    forward.write(problem.program.bytes());
  report("forward ", 2, forward.seconds(), forward.workspaceBytes());
  Runner<plan::AttentionGradT> backward(problem.program, problem.backward,
                                        team);
  if (!c.empty)
    backward.write(problem.program.bytes());
  report("backward", 5, backward.seconds(), backward.workspaceBytes());
}

void benchAttentions(ThreadTeam &team) {
  for (DType dtype : {DType::f32, DType::bf16})
    for (double rate : {0.0, 0.1})
      for (auto [b, s] : {std::pair{4, 512}, std::pair{1, 4096}}) {
        if (rate > 0 && s > 512)
          continue;
        benchAttention({.b = b,
                        .s = s,
                        .heads = 12,
                        .kvHeads = 12,
                        .d = 64,
                        .causal = true,
                        .dtype = dtype,
                        .rate = rate,
                        .empty = true},
                       team);
      }
}

void benchOneAttention(const std::string &type, int64_t heads, int64_t s,
                       ThreadTeam &team) {
  benchAttention({.s = s,
                  .heads = heads,
                  .kvHeads = heads,
                  .d = 64,
                  .causal = true,
                  .dtype = type == "bf16" ? DType::bf16 : DType::f32},
                 team);
}

struct Experts {
  int64_t experts, k, tokens, in, out;
  int64_t rows() const { return tokens * k; }
};

/// Rows of a tensor, or matrices of experts, with the last dim dense or the one
/// before it.
uint32_t addDense(TestProgram &program, DType type, const Dims &shape,
                  bool transposed = false) {
  Dims strides = rowMajor(shape);
  if (transposed) {
    strides[shape.size() - 1] = shape[shape.size() - 2];
    strides[shape.size() - 2] = 1;
  }
  uint32_t buffer = program.addBuffer(type, countOf(shape));
  return program.addView(buffer, type, shape, strides);
}

/// Equal rows for each expert, or all for the first.
uint32_t addBegins(TestProgram &program, const Experts &e, bool isUneven) {
  Values begins = {0};
  for (int64_t i = 1; i <= e.experts; ++i)
    begins.push_back(isUneven ? e.rows() : e.rows() * i / e.experts);
  return program.add(DType::i32, {e.experts + 1}, begins);
}

/// The fastest of an instruction with the bytes of `program`.
template <typename Op>
double secondsOf(TestProgram &program, const Op &op, ThreadTeam &team) {
  Runner<Op> runner(program, op, team);
  runner.write(program.bytes());
  return runner.seconds();
}

/// A dense product of as many flops: `batch` of them.
double denseSeconds(const Experts &e, DType type, int64_t batch,
                    bool isGradient, ThreadTeam &team) {
  TestProgram program;
  plan::MatmulT op;
  int64_t rows = e.rows() / batch;
  auto add = [&](DType of, const Dims &shape, bool transposed) {
    uint32_t view = addDense(program, of, shape, transposed);
    program.write(view, randomValues(countOf(shape), of, 1));
    return view;
  };
  if (isGradient) {
    op.lhs = add(type, {batch, e.in, rows}, true);
    op.rhs = add(type, {batch, rows, e.out}, false);
    op.dst = add(DType::f32, {batch, e.in, e.out}, false);
  } else {
    op.lhs = add(type, {batch, rows, e.in}, false);
    op.rhs = add(type, {batch, e.in, e.out}, true);
    op.dst = add(type, {batch, rows, e.out}, false);
  }
  return secondsOf(program, op, team);
}

double groupedSeconds(const Experts &e, DType type, bool isUneven,
                      bool transposed, ThreadTeam &team) {
  TestProgram program;
  plan::GroupedProductT op;
  op.lhs = addDense(program, type, {e.rows(), e.in});
  op.rhs = addDense(program, type, {e.experts, e.in, e.out}, transposed);
  op.out = addDense(program, type, {e.rows(), e.out});
  op.begins = addBegins(program, e, isUneven);
  program.write(op.lhs, randomValues(e.rows() * e.in, type, 1));
  program.write(op.rhs, randomValues(e.experts * e.in * e.out, type, 2));
  return secondsOf(program, op, team);
}

double gradientSeconds(const Experts &e, DType type, bool isUneven, bool adds,
                       ThreadTeam &team) {
  TestProgram program;
  plan::GroupedGradientT op;
  op.lhs = addDense(program, type, {e.rows(), e.in});
  op.rhs = addDense(program, type, {e.rows(), e.out});
  op.dst = addDense(program, DType::f32, {e.experts, e.in, e.out}, true);
  op.begins = addBegins(program, e, isUneven);
  op.accumulate = adds ? plan::Accumulate::yes : plan::Accumulate::no;
  program.write(op.lhs, randomValues(e.rows() * e.in, type, 1));
  program.write(op.rhs, randomValues(e.rows() * e.out, type, 2));
  program.write(op.dst, Values(e.experts * e.in * e.out));
  return secondsOf(program, op, team);
}

void benchExperts(const Experts &e, DType type, ThreadTeam &team) {
  auto report = [&](const char *what, bool isGradient, double seconds) {
    double dense = denseSeconds(e, type, 1, isGradient, team),
           each = denseSeconds(e, type, e.experts, isGradient, team);
    std::printf("experts %ld k %ld T %ld %ld -> %ld %-4s %-30s %7.2f ms, %.2f "
                "of one product's %.2f ms, %.2f of a batch's %.2f ms\n",
                long(e.experts), long(e.k), long(e.tokens), long(e.in),
                long(e.out), type == DType::bf16 ? "bf16" : "f32", what,
                1e3 * seconds, seconds / dense, 1e3 * dense, seconds / each,
                1e3 * each);
  };
  for (bool isUneven : {false, true}) {
    report(isUneven ? "all to one" : "product, N dense", false,
           groupedSeconds(e, type, isUneven, false, team));
    report(isUneven ? "all to one, K dense" : "product, K dense", false,
           groupedSeconds(e, type, isUneven, true, team));
    report(isUneven ? "all to one, gradient" : "gradient", true,
           gradientSeconds(e, type, isUneven, false, team));
    report(isUneven ? "all to one, gradient added" : "gradient added", true,
           gradientSeconds(e, type, isUneven, true, team));
  }
}

void benchAllExperts(ThreadTeam &team) {
  for (DType type : {DType::f32, DType::bf16})
    for (const Experts &e :
         {Experts{8, 2, 512, 512, 1024}, Experts{64, 8, 512, 512, 256}})
      benchExperts(e, type, team);
}

} // namespace
} // namespace meshwork::runtime::test

int main(int argc, char **argv) {
  using namespace meshwork::runtime;
  std::string what = argc > 1 ? argv[1] : "";
  ThreadTeam team(argc > 2 ? std::atoi(argv[2]) : 1, {});
  if (team.size() == 1)
    test::measuringClock = CLOCK_THREAD_CPUTIME_ID;
  test::startsCold = argc > 3 && std::strcmp(argv[3], "cold") == 0;
  if (argc == 6) {
    test::benchOneAttention(argv[3], std::atoi(argv[4]), std::atoi(argv[5]),
                            team);
    return 0;
  }
  if (what == "experts") {
    test::benchAllExperts(team);
    return 0;
  }
  if (what != "attention")
    test::benchProducts(team);
  if (what != "matmul")
    test::benchAttentions(team);
  return 0;
}
