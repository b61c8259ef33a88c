// Attention by wgmma in one case of test/Emulator/attention, on a device:
// against double precision, by the bounds of its Reference.h.
#pragma once

#include "runtime/device/cuda/WgmmaAttention.h"
#include "runtime/machine/Bf16.h"
#include "test/Emulator/attention/Reference.h"
#include "test/Runtime/cpu/TestProgram.h"
#include "test/Runtime/cuda/TestDevice.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace meshwork::runtime::cuda::test {
using attention::test::Case;
using attention::test::Inputs;
using attention::test::Reference;
using attention::test::Result;
using attention::test::Values;

inline uint32_t bitsOf(double value, bool isF32) {
  float number = static_cast<float>(value);
  return isF32 ? std::bit_cast<uint32_t>(number) : toBf16(number);
}

/// [batch, rows, heads, d] with the gaps of a case, which nothing writes.
class Tensor {
public:
  Tensor(TestDevice &on, const Case &c, long long heads, long long rows,
         bool isF32 = false)
      : on(on), c(c), heads(heads), rows(rows), isF32(isF32),
        bytes(static_cast<size_t>(c.elements(heads, rows)) * size(), unwritten),
        memory(on.allocate(bytes.size() + 4096)) {
    on.write(memory, bytes);
  }
  void set(const Values &values) {
    eachElement([&](size_t dense, size_t stored) {
      uint32_t bits = bitsOf(values[dense], isF32);
      std::memcpy(&bytes[stored * size()], &bits, size());
    });
    on.write(memory, bytes);
  }
  void clear() { on.write(memory, bytes); }
  Values values() {
    std::vector<uint8_t> found = on.read<uint8_t>(memory, bytes.size());
    Values dense(static_cast<size_t>(c.batch * rows * heads * c.d));
    std::vector<bool> isElement(found.size());
    eachElement([&](size_t to, size_t from) {
      uint32_t bits = 0;
      std::memcpy(&bits, &found[from * size()], size());
      float value = std::bit_cast<float>(isF32 ? bits : bits << 16);
      dense[to] = static_cast<double>(value);
      std::fill_n(isElement.begin() + static_cast<long>(from * size()), size(),
                  true);
    });
    for (size_t i = 0; i < found.size(); ++i)
      EXPECT_TRUE(isElement[i] || found[i] == unwritten) << "between rows";
    return dense;
  }
  DevicePtr at() const {
    return memory + static_cast<DevicePtr>(c.gap) * size();
  }
  AttentionTensor described() const {
    return {{c.batch, heads, rows, c.d},
            {c.sampleStride(heads, rows), c.headStride(),
             c.positionStride(heads), 1},
            isF32};
  }

private:
  static constexpr uint8_t unwritten = 0x49;
  size_t size() const { return isF32 ? 4 : 2; }
  template <typename Visit> void eachElement(Visit visit) const {
    size_t dense = 0;
    for (long long b = 0; b < c.batch; ++b)
      for (long long i = 0; i < rows; ++i)
        for (long long h = 0; h < heads; ++h)
          for (long long e = 0; e < c.d; ++e)
            visit(dense++,
                  static_cast<size_t>(c.gap + b * c.sampleStride(heads, rows) +
                                      i * c.positionStride(heads) +
                                      h * c.headStride() + e));
  }

  TestDevice &on;
  const Case &c;
  long long heads, rows;
  bool isF32;
  std::vector<uint8_t> bytes;
  DevicePtr memory;
};

/// Which tokens the rows of a part are; all where there is one part.
inline std::vector<layout::Range> tokensOf(const Case &c, long long part) {
  layout::Cut cut{c.parts, part, layout::DimLayout::zigzag};
  return c.parts == 1 ? std::vector<layout::Range>()
                      : layout::ranges(c.sequence, {&cut, 1});
}

struct Outcome {
  Values out, lse, dq, dk, dv;
};

class Wgmma : public testing::Test {
protected:
  Wgmma() : kernels(load(on)) {}

  static std::unique_ptr<WgmmaKernels> load(TestDevice &on) {
    auto loaded = WgmmaKernels::load(*on.driver, on.device);
    expectOk(loaded.status());
    return *std::move(loaded);
  }

  static Inputs inputsOf(const Case &c) {
    auto random = [&](long long rows, long long heads, unsigned seed) {
      return runtime::test::randomValues(c.batch * rows * heads * c.d,
                                         plan::DType::bf16, seed);
    };
    Inputs in{random(c.rows(), c.heads, 11),
              random(c.columns(), c.kvHeads, 12),
              random(c.columns(), c.kvHeads, 13),
              random(c.rows(), c.heads, 14),
              0,
              0,
              0,
              0,
              documentsOf(c)};
    // Nobody may see what stands in padding.
    auto spoil = [&](Values &values, long long rows, long long heads,
                     auto tokenOf) {
      for (size_t at = 0; at < values.size(); ++at)
        if (tokenOf(static_cast<long long>(at) / (heads * c.d) % rows) < 0)
          values[at] = NAN;
    };
    for (Values *values : {&in.q, &in.dout})
      spoil(*values, c.rows(), c.heads,
            [&](long long row) { return c.queryOf(row); });
    for (Values *values : {&in.k, &in.v})
      spoil(*values, c.columns(), c.kvHeads,
            [&](long long column) { return c.keyOf(column); });
    return in;
  }
  static std::vector<int> documentsOf(const Case &c) {
    std::vector<int> documents;
    for (long long b = 0; b < c.batch; ++b)
      for (long long row = 0; row < c.rows(); ++row)
        documents.push_back(static_cast<int>(documentOf(c, b, c.queryOf(row))));
    return documents;
  }

  void run(Operation &operation) {
    expectOk(operation.enqueue(on.stream, false));
    on.synchronize();
  }

  static AttentionProblem problemOf(const Case &c) {
    AttentionProblem problem;
    problem.scale = c.scale;
    problem.causal = c.causal;
    problem.window = c.window;
    problem.documents = c.documents;
    problem.queries = tokensOf(c, c.part);
    if (c.hasKeys()) {
      problem.keys = tokensOf(c, c.keysOf);
      problem.totalKeys = c.sequence;
    }
    problem.lseStrides[0] = c.heads * c.rows();
    problem.lseStrides[1] = c.rows();
    return problem;
  }

  /// `again`: everything is launched twice, and what was first written is gone.
  Outcome outcomeOf(const Case &c, const Inputs &in, bool again = false) {
    auto ofQueries = [&](bool isF32) {
      return Tensor(on, c, c.heads, c.rows(), isF32);
    };
    auto ofKeys = [&](bool isF32) {
      return Tensor(on, c, c.kvHeads, c.columns(), isF32);
    };
    Tensor q = ofQueries(false), k = ofKeys(false), v = ofKeys(false),
           out = ofQueries(c.wideResults), rounded = ofQueries(false),
           dout = ofQueries(false), dq = ofQueries(c.wideResults),
           dk = ofKeys(c.wideResults), dv = ofKeys(c.wideResults);
    q.set(in.q);
    k.set(in.k);
    v.set(in.v);
    dout.set(in.dout);
    AttentionProblem problem = problemOf(c);
    problem.q = problem.dout = q.described();
    problem.k = problem.v = k.described();
    problem.out = out.described();
    problem.dq = dq.described();
    problem.dk = problem.dv = dk.described();
    size_t rows = static_cast<size_t>(c.batch * c.heads * c.rows());
    uint64_t workspaceBytes = static_cast<uint64_t>(
        c.batch * c.heads * ((c.rows() + 127) / 128 * 128) * 8);
    AttentionPlaces places{};
    places.q = q.at();
    places.k = k.at();
    places.v = v.at();
    places.out = out.at();
    places.lse = on.allocate(rows * 4);
    places.dout = dout.at();
    places.dq = dq.at();
    places.dk = dk.at();
    places.dv = dv.at();
    places.documents = on.allocate(in.documents.size() * 4);
    on.write(places.documents, in.documents);
    expectOk(WgmmaKernels::check(problem));
    auto forward = kernels->forward(problem, places, on.stream);
    expectOk(forward.status());
    run(**forward);
    if (again) {
      out.clear();
      run(**forward);
    }
    // The gradient reads what is stored for it, in bf16.
    Outcome found;
    found.out = out.values();
    rounded.set(found.out);
    problem.out = rounded.described();
    places.out = rounded.at();
    auto gradient =
        kernels->gradient(problem, places, on.allocate(workspaceBytes),
                          workspaceBytes, on.stream);
    expectOk(gradient.status());
    run(**gradient);
    if (again) {
      for (Tensor *each : {&dq, &dk, &dv})
        each->clear();
      run(**gradient);
    }
    std::vector<float> lse = on.read<float>(places.lse, rows);
    found.lse = Values(lse.begin(), lse.end());
    found.dq = dq.values();
    found.dk = dk.values();
    found.dv = dv.values();
    return found;
  }

  static void expectWithin(const char *what, const Values &found,
                           const Result &exact) {
    ASSERT_EQ(found.size(), exact.value.size());
    double worst = 0;
    size_t at = 0;
    for (size_t e = 0; e < found.size(); ++e) {
      double share =
          found[e] == exact.value[e]
              ? 0 // and infinite: of padding
              : std::fabs(found[e] - exact.value[e]) / exact.bound[e];
      if (!(share <= worst)) {
        worst = std::isnan(share) ? INFINITY : share;
        at = e;
      }
    }
    EXPECT_LE(worst, 1) << what << " [" << at << "]: found " << found[at]
                        << ", expected " << exact.value[at] << " within "
                        << exact.bound[at];
  }

  void expectCase(const Case &c) {
    Inputs in = inputsOf(c);
    Reference exact = attend(c, in);
    Outcome found = outcomeOf(c, in);
    expectWithin("out", found.out, exact.out);
    expectWithin("lse", found.lse, exact.lse);
    expectWithin("dq", found.dq, exact.dq);
    expectWithin("dk", found.dk, exact.dk);
    expectWithin("dv", found.dv, exact.dv);
  }

  TestDevice on;
  std::unique_ptr<WgmmaKernels> kernels;
};

} // namespace meshwork::runtime::cuda::test
