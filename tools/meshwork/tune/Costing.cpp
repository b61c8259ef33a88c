#include "tools/meshwork/tune/Costing.h"

#include "tools/meshwork/tune/Costed.h"

namespace meshwork::tune {

bool Costing::start(size_t task, const std::string &content,
                    const std::function<std::string()> &work) {
  std::string key = cacheKey(content);
  if (const std::string *result = cache.find(key)) {
    known.push_back({task, *result});
    cached += own.contains(key) ? 0 : 1;
    return true;
  }
  bool isStarted = workers.start(task, work);
  if (isStarted)
    keys[task] = std::move(key);
  return isStarted;
}

std::optional<Workers::Finished> Costing::wait() {
  if (!known.empty()) {
    Workers::Finished finished = std::move(known.front());
    known.pop_front();
    return finished;
  }
  std::optional<Workers::Finished> finished = workers.wait();
  if (!finished)
    return std::nullopt;
  if (!isBroken(finished->result)) {
    cache.add(keys[finished->task], finished->result);
    own.insert(keys[finished->task]);
  }
  keys.erase(finished->task);
  return finished;
}

} // namespace meshwork::tune
