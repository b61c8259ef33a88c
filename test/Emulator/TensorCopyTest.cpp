// TMA: boxes of a tensor to shared memory and back.
#include "test/Emulator/Hopper.h"

namespace meshwork::ptx {
namespace {

constexpr unsigned columns = 100, rows = 20, pitch = 104; // elements
constexpr unsigned boxColumns = 64, boxRows = 16, boxSize = 1024;
constexpr int firstColumn = 64, firstRow = -3;

/// One warp loads a box, writes shared memory to `out`, and stores the box into
/// the tensor of the map at %in.
std::string copyText() {
  return absl::StrCat(R"(
  setp.ne.u32 %p0, %lane, 0; @%p0 bra READY;
  mbarrier.init.shared::cta.b64 [%bar], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 2048;
  mov.u32 %r1, 64; mov.u32 %r2, -3;
  cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%tile], [%map, {%r1, %r2}], [%bar];
  READY: bar.warp.sync -1;
)",
                      waitFor("%bar", "0", "WAIT"), R"(
  shl.b32 %r3, %lane, 2;
  DUMP: add.u32 %r4, %tile, %r3; ld.shared.b32 %r5, [%r4];
  cvt.u64.u32 %rd0, %r3; add.s64 %rd0, %out, %rd0; st.global.b32 [%rd0], %r5;
  add.u32 %r3, %r3, 128; setp.lt.u32 %p1, %r3, 2048; @%p1 bra DUMP;
  @%p0 bra END;
  cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%in, {64, -3}], [%tile];
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group.read 0;
  cp.async.bulk.wait_group 0;
  END:
)");
}

struct Copy {
  Copy()
      : tensor(rows * pitch), copy(rows * pitch), out(boxSize),
        maps(std::vector<TensorMap>{
            mapOf(copy, columns, rows, pitch * 2, boxColumns, boxRows)}) {
    for (uint16_t i = 0; i < tensor.size(); ++i)
      tensor[i] = i;
  }
  absl::Status run(const std::string &text) {
    return runHopper(
        text, 32, 2048, out, maps,
        mapOf(tensor, columns, rows, pitch * 2, boxColumns, boxRows));
  }
  ::testing::AssertionResult failsWith(const std::string &replaced,
                                       const std::string &by,
                                       const std::string &why) {
    return ptx::failsWith(
        run(absl::StrReplaceAll(copyText(), {{replaced, by}})), why);
  }
  Buffer<uint16_t> tensor, copy, out;
  Buffer<TensorMap> maps;
};
bool isInside(int row, int column) {
  return row >= 0 && row < int(rows) && column >= 0 && column < int(columns);
}

TEST(TensorCopy, BoxesWithSwizzleAndZerosOutside) {
  Copy copy;
  absl::Status status = copy.run(copyText());
  ASSERT_TRUE(status.ok()) << status;
  for (int r = 0; r < int(boxRows); ++r)
    for (int c = 0; c < int(boxColumns); ++c) {
      int row = firstRow + r, column = firstColumn + c;
      size_t at = size_t(r * 64 + ((c / 8) ^ (r % 8)) * 8 + c % 8);
      uint16_t expected =
          isInside(row, column)
              ? copy.tensor[size_t(row) * pitch + size_t(column)]
              : 0;
      ASSERT_EQ(copy.out[at], expected) << row << " " << column;
    }
  for (int i = 0; i < int(rows * pitch); ++i) {
    int row = i / int(pitch), column = i % int(pitch);
    bool stored = isInside(row, column) && column >= firstColumn &&
                  row < firstRow + int(boxRows);
    ASSERT_EQ(copy.copy[size_t(i)], stored ? copy.tensor[size_t(i)] : 0xffff)
        << row << " " << column;
  }
}

TEST(TensorCopy, ABoxThatNobodyWaitedForIsNotThere) {
  Copy copy;
  std::string wait = waitFor("%bar", "0", "WAIT");
  // The wait comes behind what reads.
  std::string text = absl::StrReplaceAll(
      copyText(), {{wait, ""}, {"@%p0 bra END;", wait + "@%p0 bra END;"}});
  absl::Status status = copy.run(text);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(copy.out[0], 0xffff);
  EXPECT_EQ(copy.copy[firstColumn], copy.tensor[firstColumn]);
}

TEST(TensorCopy, WhatIsMissingOrWrongIsFound) {
  Copy copy;
  EXPECT_TRUE(copy.failsWith(waitFor("%bar", "0", "WAIT"), "",
                             "nobody waited for its mbarrier"));
  EXPECT_TRUE(copy.failsWith("cp.async.bulk.wait_group.read 0;\n  "
                             "cp.async.bulk.wait_group 0;",
                             "", "ends without a cp.async.bulk.wait_group"));
  EXPECT_TRUE(copy.failsWith("cp.async.bulk.commit_group;", "",
                             "ends without a cp.async.bulk.wait_group"));
  EXPECT_TRUE(copy.failsWith("[%tile], [%map", "[%tile+128], [%map",
                             "is not a multiple of 1024"));
  EXPECT_TRUE(copy.failsWith("[%bar], 2048;", "[%bar], 1024;",
                             "signals an mbarrier that expects 1024"));
  EXPECT_TRUE(copy.failsWith("[%map, {%r1", "[%out, {%r1", "no tensor map at"));
  EXPECT_TRUE(copy.failsWith("[%in, {64, -3}]", "[%in, {64, -3, 0}]",
                             "another number of coordinates"));
  EXPECT_TRUE(copy.failsWith("@%p0 bra END;",
                             "@%p0 bra END; st.shared.b32 [%tile], 0;",
                             "was written by warp 0 without a fence.proxy"));
}

/// No swizzle: the box is dense.
TEST(TensorCopy, ThreeDims) {
  Buffer<float> tensor(5 * 6 * 8), out(2 * 3 * 4);
  for (unsigned i = 0; i < tensor.size(); ++i)
    tensor[i] = float(i);
  uint64_t dims[] = {8, 6, 5}, strides[] = {8 * 4, 6 * 8 * 4};
  uint32_t box[] = {4, 3, 2}, ones[] = {1, 1, 1};
  absl::StatusOr<TensorMap> map = encodeTensorMap(
      {7, 3, tensor.address(), dims, strides, box, ones, 0, 0, 0, 0});
  ASSERT_TRUE(map.ok()) << map.status();
  absl::Status status = runHopper(absl::StrCat(R"(
  setp.ne.u32 %p0, %lane, 0; @%p0 bra END;
  mbarrier.init.shared::cta.b64 [%bar], 1; fence.proxy.async;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 96;
  cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%tile], [%map, {2, 1, 3}], [%bar];
)",
                                               waitFor("%bar", "0", "WAIT"), R"(
  mov.u32 %r0, 0;
  DUMP: add.u32 %r1, %tile, %r0; ld.shared.b32 %r2, [%r1];
  cvt.u64.u32 %rd0, %r0; add.s64 %rd0, %out, %rd0; st.global.b32 [%rd0], %r2;
  add.u32 %r0, %r0, 4; setp.lt.u32 %p1, %r0, 96; @%p1 bra DUMP;
  END:
)"),
                                  32, 96, out, tensor, *map);
  ASSERT_TRUE(status.ok()) << status;
  for (unsigned i = 0; i < out.size(); ++i)
    EXPECT_EQ(out[i],
              float((3 + i / 12) * 48 + (1 + i / 4 % 3) * 8 + 2 + i % 4));
}

TEST(TensorCopy, MapsAreChecked) {
  Buffer<uint16_t> tensor(1);
  uint64_t dims[] = {64, 8}, strides[] = {128};
  uint32_t box[] = {64, 8}, ones[] = {1, 1};
  const TensorMapRequest good{
      9, 2, tensor.address(), dims, strides, box, ones, 0, 3, 2, 0};
  auto code = [](const TensorMapRequest &request) {
    return encodeTensorMap(request).status().code();
  };
  using Code = absl::StatusCode;
  EXPECT_EQ(code(good), Code::kOk);
  TensorMapRequest other = good;
  other.globalAddress += 8;
  EXPECT_EQ(code(other), Code::kInvalidArgument);
  other = good;
  other.dataType = 7; // f32: 256 bytes a row
  EXPECT_EQ(code(other), Code::kInvalidArgument);
  other = good;
  other.swizzle = 1;
  EXPECT_EQ(code(other), Code::kUnimplemented);
  auto with = [&](auto &value, auto wrong) {
    auto before = std::exchange(value, wrong);
    EXPECT_EQ(code(good), Code::kInvalidArgument);
    value = before;
  };
  with(strides[0], 136u);
  with(strides[0], 1ull << 40);
  with(dims[1], 0u);
  with(box[1], 257u);
  with(box[0], 4u);
  with(ones[0], 9u);
}

} // namespace
} // namespace meshwork::ptx
