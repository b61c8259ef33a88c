// What ranks tell each other beside their data; see World.h.
#include "absl/strings/str_cat.h"
#include "runtime/comm/World.h"
#include <algorithm>
#include <chrono>
#include <cstring>

namespace meshwork::runtime {
namespace {
enum Tag : int { failed = 1, question = 2, answer = 3 };
/// A notice must leave at once, without its receiver: within the eager limit of
/// every transport of Open MPI.
constexpr size_t maxText = 2000;
constexpr std::chrono::microseconds period(10'000);
constexpr std::chrono::microseconds periodUnderWay(200);
constexpr auto patience = std::chrono::milliseconds(700);

/// Numbers and then text, as bytes.
std::string pack(std::vector<uint32_t> numbers, const std::string &text) {
  numbers.insert(numbers.begin(), static_cast<uint32_t>(numbers.size()));
  std::string packed(reinterpret_cast<const char *>(numbers.data()),
                     numbers.size() * sizeof(uint32_t));
  return packed + text.substr(0, maxText);
}

/// False for what no rank of this program sends.
bool unpack(const std::string &packed, std::vector<uint32_t> &numbers,
            std::string &text) {
  uint32_t size = 0;
  if (packed.size() < sizeof(size))
    return false;
  std::memcpy(&size, packed.data(), sizeof(size));
  if (size > (packed.size() - sizeof(size)) / sizeof(uint32_t))
    return false;
  numbers.resize(size);
  // Where there are none, memcpy may not be given their place.
  std::copy_n(packed.data() + sizeof(size), size * sizeof(uint32_t),
              reinterpret_cast<char *>(numbers.data()));
  text = packed.substr(sizeof(size) * (size_t{size} + 1));
  return true;
}
} // namespace

void World::announce(const absl::Status &why, int code) {
  firstFailure.set(me, why);
  if (failedElsewhere() || announced.exchange(true))
    return;
  std::string notice =
      pack({static_cast<uint32_t>(why.code()), static_cast<uint32_t>(code)},
           std::string(why.message()));
  for (uint32_t peer = 0; peer < count; ++peer)
    if (peer != me)
      messages.post(peer, failed, notice);
}

bool World::ask(uint32_t peer, Waiting &found) {
  messages.post(peer, question, pack({}, ""));
  std::unique_lock<std::mutex> lock(mutex);
  bool came = answered.wait_for(lock, patience,
                                [&] { return answers.count(peer) > 0; });
  if (came)
    found = answers[peer];
  answers.erase(peer);
  return came;
}

Waiting World::longestWait() {
  std::lock_guard<std::mutex> lock(mutex);
  Waiting busy; // waits for nobody, and says with what
  for (const Waiting &waiting : waits) {
    if (waiting.active)
      return waiting;
    if (!waiting.what.empty())
      busy = waiting;
  }
  return fileWork.empty() ? busy : Waiting{false, fileWork, {}, true};
}

void World::handle(const Messages::Notice &notice) {
  if (notice.tag == Messages::gone) {
    firstFailure.set(
        notice.from,
        absl::UnavailableError(absl::StrCat(
            "the process of rank ", notice.from,
            " has ended without a word, or its host is not reached any more")));
    return;
  }
  std::vector<uint32_t> numbers;
  std::string text;
  if (!unpack(notice.text, numbers, text))
    return;
  auto [from, tag] = std::pair(notice.from, notice.tag);
  if (tag == failed && numbers.size() == 2) {
    if (announced)
      return; // Both told at once; this rank goes its own way.
    if (!noticed)
      exitCode = static_cast<int>(numbers[1] & 0xff);
    noticed = true; // Before the failure shows.
    firstFailure.set(
        from,
        absl::Status(static_cast<absl::StatusCode>(1 + numbers[0] % 16), text));
  } else if (tag == question) {
    Waiting waiting = longestWait();
    if (waiting.peers.size() > maxText / sizeof(uint32_t))
      waiting.peers.resize(maxText / sizeof(uint32_t));
    std::vector<uint32_t> reply = std::move(waiting.peers);
    reply.insert(reply.begin(), waiting.usesFiles);
    messages.post(from, answer, pack(std::move(reply), waiting.what));
  } else if (tag == answer && !numbers.empty()) {
    bool usesFiles = numbers[0] != 0;
    numbers.erase(numbers.begin());
    std::lock_guard<std::mutex> lock(mutex);
    answers[from] = {!numbers.empty(), text, numbers, usesFiles};
    answered.notify_all();
  }
}

void World::listen() {
  while (!stopping) {
    absl::StatusOr<std::optional<Messages::Notice>> notice =
        messages.nextNotice(underWay > 0 ? periodUnderWay : period);
    if (!notice.ok())
      return;
    if (*notice)
      handle(**notice);
  }
}

} // namespace meshwork::runtime
