// Frequencies against formulas written another way: per wavelength, as the
// variants' authors describe them.
#include <cmath>
#include <cstdlib>
#include <numbers>

#include "test/Import/TestConfigs.h"

namespace meshwork::importer {
namespace {

constexpr double pi = std::numbers::pi;

struct Found {
  std::vector<double> frequencies;
  double scale;
};

/// The numbers of the first rope op.
Found ropeOf(const std::string &more) {
  std::string model = modelOf(with(llamaKeys("llama"), "head_dim", "32"), more);
  size_t at = model.find("inverse_frequencies [");
  Found found;
  const char *next = model.c_str() + model.find('[', at) + 1;
  for (char *end = nullptr;; next = end + 2) {
    found.frequencies.push_back(std::strtod(next, &end));
    if (*end == ']')
      break;
  }
  found.scale = std::atof(model.c_str() + model.find("scale ", at) + 6);
  EXPECT_EQ(found.frequencies.size(), 16u);
  return found;
}

double plain(double theta, size_t i) {
  return 1 / std::pow(theta, 2.0 * static_cast<double>(i) / 32);
}

// Numbers are stored in f32.
void expectNear(double found, double expected, size_t i) {
  EXPECT_NEAR(found, expected, expected * 1e-7) << i;
}

TEST(Rope, Default) {
  for (const char *more : {"\"rope_theta\": 500000",
                           "\"rope_theta\": 500000.0, \"rope_scaling\": null",
                           "\"rope_parameters\": {\"rope_theta\": 500000, "
                           "\"rope_type\": \"default\"}"}) {
    Found found = ropeOf(more);
    EXPECT_EQ(found.scale, 1);
    for (size_t i = 0; i < 16; ++i)
      expectNear(found.frequencies[i], plain(500000, i), i);
  }
  expectNear(ropeOf("\"rope_theta\": null").frequencies[4], plain(10000, 4), 4);
}

TEST(Rope, Linear) {
  for (const char *key : {"type", "rope_type"}) {
    Found found = ropeOf(std::string("\"rope_scaling\": {\"") + key +
                         "\": \"linear\", \"factor\": 4}");
    for (size_t i = 0; i < 16; ++i)
      expectNear(found.frequencies[i], plain(10000, i) / 4, i);
  }
}

TEST(Rope, Llama3) {
  Found found = ropeOf(
      R"("rope_theta": 500000, "rope_scaling": {"rope_type": "llama3",
         "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4,
         "original_max_position_embeddings": 8192})");
  int kinds[3] = {};
  for (size_t i = 0; i < 16; ++i) {
    double f = plain(500000, i), wavelength = 2 * pi / f, expected;
    if (wavelength < 8192.0 / 4) {
      expected = f;
      ++kinds[0];
    } else if (wavelength > 8192.0) {
      expected = f / 8;
      ++kinds[1];
    } else {
      double smooth = (8192 / wavelength - 1) / (4 - 1);
      expected = (1 - smooth) * f / 8 + smooth * f;
      ++kinds[2];
    }
    expectNear(found.frequencies[i], expected, i);
  }
  for (int kind : kinds)
    EXPECT_GT(kind, 0); // the test meets every branch
  EXPECT_EQ(found.scale, 1);
}

TEST(Rope, Yarn) {
  Found found = ropeOf(
      R"("rope_scaling": {"rope_type": "yarn", "factor": 16,
         "original_max_position_embeddings": 256})");
  EXPECT_NEAR(found.scale, 0.1 * std::log(16) + 1, 1e-7);
  // Dims whose number of turns over 256 positions is 32 and 1:
  double low = std::floor(16 * std::log(256 / (32 * 2 * pi)) / std::log(10000));
  double high = std::ceil(16 * std::log(256 / (2 * pi)) / std::log(10000));
  EXPECT_EQ(low, 0);
  EXPECT_EQ(high, 7);
  for (size_t i = 0; i < 16; ++i) {
    double f = plain(10000, i);
    double ramp = std::min(1.0, (static_cast<double>(i) - low) / (high - low));
    expectNear(found.frequencies[i], f / 16 * ramp + f * (1 - ramp), i);
  }
}

TEST(Rope, YarnOptions) {
  auto yarn = [](const std::string &more) {
    return ropeOf(R"("rope_scaling": {"type": "yarn", "factor": 4)" + more +
                  "}");
  };
  EXPECT_NEAR(yarn(", \"attention_factor\": 1.5").scale, 1.5, 1e-7);
  EXPECT_NEAR(yarn(", \"mscale\": 2, \"mscale_all_dim\": 0.5").scale,
              (0.2 * std::log(4) + 1) / (0.05 * std::log(4) + 1), 1e-7);
  // The original context is max_position_embeddings, 256, when not given.
  EXPECT_EQ(yarn("").frequencies,
            yarn(", \"original_max_position_embeddings\": 256").frequencies);
  EXPECT_NE(yarn("").frequencies,
            yarn(", \"original_max_position_embeddings\": 64").frequencies);
  EXPECT_NE(yarn("").frequencies, yarn(", \"truncate\": false").frequencies);
  EXPECT_NE(yarn("").frequencies, yarn(", \"beta_fast\": 8").frequencies);
  EXPECT_NE(yarn("").frequencies, yarn(", \"beta_slow\": 2").frequencies);
}

// In the object, beside it, in both, or the model's own, 256.
TEST(Rope, OriginalContext) {
  const std::string key = "\"original_max_position_embeddings\": ";
  for (std::string type :
       {R"("rope_type": "yarn", "factor": 4)",
        R"("rope_type": "llama3", "factor": 8, "low_freq_factor": 1,
           "high_freq_factor": 4)"}) {
    auto given = [&](std::string inside, std::string beside) {
      inside = inside.empty() ? "" : ", " + key + inside;
      beside = beside.empty() ? "" : ", " + key + beside;
      return ropeOf("\"rope_scaling\": {" + type + inside + "}" + beside)
          .frequencies;
    };
    EXPECT_EQ(given("", "64"), given("64", ""));
    EXPECT_EQ(given("64", "64"), given("64", ""));
    EXPECT_EQ(given("64", "null"), given("64", ""));
    EXPECT_EQ(given("", ""), given("256", ""));
    EXPECT_NE(given("", "64"), given("", ""));
  }
  Found ratio =
      ropeOf(R"("rope_scaling": {"rope_type": "yarn", "factor": null}, )" +
             key + "64");
  Found four = ropeOf(
      R"("rope_scaling": {"rope_type": "yarn", "factor": 4}, )" + key + "64");
  EXPECT_EQ(ratio.frequencies, four.frequencies);
  EXPECT_EQ(ratio.scale, four.scale);
  Result plain = importKeys(llamaKeys("llama"), key + "64"); // says nothing
  EXPECT_EQ(mathOf(*plain.model), mathOf(modelOf(llamaKeys("llama"))));
  EXPECT_EQ(textOf(plain.diagnostics), "");
}

} // namespace
} // namespace meshwork::importer
