// Collects what is wrong with a table. Internal to lib/Schedules.
#ifndef MESHWORK_LIB_SCHEDULES_FAULTS_H
#define MESHWORK_LIB_SCHEDULES_FAULTS_H

#include "lib/Schedules/Table.h"

#include "absl/status/status.h"

#include <string>
#include <vector>

namespace meshwork::schedules {

class Faults {
public:
  explicit Faults(const Table &table) : table(table) {}
  /// "rank 1, action 5 (2F0): `what`". Positions count from 0 here and from 1
  /// in the text, as columns of a CSV do.
  void at(size_t rank, size_t position, const std::string &what);
  /// Of the table as a whole.
  void add(std::string what);
  bool none() const { return count == 0; }
  /// OK, or the first faults, a line each, and how many more there are.
  absl::Status status() const;

private:
  const Table &table;
  std::vector<std::string> first;
  size_t count = 0;
};

} // namespace meshwork::schedules

#endif // MESHWORK_LIB_SCHEDULES_FAULTS_H
