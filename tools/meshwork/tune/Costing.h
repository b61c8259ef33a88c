// Results of work by processes, or from the cache, which is as if a process had
// been quick.
#pragma once

#include "tools/meshwork/tune/Cache.h"
#include "tools/meshwork/tune/Workers.h"

#include <deque>
#include <map>
#include <set>

namespace meshwork::tune {

class Costing {
public:
  Costing(size_t processes, Cache &cache)
      : most(processes), workers(processes), cache(cache) {}

  bool isFull() const { return known.size() + keys.size() >= most; }
  bool isIdle() const { return known.empty() && keys.empty(); }
  /// As Workers::start.
  ///   content  all that the result depends on, beside this program
  bool start(size_t task, const std::string &content,
             const std::function<std::string()> &work);
  /// As Workers::wait. Faults of the compiler are not kept.
  std::optional<Workers::Finished> wait();

  /// Results of an earlier search.
  size_t fromCache() const { return cached; }

private:
  size_t most;
  Workers workers;
  Cache &cache;
  std::deque<Workers::Finished> known;
  std::map<size_t, std::string> keys; // of tasks that run
  std::set<std::string> own;          // keys of what this search found
  size_t cached = 0;
};

} // namespace meshwork::tune
