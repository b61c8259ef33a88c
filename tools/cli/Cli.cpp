#include "tools/cli/Cli.h"

#include <charconv>
#include <cmath>
#include <iostream>
#include <sstream>

#include "lib/Spec/Diagnostic.h"
#include "meshwork/Runtime/ExitCode.h"
#include "runtime/io/IoStatus.h"
#include "runtime/io/Streams.h"

namespace meshwork::cli {
namespace {

std::vector<std::string> optionsOf(const CLI::App &app) {
  std::vector<std::string> names;
  for (const CLI::Option *option :
       app.get_options([](const CLI::Option *) { return true; }))
    for (const std::string &name : option->get_lnames())
      names.push_back("--" + name);
  return names;
}

/// `; did you mean "--steps"?` for an option that no command knows.
std::string unknownOption(const CLI::App &app) {
  const CLI::App *command = &app;
  for (const CLI::App *parsed : app.get_subcommands())
    command = parsed;
  for (const std::string &argument : app.remaining(true)) {
    std::string name = argument.substr(0, argument.find('='));
    if (name.size() > 1 && name[0] == '-')
      return "unknown option " + quote(name) +
             suggestion(name, optionsOf(*command));
  }
  return "";
}

/// The whole text as a number in decimal, or nothing.
template <typename T> std::optional<T> parsed(const std::string &text) {
  T value = 0;
  const char *end = text.data() + text.size();
  auto [stop, code] = std::from_chars(text.data(), end, value);
  return code == std::errc() && stop == end ? std::optional(value)
                                            : std::nullopt;
}

std::string refusal(const std::string &text, const std::string &expected) {
  return quote(text) + ", expected " + expected;
}

} // namespace

std::optional<int> parse(CLI::App &app, int argc, char **argv) {
  app.set_version_flag("--version", app.get_name() + " " MESHWORK_VERSION);
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::Success &success) { // --help, --version
    std::ostringstream text;
    app.exit(success, text);
    absl::Status written = runtime::fromIo(runtime::writeOut(text.str()));
    if (!written.ok())
      std::cerr << app.get_name() << ": error: " << written.message() << "\n";
    return runtime::exitCodeOf(written);
  } catch (const CLI::ParseError &error) {
    // An option that is misspelt may be the one that another error misses.
    std::string unknown = unknownOption(app);
    std::cerr << app.get_name() << ": error: "
              << printable(unknown.empty() ? error.what() : unknown)
              << "\nRun with --help for more information.\n";
    return static_cast<int>(runtime::ExitCode::usage);
  }
}

CLI::Validator wholeNumber(int64_t low, int64_t high) {
  std::string expected = "a whole number from " + std::to_string(low) + " to " +
                         std::to_string(high);
  return CLI::Validator(
      [=](std::string &text) {
        std::optional<int64_t> value = parsed<int64_t>(text);
        if (!value || *value < low || *value > high)
          return refusal(text, expected);
        text = std::to_string(*value); // CLI11 takes 010 for 8.
        return std::string();
      },
      "");
}

CLI::Validator numberThat(std::function<bool(double)> fits,
                          std::string expected) {
  return CLI::Validator(
      [fits = std::move(fits),
       expected = std::move(expected)](const std::string &text) {
        std::optional<double> value = parsed<double>(text);
        bool good = value && std::isfinite(*value) && fits(*value);
        return good ? std::string() : refusal(text, expected);
      },
      "");
}

CLI::Validator positiveNumber() {
  return numberThat([](double value) { return value > 0; }, "a number above 0");
}

CLI::Validator notEmpty() {
  return CLI::Validator(
      [](const std::string &text) {
        return text.empty() ? refusal(text, "a name") : std::string();
      },
      "");
}

CLI::Validator numberFromZero() {
  return numberThat([](double value) { return value >= 0; },
                    "a number, 0 or more");
}

} // namespace meshwork::cli
