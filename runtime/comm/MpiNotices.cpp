// What ranks tell each other beside their data; see MpiWorld.h.
#include "absl/strings/str_cat.h"
#include "runtime/comm/MpiWorld.h"
#include <algorithm>
#include <chrono>
#include <cstring>

namespace meshwork::runtime {
namespace {
enum Tag : int { failed = 1, question = 2, answer = 3 };
/// A notice must leave at once, without its receiver: within the eager limit of
/// every transport of Open MPI.
constexpr size_t maxText = 2000;
constexpr auto period = std::chrono::milliseconds(10);
constexpr auto periodUnderWay = std::chrono::microseconds(200);
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

void MpiWorld::post(uint32_t peer, int tag, std::string text) {
  std::lock_guard<std::mutex> lock(mutex);
  outbox.push_back({nullptr, std::move(text)});
  auto &[request, body] = outbox.back();
  // The other side may be gone; there is nobody to tell.
  (void)mpi.Isend(body.data(), static_cast<int>(body.size()), mpi.byte,
                  static_cast<int>(peer), tag, control, &request);
}

void MpiWorld::announce(const absl::Status &why, int code) {
  firstFailure.set(me, why);
  if (failedElsewhere() || announced.exchange(true))
    return;
  std::string notice =
      pack({static_cast<uint32_t>(why.code()), static_cast<uint32_t>(code)},
           std::string(why.message()));
  for (uint32_t peer = 0; peer < count; ++peer)
    if (peer != me)
      post(peer, failed, notice);
}

bool MpiWorld::ask(uint32_t peer, Waiting &found) {
  post(peer, question, pack({}, ""));
  std::unique_lock<std::mutex> lock(mutex);
  bool came = answered.wait_for(lock, patience,
                                [&] { return answers.count(peer) > 0; });
  if (came)
    found = answers[peer];
  answers.erase(peer);
  return came;
}

Waiting MpiWorld::longestWait() {
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

void MpiWorld::handle(uint32_t from, int tag, const std::string &packed) {
  std::vector<uint32_t> numbers;
  std::string text;
  if (!unpack(packed, numbers, text))
    return;
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
    post(from, answer, pack(std::move(reply), waiting.what));
  } else if (tag == answer && !numbers.empty()) {
    bool usesFiles = numbers[0] != 0;
    numbers.erase(numbers.begin());
    std::lock_guard<std::mutex> lock(mutex);
    answers[from] = {!numbers.empty(), text, numbers, usesFiles};
    answered.notify_all();
  }
}

void MpiWorld::listen() {
  while (!stopping) {
    int found = 0;
    MpiLibrary::Status status;
    if (mpi.Iprobe(MpiLibrary::anySource, MpiLibrary::anyTag, control, &found,
                   &status) != 0)
      return;
    if (!found) {
      if (underWay > 0)
        std::this_thread::sleep_for(periodUnderWay);
      else
        std::this_thread::sleep_for(period);
      continue;
    }
    std::string text(std::min<size_t>(status.count, 4 * maxText), '\0');
    if (mpi.Recv(text.data(), static_cast<int>(text.size()), mpi.byte,
                 status.source, status.tag, control, &status) != 0)
      return;
    handle(static_cast<uint32_t>(status.source), status.tag, text);
  }
}

} // namespace meshwork::runtime
