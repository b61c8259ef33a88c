// What reading a table from CSV is made of.
#ifndef MESHWORK_LIB_SCHEDULES_CSVPARTS_H
#define MESHWORK_LIB_SCHEDULES_CSVPARTS_H

#include "lib/Schedules/Table.h"

#include "absl/status/status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace meshwork::schedules {

/// `text` without the space, tabs and line ends around it.
std::string_view trimmed(std::string_view text);

/// The first errors of a file, and how many more there are.
class CsvErrors {
public:
  explicit CsvErrors(std::string_view name) : name(name) {}
  /// Ranks and cells are counted from 0; what is told counts cells from 1.
  void add(size_t rank, size_t cell, const std::string &message);
  void add(const std::string &message);
  bool none() const { return count == 0; }
  /// What is added from now on is only counted.
  bool full() const { return count >= most; }
  absl::Status status() const;

private:
  static constexpr size_t most = 20;

  void addLine(const std::string &line);

  std::string name, lines;
  size_t count = 0;
};

/// Reads a cell that is not empty and has no space around it, and adds its
/// actions. Actions on parameters are only counted: a table has none. On
/// failure says what was found and expected.
std::string readCell(std::string_view cell, std::vector<Action> &actions,
                     size_t &passedOver);

/// What could stand after `before` on one rank, at most some of each kind:
/// "2F4, 2B0 or 2W0"; empty where nothing is known.
std::string legalAfter(const std::vector<Action> &before);

/// An action table, and the cell that each action stood in.
struct CsvTable {
  Table table;
  std::vector<std::vector<uint32_t>> cells;
};

/// Finds the stages' ranks and the number of microbatches, or errors.
void complete(CsvTable &read, CsvErrors &errors);

} // namespace meshwork::schedules

#endif // MESHWORK_LIB_SCHEDULES_CSVPARTS_H
