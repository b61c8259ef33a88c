// Shared by the command lines of the tools: --version, values that --help
// lists, errors that say what to type instead.
//
//   CLI::App app("Runs a plan", "meshwork-run");
//   app.add_option("--steps", steps)->transform(cli::wholeNumber(0, 9));
//   cli::addChoice(app, "--schedule", shape, shapes, "Of the learning rate");
//   if (std::optional<int> code = cli::parse(app, argc, argv))
//     return *code;
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace meshwork::cli {

/// Parses the arguments. A value where the process should end at once: 0 after
/// --help or --version, 64 after a message about wrong usage.
std::optional<int> parse(CLI::App &app, int argc, char **argv);

/// Refuses what is no whole decimal number from `low` to `high`. For
/// `transform`, the others for `check`.
CLI::Validator wholeNumber(int64_t low, int64_t high);
/// Refuses what is no number, or none that `fits`.
CLI::Validator numberThat(std::function<bool(double)> fits,
                          std::string expected);
/// Refuses what is no finite number above 0.
CLI::Validator positiveNumber();
/// Refuses what is no finite number, 0 or more.
CLI::Validator numberFromZero();
/// Refuses an empty text, which a script gives when a variable of its is not
/// set. For `check`.
CLI::Validator notEmpty();

/// An option that takes one of the names in `choices`; --help lists them.
template <typename T>
CLI::Option *addChoice(CLI::App &app, const std::string &option, T &value,
                       const std::map<std::string, T> &choices,
                       const std::string &text) {
  auto assign = [&value, choices](const std::string &name) {
    value = choices.at(name);
  };
  std::vector<std::string> names;
  for (const auto &[name, choice] : choices)
    names.push_back(name);
  return app.add_option_function<std::string>(option, assign, text)
      ->check(CLI::IsMember(names).description(""))
      ->type_name(CLI::detail::generate_set(names));
}

} // namespace meshwork::cli
