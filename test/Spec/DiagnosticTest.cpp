#include "lib/Spec/Diagnostic.h"

#include <gtest/gtest.h>

#include "lib/Spec/Size.h"
#include "meshwork/Text/Counted.h"

namespace meshwork {
namespace {

TEST(Diagnostic, TextNamesThePlace) {
  Diagnostic d{Severity::error, {"s.toml", 3, 5}, "wrong"};
  EXPECT_EQ(d.text(), "s.toml:3:5: error: wrong");
  d.severity = Severity::warning;
  d.where = {"--set a=b", 0, 0};
  EXPECT_EQ(d.text(), "--set a=b: warning: wrong");
  EXPECT_FALSE(hasErrors({d}));
}

TEST(Diagnostic, SuggestsOnlyWhatIsNear) {
  std::vector<std::string> names = {"global", "micro", "sequence"};
  EXPECT_EQ(suggestion("sequnce", names), "; did you mean \"sequence\"?");
  EXPECT_EQ(suggestion("mirco", names), "; did you mean \"micro\"?");
  EXPECT_EQ(suggestion("micr", names), "; did you mean \"micro\"?");
  EXPECT_EQ(suggestion("temperature", names), "");
  EXPECT_EQ(suggestion("", names), "");
  EXPECT_EQ(suggestion(std::string(100000, 'x'), names), "");
}

TEST(Diagnostic, QuotesControlCharacters) {
  EXPECT_EQ(quote("a\x1b[0m\"\\"), "\"a\\x1b[0m\\\"\\\\\"");
  EXPECT_EQ(quote(std::string(1000, 'x')).size(), 125u);
}

TEST(Escape, LeavesNothingThatATerminalObeys) {
  EXPECT_EQ(printable("a\tb\n\x1b]0;\a\r"), "a\tb\n\\x1b]0;\\x07\\r");
  EXPECT_EQ(onOneLine("a\tb\n\x7f"), "a\\tb\\n\\x7f");
  // C1's CSI as one byte and as UTF-8, a mark of direction, a line separator.
  EXPECT_EQ(printable("\x9b[2J \xc2\x9b \xe2\x80\xae \xe2\x80\xa8"),
            "\\x9b[2J \\xc2\\x9b \\xe2\\x80\\xae \\xe2\\x80\\xa8");
}

TEST(Escape, LeavesLettersOfUtf8) {
  for (const char *text :
       {"\xc3\xa9t\xc3\xa9", "\xe6\xa8\xa1\xe5\x9e\x8b", "\xf0\x9f\x98\x80"})
    EXPECT_EQ(printable(text), text);
  // Too long a form, half of a surrogate pair, beyond the last, cut off.
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(printable("\xe6\xa8"), "\\xe6\\xa8");
  EXPECT_EQ(onOneLine("ab\xc3\xa9", 3), "ab...");
}

TEST(Diagnostic, IsOneLine) {
  Diagnostic d{Severity::error, {"a\nb", 1, 0}, "unknown key \x1b[2J\n"};
  EXPECT_EQ(d.text(), "a\\nb:1: error: unknown key \\x1b[2J\\n");
}

// A table below the message keeps its lines; the message has one.
TEST(Diagnostic, DetailsStandBelow) {
  Diagnostic one{Severity::error, {"a.toml", 1, 2}, "is\nwrong", "x\n \x1b"};
  EXPECT_EQ(one.text(), "a.toml:1:2: error: is\\nwrong\nx\n \\x1b");
}

TEST(Counted, OneHasNoPlural) {
  EXPECT_EQ(counted(1, "microbatch"), "1 microbatch");
  EXPECT_EQ(counted(0, "microbatch"), "0 microbatches");
  EXPECT_EQ(counted(2, "virtual stage"), "2 virtual stages");
  EXPECT_EQ(counted(2, "process"), "2 processes");
  EXPECT_EQ(counted(2, "entry"), "2 entries");
  EXPECT_EQ(counted(2, "key"), "2 keys");
  EXPECT_EQ(counted(2, "axis", "axes"), "2 axes");
}

TEST(Size, ReadsUnits) {
  EXPECT_EQ(spec::parseSize("20 GiB"), uint64_t{20} << 30);
  EXPECT_EQ(spec::parseSize("512MB"), 512000000u);
  EXPECT_EQ(spec::parseSize("200KB"), 200000u);
  EXPECT_EQ(spec::parseSize("200 kB"), 200000u);
  EXPECT_EQ(spec::parseSize("1.5 KiB"), 1536u);
  EXPECT_EQ(spec::parseSize("4096 B"), 4096u);
  EXPECT_EQ(spec::parseSize("8388607 TiB"), 8388607ull << 40);
}

TEST(Size, RefusesTheRest) {
  for (const char *text : {"", "20", "GiB", "20 gib", "-1 GiB", "0 B", "nan B",
                           "inf B", "1e3 B", "20 GiBs", "20 Gb", "20 kb",
                           "8388608 TiB", "0.5 B", "0x10 B", "20 GiB "})
    EXPECT_FALSE(spec::parseSize(text)) << text;
}

} // namespace
} // namespace meshwork
