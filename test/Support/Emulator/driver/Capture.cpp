// Stream capture: work that would be run becomes nodes of a graph.
#include "test/Support/Emulator/driver/State.h"

#include <algorithm>

namespace meshwork::emulator {
namespace {

/// Takes all streams out of the capture.
void dissolve(Capture &capture) {
  std::set<StreamState *> streams = capture.streams;
  for (StreamState *stream : streams) {
    stream->tail.clear();
    stream->capture.reset(); // the last one may free the capture
  }
}

/// Whether all work happens before what the origin does next.
bool isJoined(const Capture &capture) {
  const std::vector<GraphState::Node> &nodes = capture.graph->nodes;
  std::vector<bool> before(nodes.size());
  for (size_t node : capture.origin->tail)
    before[node] = true;
  for (size_t n = nodes.size(); n-- > 0;)
    if (before[n])
      for (size_t earlier : nodes[n].after)
        before[earlier] = true;
  return std::find(before.begin(), before.end(), false) == before.end();
}

void runOnce(const GraphState &graph) {
  unsigned jitter = state().settings.jitterUs;
  if (!jitter) { // the order of recording is one that is allowed
    for (const GraphState::Node &node : graph.nodes)
      node.work();
    return;
  }
  // Any order that is allowed: shows an edge that is missing.
  thread_local std::minstd_rand random(std::random_device{}());
  std::vector<bool> done(graph.nodes.size());
  for (size_t left = graph.nodes.size(); left > 0; --left) {
    std::vector<size_t> ready;
    for (size_t n = 0; n < graph.nodes.size(); ++n)
      if (!done[n] &&
          std::all_of(graph.nodes[n].after.begin(), graph.nodes[n].after.end(),
                      [&](size_t before) { return done[before]; }))
        ready.push_back(n);
    size_t chosen = ready[random() % ready.size()];
    graph.nodes[chosen].work();
    done[chosen] = true;
  }
}

/// The stream `waits` joins the capture of the event, or adds to its tail.
Result waitCaptured(StreamState &waits, EventState &event) {
  std::shared_ptr<Capture> capture = event.capture.lock();
  if (!capture) {
    if (waits.capture)
      waits.capture->valid = false;
    return code::capturedEvent; // its capture has ended
  }
  if (!capture->valid)
    return code::captureInvalidated;
  if (waits.capture && waits.capture != capture) {
    capture->valid = waits.capture->valid = false;
    return code::captureMerge;
  }
  if (!waits.capture) {
    waits.capture = capture;
    capture->streams.insert(&waits);
  }
  waits.tail.insert(event.capturedAfter.begin(), event.capturedAfter.end());
  return code::success;
}

Result findStream(Stream handle, std::shared_ptr<StreamState> &stream) {
  DeviceState *device;
  if (Result failed = current(device))
    return failed;
  stream = state().streams.find(handle);
  return stream ? code::success : code::invalidHandle;
}

} // namespace

Result enqueue(StreamState &stream, Work work) {
  std::lock_guard lock(state().mutex);
  if (!stream.capture) {
    stream.push(std::move(work));
    return code::success;
  }
  if (!stream.capture->valid)
    return code::captureInvalidated;
  std::vector<GraphState::Node> &nodes = stream.capture->graph->nodes;
  nodes.push_back({std::move(work), std::move(stream.tail)});
  stream.capture->graph->priorities.insert(stream.priority);
  stream.tail = {nodes.size() - 1};
  return code::success;
}

Result checkNotCapturing(StreamState &stream) {
  std::lock_guard lock(state().mutex);
  if (!stream.capture)
    return code::success;
  stream.capture->valid = false;
  say("a stream is waited for or asked while it is captured");
  return code::captureUnsupported;
}

} // namespace meshwork::emulator

using namespace meshwork::emulator;

extern "C" {

Result cuStreamBeginCapture_v2(Stream handle, int mode) {
  std::shared_ptr<StreamState> stream;
  if (Result failed = findStream(handle, stream))
    return failed;
  if (mode < 0 || mode > 2)
    return code::invalidValue;
  std::lock_guard lock(state().mutex);
  if (stream->capture)
    return code::invalidValue;
  stream->capture = std::make_shared<Capture>();
  stream->capture->origin = stream.get();
  stream->capture->mode = mode;
  stream->capture->thread = std::this_thread::get_id();
  stream->capture->streams = {stream.get()};
  stream->tail.clear();
  return code::success;
}

Result cuStreamEndCapture(Stream handle, Graph *graph) {
  std::shared_ptr<StreamState> stream;
  if (Result failed = findStream(handle, stream))
    return failed;
  if (!graph)
    return code::invalidValue;
  *graph = nullptr;
  std::lock_guard lock(state().mutex);
  std::shared_ptr<Capture> capture = stream->capture;
  if (!capture)
    return code::invalidValue;
  if (capture->origin != stream.get()) {
    capture->valid = false;
    return code::captureUnmatched;
  }
  if (capture->mode != 2 && capture->thread != std::this_thread::get_id())
    return code::captureWrongThread;
  bool joined = isJoined(*capture);
  dissolve(*capture);
  if (!capture->valid)
    return code::captureInvalidated;
  if (!joined)
    return code::captureUnjoined;
  *graph = static_cast<Graph>(state().graphs.add(capture->graph));
  return code::success;
}

Result cuEventRecord(Event handle, Stream streamHandle) {
  std::shared_ptr<StreamState> stream;
  if (Result failed = findStream(streamHandle, stream))
    return failed;
  std::shared_ptr<EventState> event = state().events.find(handle);
  if (!event || &event->device != &stream->device)
    return code::invalidHandle;
  std::lock_guard lock(state().mutex);
  event->isCaptured = stream->capture != nullptr;
  if (stream->capture) {
    if (!stream->capture->valid)
      return code::captureInvalidated;
    event->capture = stream->capture;
    event->capturedAfter = stream->tail;
    return code::success;
  }
  note("eventRecord", handle);
  uint64_t number = event->begin();
  stream->push([event, number] { event->complete(number); });
  return code::success;
}

Result cuStreamWaitEvent(Stream streamHandle, Event handle, unsigned flags) {
  std::shared_ptr<StreamState> stream;
  if (Result failed = findStream(streamHandle, stream))
    return failed;
  std::shared_ptr<EventState> event = state().events.find(handle);
  if (!event)
    return code::invalidHandle;
  if (flags != 0)
    return code::invalidValue;
  std::lock_guard lock(state().mutex);
  if (event->isCaptured)
    return waitCaptured(*stream, *event);
  uint64_t number = event->last();
  if (number == 0)
    return code::success; // never recorded
  if (stream->capture) {
    stream->capture->valid = false;
    say("a captured stream waits for an event that was not captured");
    return code::captureIsolation;
  }
  stream->push([event, number] { event->wait(number); });
  return code::success;
}

Result cuGraphInstantiateWithFlags(GraphExec *exec, Graph graph,
                                   unsigned long long flags) {
  DeviceState *device;
  if (Result failed = current(device))
    return failed;
  std::shared_ptr<GraphState> found = state().graphs.find(graph);
  if (!found)
    return code::invalidHandle;
  bool knowsPriority = state().settings.driver >= firstWithNodePriority;
  if (!exec || (flags & ~(knowsPriority ? graphUsesNodePriority : 0)) != 0)
    return code::invalidValue;
  // The driver would not mind; nobody would notice that urgent work waits.
  if (knowsPriority && flags == 0 && found->priorities.size() > 1) {
    say("a graph is made without the priorities of the streams in it");
    return code::invalidValue;
  }
  auto copy = std::make_shared<const GraphState>(*found);
  *exec = static_cast<GraphExec>(state().graphExecs.add(copy));
  return code::success;
}

Result cuGraphLaunch(GraphExec exec, Stream handle) {
  std::shared_ptr<StreamState> stream;
  if (Result failed = findStream(handle, stream))
    return failed;
  std::shared_ptr<const GraphState> graph = state().graphExecs.find(exec);
  if (!graph)
    return code::invalidHandle;
  note("graphLaunch", handle);
  return enqueue(*stream, [graph] { runOnce(*graph); });
}

Result cuGraphExecDestroy(GraphExec exec) {
  return state().graphExecs.remove(exec) ? code::success : code::invalidHandle;
}
Result cuGraphDestroy(Graph graph) {
  return state().graphs.remove(graph) ? code::success : code::invalidHandle;
}

} // extern "C"
