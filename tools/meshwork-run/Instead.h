// What stands in the place of a plan: --measure-machine and --self-test.
#pragma once

#include "absl/status/status.h"
#include "meshwork/Runtime/Run.h"
#include "tools/cli/Cli.h"

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace meshwork {

class InsteadOfPlan {
public:
  /// The options themselves; with one of them `plan` need not be given. The
  /// object must outlive the parsing.
  InsteadOfPlan(CLI::App &app, CLI::Option *plan);

  /// Throws where beside one there is what it does not take.
  void check() const;
  /// Nothing where none is asked for.
  std::optional<absl::Status> run(const runtime::RunOptions &options) const;

private:
  /// One of them, with the options that it takes.
  struct Way {
    const char *name, *help;
    std::set<std::string> fine;
    std::function<absl::Status(const std::string &path,
                               const runtime::RunOptions &options)>
        run;
    std::string path = {}; // of the file to write; "": it is not asked for
  };

  std::vector<Way> allWays() const;
  void add(Way &way);
  void addDevice();
  void check(const Way &way) const;
  void checkDevice() const;

  CLI::App &app;
  CLI::Option *plan;
  bool onGpus = false;
  std::vector<Way> ways;
};

} // namespace meshwork
