#include "test/Support/Emulator/driver/State.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

#include <cstdlib>
#include <numeric>

namespace meshwork::emulator {
namespace {

thread_local DeviceState *contextOfThread = nullptr;

/// A variable that is there and no number ends the process: a test that sets
/// it meant something.
uint64_t number(const char *name, uint64_t otherwise) {
  const char *text = std::getenv(name);
  if (!text || !*text)
    return otherwise;
  char *end = nullptr;
  uint64_t value = std::strtoull(text, &end, 10);
  if (*end) {
    say(absl::StrCat(name, "=", text, " is no number"));
    std::abort();
  }
  return value;
}

void readCapability(Settings &settings) {
  const char *text = std::getenv("MESHWORK_EMULATOR_CC");
  if (!text || !*text)
    return;
  if (std::sscanf(text, "%d.%d", &settings.major, &settings.minor) != 2) {
    say(absl::StrCat("MESHWORK_EMULATOR_CC=", text, ", expected such as 8.0"));
    std::abort();
  }
}

Settings readSettings() {
  Settings settings;
  readCapability(settings);
  settings.driver = int(number("MESHWORK_EMULATOR_DRIVER", 13000));
  settings.devices = int(number("MESHWORK_EMULATOR_DEVICES", 1));
  settings.memoryBytes = number("MESHWORK_EMULATOR_MEMORY", 4ull << 30);
  settings.jitterUs = unsigned(number("MESHWORK_EMULATOR_JITTER_US", 0));
  settings.threads = unsigned(number("MESHWORK_EMULATOR_THREADS", 1));
  settings.instructions =
      number("MESHWORK_EMULATOR_INSTRUCTIONS", settings.instructions);
  if (const char *path = std::getenv("MESHWORK_EMULATOR_CALLS"))
    settings.calls = path;
  return settings;
}

/// Of as many devices: those that CUDA_VISIBLE_DEVICES names by their numbers,
/// up to the first that is none; all where it is not set.
std::vector<int> visibleDevices(int devices) {
  std::vector<int> visible;
  const char *text = std::getenv("CUDA_VISIBLE_DEVICES");
  if (!text) {
    visible.resize(devices);
    std::iota(visible.begin(), visible.end(), 0);
    return visible;
  }
  int device = 0;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    if (!absl::SimpleAtoi(part, &device) || device < 0 || device >= devices)
      break;
    visible.push_back(device);
  }
  return visible;
}

State *makeState() {
  auto *made = new State;
  made->settings = readSettings();
  std::vector<int> visible = visibleDevices(made->settings.devices);
  made->settings.devices = int(visible.size());
  for (int d = 0; d < made->settings.devices; ++d) {
    made->devices.emplace_back().ordinal = d;
    made->devices.back().numberHere = visible[d];
  }
  return made;
}

} // namespace

State &state() {
  static State *const all = makeState();
  return *all;
}

void say(const std::string &text) {
  // One write, so that lines of several threads do not mix.
  std::string line = "meshwork emulator: " + text + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
}

static void noteLine(const std::string &line) {
  const std::string &path = state().settings.calls;
  if (path.empty())
    return;
  // Open to the end of the process, which streams may outlive.
  static std::FILE *const file = std::fopen(path.c_str(), "w");
  if (!file) {
    say(absl::StrCat("cannot write MESHWORK_EMULATOR_CALLS=", path));
    std::abort();
  }
  std::fprintf(file, "%s\n", line.c_str());
  std::fflush(file);
}

void note(const char *call, const void *handle) {
  noteLine(absl::StrFormat("%s %p", call, handle));
}
void note(const char *call, uint64_t number) {
  noteLine(absl::StrCat(call, " ", number));
}

void setCurrent(DeviceState *device) { contextOfThread = device; }

Result current(DeviceState *&device) {
  if (!state().initialized)
    return code::notInitialized;
  device = contextOfThread;
  if (!device || device->references == 0)
    return code::invalidContext;
  return device->error;
}

Result currentForUnsafeCall(DeviceState *&device) {
  if (Result failed = current(device))
    return failed;
  std::lock_guard lock(state().mutex);
  Result found = code::success;
  for (DeviceState &each : state().devices)
    for (const std::shared_ptr<StreamState> &stream : each.streams) {
      Capture *capture = stream->capture.get();
      bool mine = capture && (capture->mode == 0 ||
                              (capture->mode == captureThreadLocal &&
                               capture->thread == std::this_thread::get_id()));
      if (!mine)
        continue;
      if (capture->valid)
        say("a call that allocates or waits while a stream is captured");
      capture->valid = false;
      found = code::captureUnsupported;
    }
  return found;
}

void synchronize(DeviceState &device) {
  std::vector<std::shared_ptr<StreamState>> streams;
  {
    std::lock_guard lock(state().mutex);
    std::erase_if(device.streams,
                  [](const auto &stream) { return stream->ended(); });
    streams = device.streams;
  }
  for (const std::shared_ptr<StreamState> &stream : streams)
    stream->waitIdle();
}

} // namespace meshwork::emulator
