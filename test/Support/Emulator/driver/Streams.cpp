// Streams, events, and host functions of other emulated libraries.
#include "test/Support/Emulator/Emulator.h"
#include "test/Support/Emulator/driver/State.h"

#include <algorithm>

using namespace meshwork::emulator;

namespace {

Result findStream(Stream handle, std::shared_ptr<StreamState> &stream) {
  DeviceState *device;
  if (Result failed = current(device))
    return failed;
  stream = state().streams.find(handle);
  return stream ? code::success : code::invalidHandle;
}
Result findEvent(Event handle, std::shared_ptr<EventState> &event) {
  DeviceState *device;
  if (Result failed = current(device))
    return failed;
  event = state().events.find(handle);
  if (!event)
    return code::invalidHandle;
  std::lock_guard lock(state().mutex);
  return event->isCaptured ? code::capturedEvent : code::success;
}

} // namespace

extern "C" {

Result cuStreamCreateWithPriority(Stream *handle, unsigned flags,
                                  int priority) {
  DeviceState *device;
  if (Result failed = current(device))
    return failed;
  if (!handle || flags > streamNonBlocking)
    return code::invalidValue;
  priority = std::clamp(priority, greatestPriority, 0);
  auto stream = std::make_shared<StreamState>(*device, flags, priority);
  StreamState::start(stream);
  {
    std::lock_guard lock(state().mutex);
    device->streams.push_back(stream);
  }
  *handle = static_cast<Stream>(state().streams.add(stream));
  return code::success;
}
Result cuStreamDestroy_v2(Stream handle) {
  std::shared_ptr<StreamState> stream = state().streams.remove(handle);
  if (!stream)
    return code::invalidHandle;
  std::lock_guard lock(state().mutex);
  if (stream->capture) {
    stream->capture->valid = false;
    stream->capture->streams.erase(stream.get());
    stream->capture.reset();
  }
  stream->close();
  return code::success;
}
Result cuStreamSynchronize(Stream handle) {
  std::shared_ptr<StreamState> stream;
  if (Result failed = findStream(handle, stream))
    return failed;
  if (Result failed = checkNotCapturing(*stream))
    return failed;
  stream->waitIdle();
  return stream->device.error;
}
Result cuStreamQuery(Stream handle) {
  std::shared_ptr<StreamState> stream;
  if (Result failed = findStream(handle, stream))
    return failed;
  if (Result failed = checkNotCapturing(*stream))
    return failed;
  note("streamQuery", handle);
  if (!stream->idleSoon())
    return code::notReady;
  return stream->device.error;
}

Result cuEventCreate(Event *handle, unsigned flags) {
  DeviceState *device;
  if (Result failed = current(device))
    return failed;
  if (!handle || flags > 7)
    return code::invalidValue;
  auto event =
      std::make_shared<EventState>(*device, !(flags & eventDisableTiming));
  *handle = static_cast<Event>(state().events.add(event));
  return code::success;
}
Result cuEventQuery(Event handle) {
  std::shared_ptr<EventState> event;
  if (Result failed = findEvent(handle, event))
    return failed;
  note("eventQuery", handle);
  if (!event->doneSoon())
    return code::notReady;
  return event->device.error;
}
Result cuEventSynchronize(Event handle) {
  std::shared_ptr<EventState> event;
  if (Result failed = findEvent(handle, event))
    return failed;
  event->wait(event->last());
  return event->device.error;
}
Result cuEventElapsedTime(float *ms, Event startHandle, Event endHandle) {
  std::shared_ptr<EventState> start, end;
  if (Result failed = findEvent(startHandle, start))
    return failed;
  if (Result failed = findEvent(endHandle, end))
    return failed;
  bool timed = start->timed && end->timed && start->last() && end->last();
  if (!timed || &start->device != &end->device)
    return code::invalidHandle;
  if (!start->done() || !end->done())
    return code::notReady;
  *ms = std::chrono::duration<float, std::milli>(end->time() - start->time())
            .count();
  return code::success;
}
Result cuEventDestroy_v2(Event handle) {
  return state().events.remove(handle) ? code::success : code::invalidHandle;
}

int meshworkEmulatorEnqueue(Stream handle, void (*function)(void *), void *data,
                            void (*destroy)(void *)) {
  std::shared_ptr<void> owned(data, [destroy](void *pointer) {
    if (destroy)
      destroy(pointer);
  });
  std::shared_ptr<StreamState> stream;
  if (Result failed = findStream(handle, stream))
    return failed;
  return enqueue(*stream, [function, owned = std::move(owned)] {
    if (runningDevice()->error == code::success)
      function(owned.get());
  });
}
void meshworkEmulatorFail(int error, const char *text) {
  failRunning(error, text);
}

} // extern "C"
