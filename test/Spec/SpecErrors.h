// What specs that are wrong are told; a good one to make wrong.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/Spec/Spec.h"

namespace meshwork::spec {

using testing::HasSubstr;

inline const std::string good = R"([mesh]
axes = ["dp=2"]
[batch]
global = 16
micro = 4
sequence = 128
)";

inline std::string errorsOf(const std::string &text,
                            const std::vector<std::string> &overrides = {}) {
  Result result = parse(text, "s.toml", overrides);
  EXPECT_FALSE(result.spec) << "no error in\n" << text;
  return textOf(result.diagnostics);
}

inline void expectError(const std::string &added, const std::string &message) {
  EXPECT_THAT(errorsOf(good + added), HasSubstr(message)) << added;
}

inline void expectSetError(const std::string &setting,
                           const std::string &message) {
  EXPECT_THAT(errorsOf(good, {setting}),
              HasSubstr("--set " + setting + ": error: " + message))
      << setting;
}

} // namespace meshwork::spec
