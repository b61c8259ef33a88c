// Device functions of instructions that are no clusters, as PTX that the
// emulator executes: against loops that say what Plan.fbs says.
#include <sys/mman.h>

#include "test/Codegen/DeviceCode.h"
#include "test/Support/TopK.h"

namespace meshwork::codegen {
namespace {

/// A table of `rows` rows of `width`, the ids that pick from it, and where a
/// shard begins.
struct Lookup {
  int64_t rows, width;
  std::vector<int32_t> ids;
  std::optional<int32_t> first = {};
  int64_t pad = 0; // elements between the rows of the many

  int64_t row(size_t i) const { return int64_t{ids[i]} - first.value_or(0); }
  bool isThere(size_t i) const { return row(i) >= 0 && row(i) < rows; }
  int64_t count() const { return static_cast<int64_t>(ids.size()); }
  int64_t stride() const { return width + pad; }
  std::string from() const {
    return first ? " from %first : " + memref({}, "i32") : "";
  }
  std::string views(const std::string &table, const std::string &many) const {
    return view("table", table) + view("ids", memref({count()}, "i32")) +
           view("first", memref({}, "i32")) + view("many", many);
  }
  template <typename T> std::string tableType() const {
    return memref({rows, width}, typeName<T>());
  }
  template <typename T> std::string manyType() const {
    return memref({count(), width}, typeName<T>(), {stride(), 1});
  }
};

template <typename Table, typename Out> void expectEmbedding(const Lookup &at) {
  std::string table = at.tableType<Table>(), out = at.manyType<Out>();
  Instructions code(at.views(table, out) +
                    "schedule.embedding \"e\" flops 0 bytes 0 %table, %ids" +
                    at.from() + " to %many : " + table + ", " +
                    memref({at.count()}, "i32") + " to " + out);
  Buffer<Table> rows(randomRows<Table>(at.rows * at.width, 1));
  Buffer<int32_t> ids(at.ids),
      first(std::vector<int32_t>{at.first.value_or(0)});
  Buffer<Out> many(at.count() * at.stride());
  if (at.first)
    code.run(0, rows, ids, first, many);
  else
    code.run(0, rows, ids, many);
  for (size_t i = 0; i < at.ids.size(); ++i)
    for (int64_t e = 0; e < at.width; ++e) {
      float found = floatOf(many[i * at.stride() + e]);
      if (at.isThere(i))
        ASSERT_EQ(found, floatOf(rounded<Out>(
                             floatOf(rows[at.row(i) * at.width + e]))))
            << i << " " << e;
      else
        ASSERT_TRUE(at.first ? found == 0 : std::isnan(found)) << i << " " << e;
    }
}

TEST(DeviceLibrary, Embedding) {
  std::vector<int32_t> ids = {3, 0, 15, -1, 16, 7, 7, 2147483647, 1};
  expectEmbedding<uint16_t, uint16_t>({16, 64, ids});
  expectEmbedding<float, float>({16, 64, ids});
  expectEmbedding<float, uint16_t>({16, 24, ids, 2}); // a shard
  expectEmbedding<uint16_t, float>({16, 40, ids, -5, 8});
  expectEmbedding<uint16_t, uint16_t>({16, 33, ids}); // element by element
  expectEmbedding<uint16_t, uint16_t>(
      {16, 64, ids, 1, 2}); // rows at multiples of 4 bytes
}

template <typename Table, typename From>
void expectGradient(const Lookup &at, bool adds) {
  std::string table = at.tableType<Table>(), dout = at.manyType<From>();
  Instructions code(
      at.views(table, dout) +
      "schedule.embedding_grad \"g\" flops 0 bytes 0 yes %ids, %many" +
      at.from() + " to %table : " + memref({at.count()}, "i32") + ", " + dout +
      " to " + table);
  std::vector<Table> old = randomRows<Table>(at.rows * at.width, 2);
  Buffer<Table> rows(old);
  Buffer<int32_t> ids(at.ids),
      first(std::vector<int32_t>{at.first.value_or(0)});
  Buffer<From> many(randomRows<From>(at.count() * at.stride(), 3));
  if (at.first)
    code.run(adds, ids, many, first, rows);
  else
    code.run(adds, ids, many, rows);
  std::vector<float> sums(at.rows * at.width);
  for (size_t i = 0; i < at.ids.size(); ++i)
    for (int64_t e = 0; e < at.width && at.isThere(i); ++e)
      sums[at.row(i) * at.width + e] += floatOf(many[i * at.stride() + e]);
  for (size_t i = 0; i < sums.size(); ++i)
    ASSERT_EQ(floatOf(rows[i]), floatOf(rounded<Table>(
                                    (adds ? floatOf(old[i]) : 0.0f) + sums[i])))
        << "row " << i / at.width << " col " << i % at.width;
}

std::vector<int32_t> randomIds(size_t count, int32_t rows, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int32_t> ids(count);
  for (int32_t &id : ids)
    id = static_cast<int32_t>(random() % static_cast<uint32_t>(rows));
  return ids;
}

TEST(DeviceLibrary, EmbeddingGradient) {
  for (bool adds : {false, true}) {
    expectGradient<uint16_t, uint16_t>({300, 64, randomIds(200, 300, 1)}, adds);
    expectGradient<float, float>({700, 20, randomIds(513, 700, 2)},
                                 adds); // more rows than blocks
    expectGradient<uint16_t, float>({64, 33, randomIds(40, 90, 3)},
                                    adds); // some ids beyond the table
    expectGradient<float, uint16_t>({50, 32, randomIds(300, 200, 4), 75, 8},
                                    adds); // a shard
    expectGradient<uint16_t, uint16_t>({8, 2304, randomIds(30, 8, 5)},
                                       adds); // columns in several turns
  }
}

// What one block has to add is more than its list holds.
TEST(DeviceLibrary, EmbeddingGradientOfFrequentRows) {
  std::vector<int32_t> one(3000, 5);
  expectGradient<uint16_t, uint16_t>({600, 16, one}, false);
  // Rows 1 and 529 have one block, as have 2 and 530; both are hit too often.
  std::vector<int32_t> ids = randomIds(4000, 2, 6);
  for (size_t i = 0; i < ids.size(); ++i)
    ids[i] = ids[i] ? 1 : 529 + static_cast<int32_t>(i % 2);
  expectGradient<float, float>({1100, 8, ids}, true);
  expectGradient<uint16_t, uint16_t>({16, 2176, std::vector<int32_t>(1200, 3)},
                                     true);
}

/// Rows 3 elements further apart than they are long.
void expectChoices(const test::TopKCase &c, const std::vector<float> &valid) {
  int64_t stride = c.experts + 3, out = c.k + 3;
  std::string scores = memref({c.rows, c.experts}, "f32", {stride, 1}),
              rows = memref({c.rows}, "f32"),
              choices = memref({c.rows, c.k}, "i32", {out, 1});
  Instructions code(view("scores", scores) + view("valid", rows) +
                    view("choices", choices, 0, "b") +
                    "schedule.top_k \"t\" flops 0 bytes 0 %scores" +
                    (valid.empty() ? "" : " valid %valid : " + rows) +
                    " groups " + std::to_string(c.groups) + " kept " +
                    std::to_string(c.kept) + " by " +
                    (c.addsTwo ? "two_best" : "maximum") +
                    " to %choices : " + scores + " to " + choices);
  Buffer<float> from(
      test::tiedScores(c.rows * stride, static_cast<uint32_t>(c.experts)));
  Buffer<int32_t> to(c.rows * out);
  if (valid.empty())
    code.run(0, from, to);
  else
    code.run(0, from, Buffer<float>(valid), to);
  for (int64_t row = 0; row < c.rows; ++row) {
    std::vector<float> own;
    for (int64_t e = 0; e < c.experts; ++e)
      own.push_back(from[row * stride + e]);
    std::vector<int32_t> expected = test::choicesOf(c, own);
    for (int64_t i = 0; i < c.k; ++i)
      ASSERT_EQ(to[row * out + i],
                valid.empty() || valid[row] != 0 ? expected[i] : -1)
          << c.experts << " experts, row " << row << ", choice " << i;
  }
}

TEST(DeviceLibrary, TopK) {
  for (const test::TopKCase &c : test::topKCases) {
    expectChoices(c, {});
    std::vector<float> valid(c.rows, 1);
    valid[c.rows / 2] = 0;
    expectChoices(c, valid);
  }
}

TEST(DeviceLibrary, CopyBlock) {
  struct Case {
    std::vector<int64_t> src, dst, srcStrides, dstStrides;
    int dim;
    int32_t first;
  };
  std::vector<Case> cases = {
      {{3, 16, 8}, {3, 4, 8}, {128, 8, 1}, {32, 8, 1}, 1, 8},
      {{3, 16, 8}, {3, 6, 8}, {128, 8, 1}, {48, 8, 1}, 1, 12}, // zeros behind
                                                               // the end
      {{3, 16, 8}, {3, 4, 8}, {128, 8, 1}, {32, 8, 1}, 1, 16}, // nothing is
                                                               // there
      {{10, 7}, {4, 7}, {9, 1}, {7, 1}, 0, 3},  // odd rows with gaps
      {{6, 10}, {6, 5}, {1, 6}, {1, 6}, 1, 5}}; // transposed
  for (const char *type : {"bf16", "f32", "i32"})
    for (const Case &c : cases) {
      auto check = [&](auto element) {
        using T = decltype(element);
        std::string src = memref(c.src, type, c.srcStrides),
                    dst = memref(c.dst, type, c.dstStrides),
                    first = memref({}, "i32");
        Instructions code(
            view("src", src) + view("first", first) + view("dst", dst, 0, "b") +
            "schedule.copy_block \"c\" flops 0 bytes 0 dim " +
            std::to_string(c.dim) + " %src from %first to %dst : " + src +
            " from " + first + " to " + dst);
        Buffer<T> from(512), to(512);
        for (size_t i = 0; i < from.size(); ++i)
          from[i] = static_cast<T>(i + 1);
        Buffer<int32_t> begin(std::vector<int32_t>{c.first});
        code.run(0, from, begin, to);
        std::vector<int64_t> at(c.dst.size(), 0);
        for (bool more = true; more;) {
          int64_t source = 0, target = 0;
          for (size_t d = 0; d < at.size(); ++d) {
            source +=
                (at[d] + (int(d) == c.dim ? c.first : 0)) * c.srcStrides[d];
            target += at[d] * c.dstStrides[d];
          }
          T expected = at[c.dim] + c.first < c.src[c.dim] ? from[source] : T(0);
          ASSERT_EQ(to[target], expected) << type << " " << target;
          more = false;
          for (size_t d = at.size(); d-- > 0 && !more;)
            more = ++at[d] < c.dst[d] || (at[d] = 0);
        }
      };
      if (type == std::string("bf16"))
        check(uint16_t());
      else
        check(uint32_t());
    }
}

TEST(DeviceLibrary, Fill) {
  auto check = [](const char *type, int64_t count, int64_t offset,
                  auto expected) {
    using T = decltype(expected);
    const char *value = type == std::string("i32") ? "2.0" : "2.5";
    Instructions code(view("x", memref({count}, type), offset) +
                      "schedule.fill \"f\" flops 0 bytes 0 " + value +
                      " to %x : " + memref({count}, type));
    Buffer<T> to(count + 16);
    ptx::Buffer<T> &buffer = to;
    uint64_t address =
        buffer.address() + (offset ? 16 / sizeof(T) / 4 * sizeof(T) : 0);
    code.run(0, address);
    T *begin = reinterpret_cast<T *>(address);
    for (int64_t i = 0; i < count; ++i)
      ASSERT_EQ(begin[i], expected) << type << " " << i << " of " << count;
    Buffer<T> untouched(1);
    EXPECT_EQ(begin[count], untouched[0]) << "wrote past the end";
  };
  for (int64_t count : {1, 7, 8, 1000, 1024, 5003}) {
    check("bf16", count, 0, uint16_t{0x4020});
    check("f32", count, 0, uint32_t{0x40200000});
    check("i32", count, 0, uint32_t{2});
    check("bf16", count, 4, uint16_t{0x4020});
    check("f32", count, 4, uint32_t{0x40200000});
  }
}
/// Device memory of zeros that is there where it is touched.
template <typename T> class Sparse {
public:
  explicit Sparse(int64_t count) : bytes(count * sizeof(T)) {
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, /*fd=*/-1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    ptx::BufferMemory::all().add({address(), address() + bytes});
  }
  ~Sparse() {
    ptx::BufferMemory::all().remove(address());
    munmap(memory, bytes);
  }
  Sparse(const Sparse &) = delete;
  uint64_t address() const { return reinterpret_cast<uint64_t>(memory); }
  T &operator[](int64_t i) { return static_cast<T *>(memory)[i]; }

private:
  void *memory;
  size_t bytes;
};

// Tables and tensors of more than 2^31 elements: their ends.
constexpr int64_t farRows = (1 << 17) + 1, farWidth = 1 << 14;

TEST(DeviceLibraryFar, Embedding) {
  Lookup at{farRows, farWidth, {0, static_cast<int32_t>(farRows) - 1}};
  std::string table = at.tableType<uint16_t>(), out = at.manyType<uint16_t>();
  Instructions code(at.views(table, out) +
                    "schedule.embedding \"e\" flops 0 bytes 0 %table, %ids to "
                    "%many : " +
                    table + ", " + memref({2}, "i32") + " to " + out);
  Sparse<uint16_t> rows(farRows * farWidth);
  rows[farWidth - 1] = 7;
  rows[farRows * farWidth - 1] = 9;
  Buffer<int32_t> ids(at.ids);
  Buffer<uint16_t> many(2 * farWidth);
  code.run(0, rows.address(), ids, many);
  EXPECT_EQ(many[farWidth - 1], 7);
  EXPECT_EQ(many[2 * farWidth - 1], 9);
}

TEST(DeviceLibraryFar, EmbeddingGrad) {
  Lookup at{farRows, farWidth, {0, static_cast<int32_t>(farRows) - 1}};
  std::string table = at.tableType<uint16_t>(), dout = at.manyType<uint16_t>();
  Instructions code(
      at.views(table, dout) +
      "schedule.embedding_grad \"g\" flops 0 bytes 0 yes %ids, %many to "
      "%table : " +
      memref({2}, "i32") + ", " + dout + " to " + table);
  Sparse<uint16_t> rows(farRows * farWidth);
  Buffer<int32_t> ids(at.ids);
  Buffer<uint16_t> many(randomRows<uint16_t>(2 * farWidth, 3));
  code.run(/*adds=*/1, ids, many, rows.address());
  for (int64_t e = 0; e < farWidth; ++e) {
    ASSERT_EQ(rows[e], many[e]) << e;
    ASSERT_EQ(rows[(farRows - 1) * farWidth + e], many[farWidth + e]) << e;
  }
}

TEST(DeviceLibraryFar, CopyBlock) {
  std::string type = memref({farRows, farWidth}, "bf16"),
              first = memref({}, "i32");
  Instructions code(view("src", type) + view("first", first) +
                    view("dst", type, 0, "b") +
                    "schedule.copy_block \"c\" flops 0 bytes 0 dim 0 %src from "
                    "%first to %dst : " +
                    type + " from " + first + " to " + type);
  Sparse<uint16_t> from(farRows * farWidth), to(farRows * farWidth);
  int64_t row = (farRows - 2) * farWidth;
  for (int64_t e = 0; e < 2 * farWidth; ++e) {
    from[row + e] = static_cast<uint16_t>(e + 1);
    to[row + e] = 0xffff;
  }
  Buffer<int32_t> begin(std::vector<int32_t>{1});
  code.lastBlocks = 2 * farWidth / 8 / 256; // of 256 vectors of 8
  code.run(0, from.address(), begin, to.address());
  for (int64_t e = 0; e < farWidth; ++e) {
    ASSERT_EQ(to[row + e], from[row + farWidth + e]) << e;
    ASSERT_EQ(to[row + farWidth + e], 0) << e;
  }
}

TEST(DeviceLibraryFar, Fill) {
  std::string type = memref({farRows * farWidth}, "bf16");
  Instructions code(view("x", type) +
                    "schedule.fill \"f\" flops 0 bytes 0 2.5 to %x : " + type);
  Sparse<uint16_t> to(farRows * farWidth);
  code.lastBlocks = 4;
  code.run(0, to.address());
  int64_t end = farRows * farWidth, begin = end - 4 * 256 * 8;
  EXPECT_EQ(to[begin - 1], 0);
  for (int64_t i = begin; i < end; ++i)
    ASSERT_EQ(to[i], 0x4020) << i;
}
} // namespace
} // namespace meshwork::codegen
