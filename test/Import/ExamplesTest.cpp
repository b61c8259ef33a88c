// Each example is read without a remark; GPT-2's dropout is not one.
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "lib/Import/Import.h"
#include "lib/Spec/Spec.h"

namespace meshwork {
namespace {

std::string contents(const std::filesystem::path &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Examples, AreReadWithoutARemark) {
  int models = 0, specs = 0;
  for (const auto &entry :
       std::filesystem::directory_iterator(EXAMPLES_FOLDER)) {
    std::string name = entry.path().filename().string();
    if (entry.path().extension() == ".json") {
      importer::Result result =
          importer::importConfig(contents(entry.path()), name);
      EXPECT_TRUE(result.model);
      std::erase_if(result.diagnostics, [](const Diagnostic &one) {
        return one.severity == Severity::note;
      });
      EXPECT_EQ(textOf(result.diagnostics), "");
      ++models;
    } else if (entry.path().extension() == ".toml") {
      spec::Result result = spec::parse(contents(entry.path()), name);
      EXPECT_TRUE(result.spec);
      EXPECT_EQ(textOf(result.diagnostics), "");
      ++specs;
    }
  }
  EXPECT_GE(models, 8);
  EXPECT_GE(specs, 5);
}

TEST(Examples, HaveThePublishedNumberOfParameters) {
  auto header = [](const char *name) {
    importer::Result result = importer::importConfig(
        contents(std::filesystem::path(EXAMPLES_FOLDER) / name), name);
    std::string model = result.model.value_or("");
    return model.substr(0, model.find('\n'));
  };
  // GPT-2 small as published: 124,439,808 with the tied head.
  EXPECT_NE(header("gpt2-124m.json").find("124439808 parameters"),
            std::string::npos);
}

} // namespace
} // namespace meshwork
