// The table of options: what processes compare, and the table in the README.
#include "runtime/rank/OptionTable.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "test/Plan/TestPlan.h"
#include <gtest/gtest.h>
#include <set>

namespace meshwork::runtime::test {
using namespace plan::test;
namespace {

std::string shared(const RunOptions &options) {
  return absl::StrJoin(sharedOptions(options), " ");
}

TEST(OptionTable, sharedOptionsAreThoseThatDecideWhatIsComputed) {
  RunOptions options;
  EXPECT_EQ(shared(options),
            "--steps 0 --held-out 0 --seed 0 --lr 0.0003 --schedule constant "
            "--min-lr 0 "
            "--warmup-steps 0 --stable-steps 0 --decay-steps 0 "
            "--skip-bad-steps 0 "
            "--nccl-max-ctas 0");
  options.steps = 3;
  options.documentEnd = 0;
  options.learningRate.shape = LearningRate::Shape::linear;
  options.save = "w";
  options.compareCpu = true;
  options.metrics = "m"; // of the first process alone
  options.pin = false;   // of each machine
  options.threads = 2;
  options.transport = RunOptions::Transport::mpi;
  options.evalData = {"here/e", "here/f"};
  options.then = {"here/n@2"};
  EXPECT_EQ(shared(options),
            "--steps 3 --document-end 0 --eval-data --held-out 0 --seed 0 "
            "--lr 0.0003 "
            "--schedule linear "
            "--min-lr 0 --warmup-steps 0 --stable-steps 0 --decay-steps 0 "
            "--save \"w\" "
            "--skip-bad-steps 0 --nccl-max-ctas 0 --compare-cpu "
            "--then PLAN@2");
}

/// Every field has one row, and what a row needs stands above it.
TEST(OptionTable, rowsAreOfDifferentFieldsAndInOrder) {
  RunOptions options;
  std::set<std::string> above;
  std::set<const void *> fields;
  for (const OptionRow &row : optionTable()) {
    EXPECT_TRUE(above.insert(row.name).second) << row.name;
    const void *field = std::visit(
        [](auto *value) -> const void * { return value; }, row.field(options));
    EXPECT_TRUE(fields.insert(field).second) << row.name;
    for (const char *other : {row.needs, row.excludes})
      EXPECT_TRUE(!other || above.count(other)) << row.name << " " << other;
  }
}

std::string readmeTable() {
  std::string text = "| Option | | Needs | |\n|---|---|---|---|\n";
  for (const OptionRow &row : optionTable()) {
    std::string value = row.valueName;
    for (const OptionChoice &choice : row.choices)
      absl::StrAppend(&value, value.empty() ? "" : " or ", choice.name);
    absl::StrAppend(&text, "| `", row.name, value.empty() ? "" : " ", value,
                    "` | ", row.help, " | ");
    if (row.needs)
      absl::StrAppend(&text, "`", row.needs, "`",
                      row.orNeeds ? absl::StrCat(" or `", row.orNeeds, "`")
                                  : "");
    absl::StrAppend(&text, row.needs ? " | " : "| ",
                    row.isShared       ? "all ranks |\n"
                    : row.isGivenByAll ? "all ranks or none |\n"
                                       : "|\n");
  }
  return text;
}

TEST(OptionTable, isInTheReadme) {
  std::string readme =
      readFile(MESHWORK_SOURCE "/tools/meshwork-run/README.md");
  EXPECT_NE(readme.find(readmeTable()), std::string::npos)
      << "put this into tools/meshwork-run/README.md:\n"
      << readmeTable();
}
} // namespace
} // namespace meshwork::runtime::test
