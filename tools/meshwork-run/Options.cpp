#include "tools/meshwork-run/Options.h"

#include "runtime/rank/OptionTable.h"

namespace meshwork {
namespace {

using runtime::OptionChoice;
using runtime::OptionRow;
using Transport = runtime::RunOptions::Transport;
using Shape = runtime::LearningRate::Shape;

/// Makes an option of the command line of a row of the table.
struct Adder {
  CLI::App &app;
  const OptionRow &row;

  CLI::Option *operator()(bool *flag) const {
    return app.add_flag_callback(
        row.name, [flag, given = !*flag] { *flag = given; }, row.help);
  }
  CLI::Option *operator()(double *number) const {
    return app.add_option(row.name, *number, row.help)
        ->check(cli::numberThat(
            [&row = row](double value) { return isAllowed(row, value); },
            allowedNumbers(row)));
  }
  CLI::Option *operator()(std::string *text) const {
    if (row.choices.empty())
      return app.add_option(row.name, *text, row.help)->check(cli::notEmpty());
    CLI::Option *option =
        addChoice(*text, [](const OptionChoice &one) { return one.name; });
    return text->empty() ? option : option->default_str(*text);
  }
  /// A value each time that it is given.
  CLI::Option *operator()(std::vector<std::string> *texts) const {
    return app.add_option(row.name, *texts, row.help)
        ->check(cli::notEmpty())
        ->allow_extra_args(false);
  }
  CLI::Option *operator()(Shape *shape) const { return addEnum(*shape); }
  CLI::Option *operator()(Transport *transport) const {
    return addEnum(*transport);
  }
  template <typename Whole> CLI::Option *operator()(Whole *number) const {
    return app.add_option(row.name, *number, row.help)
        ->transform(cli::wholeNumber(row.least, row.most));
  }

  template <typename T, typename ValueOf>
  CLI::Option *addChoice(T &value, ValueOf valueOf) const {
    std::map<std::string, T> values;
    for (const OptionChoice &one : row.choices)
      values[one.name] = valueOf(one);
    return cli::addChoice(app, row.name, value, values, row.help);
  }
  template <typename Enum> CLI::Option *addEnum(Enum &value) const {
    auto valueOf = [](const OptionChoice &one) {
      return static_cast<Enum>(one.value);
    };
    CLI::Option *option = addChoice(value, valueOf);
    for (const OptionChoice &one : row.choices)
      if (valueOf(one) == value)
        option->default_str(one.name);
    return option;
  }
};
} // namespace

void addOptions(CLI::App &app, runtime::RunOptions &options) {
  for (const OptionRow &row : runtime::optionTable()) {
    CLI::Option *option = std::visit(Adder{app, row}, row.field(options));
    option->group(row.group);
    if (*row.valueName)
      option->type_name(row.valueName);
    if (row.showsDefault && row.choices.empty())
      option->capture_default_str();
    if (row.needs && !row.orNeeds)
      option->needs(app.get_option(row.needs));
    if (row.excludes)
      option->excludes(row.excludes);
  }
}

void checkNeeds(const CLI::App &app) {
  for (const OptionRow &row : runtime::optionTable())
    if (row.orNeeds && app.count(row.name) > 0 && app.count(row.needs) == 0 &&
        app.count(row.orNeeds) == 0)
      throw CLI::RequiresError(row.name,
                               std::string(row.needs) + " or " + row.orNeeds);
}

} // namespace meshwork
