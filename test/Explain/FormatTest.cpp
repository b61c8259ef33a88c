// Numbers as people read them, and tables.
#include "lib/Explain/Format.h"
#include <gtest/gtest.h>

namespace meshwork::explain {
namespace {

TEST(Format, numbersKeepThreeDigits) {
  EXPECT_EQ(bytesText(0), "0 B");
  EXPECT_EQ(bytesText(1023), "1023 B");
  EXPECT_EQ(bytesText(1024), "1.00 KiB");
  EXPECT_EQ(bytesText(150 << 10), "150 KiB");
  EXPECT_EQ(bytesText(UINT64_MAX), "16384 PiB");
  EXPECT_EQ(countText(999), "999");
  EXPECT_EQ(countText(124439808), "124 M");
  EXPECT_EQ(countText(12500), "12.5 k");
  EXPECT_EQ(percentText(1, 3), "33.3 %");
  EXPECT_EQ(percentText(1, 0), "-");
}

TEST(Format, sumsDoNotWrap) {
  EXPECT_EQ(saturatingAdd(UINT64_MAX, 1), UINT64_MAX);
  EXPECT_EQ(saturatingMul(UINT64_MAX, 2), UINT64_MAX);
  EXPECT_EQ(saturatingMul(3, 4), 12u);
}

TEST(Format, textOfAPlanCannotDriveATerminal) {
  EXPECT_EQ(clean(std::string_view("a\x1b[2Jb\n")), "a\\x1b[2Jb\\n");
  EXPECT_EQ(clean(nullptr, "none"), "none");
  EXPECT_EQ(clean(std::string(1000, 'x')).size(), 403u);
}

TEST(Format, tablesAlignNumbersRight) {
  Table table({"name", ">bytes", "why"});
  table.add({"a", "5", "x"});
  table.add({"longer", "1000", ""});
  EXPECT_EQ(table.render(), "  name    bytes  why\n"
                            "  a           5  x\n"
                            "  longer   1000\n");
}

} // namespace
} // namespace meshwork::explain
