// The functions that the library exports.
#include "test/Support/Emulator/Emulator.h"
#include "test/Support/Emulator/dnn/Graph.h"
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

using namespace meshwork::runtime::cuda;
using namespace meshwork::runtime::cuda::dnn;
namespace result = meshwork::runtime::cuda::result;
namespace at = meshwork::runtime::cuda::dnn::attribute;

namespace meshwork::runtime::cuda::dnn {
struct HandleObject {
  Stream stream = nullptr;
};
} // namespace meshwork::runtime::cuda::dnn

namespace {
constexpr Status notInitialized = 1001, badParam = 2000, notSupported = 3000,
                 executionFailed = 5000;
constexpr size_t workspaceBytes = 256, pointerAlignment = 16;

thread_local std::string lastError;

Status fail(Status status, const char *why) {
  lastError = why;
  return status;
}

size_t widthOf(int of) {
  switch (of) {
  case type::boolean:
  case type::character:
    return 1;
  case type::dataType:
  case type::heuristicsMode:
  case type::pointwiseMode:
  case type::reductionOperator:
    return 4;
  case type::handle:
  case type::int64:
  case type::pointer:
  case type::descriptor:
    return 8;
  }
  return 0;
}

/// One run: tensors by number, values copied.
struct Run {
  std::shared_ptr<const NumberedGraph> graph;
  std::vector<void *> pointers;
  std::vector<uint32_t> values;
  void *workspace;

  bool isReadable() const {
    bool live = meshworkEmulatorCheck(reinterpret_cast<uintptr_t>(workspace),
                                      workspaceBytes);
    for (size_t i = 0; i < pointers.size(); ++i) {
      const DnnTensor &tensor = graph->graph.tensors[i];
      live &= tensor.lives != DnnTensor::Lives::inMemory ||
              meshworkEmulatorCheck(reinterpret_cast<uintptr_t>(pointers[i]),
                                    spanBytes(tensor));
    }
    return live;
  }

  void run() {
    if (!isReadable())
      return meshworkEmulatorFail(result::illegalAddress,
                                  "cudnnBackendExecute: a tensor or the "
                                  "workspace is not in memory that is "
                                  "allocated on the device");
    if (std::getenv("MESHWORK_EMULATOR_DNN_SLOW"))
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    std::memset(workspace, 0xff, workspaceBytes);
    for (size_t i = 0; i < pointers.size(); ++i)
      if (graph->graph.tensors[i].lives == DnnTensor::Lives::asValue)
        pointers[i] = &values[i];
    try {
      interpret(graph->graph, pointers);
    } catch (const std::exception &error) {
      meshworkEmulatorFail(result::illegalAddress, error.what());
    }
  }
};

/// Throws std::invalid_argument.
std::unique_ptr<Run> runOf(const Object &plan, const Object &pack) {
  auto run = std::make_unique<Run>();
  run->graph = plan.graph;
  size_t count = plan.graph->uids.size();
  run->pointers.resize(count);
  run->values.resize(count);
  run->workspace = pack.one<void *>(at::packWorkspace);
  auto uids = pack.all<int64_t>(at::packUids);
  auto pointers = pack.all<void *>(at::packPointers);
  if (uids.size() != pointers.size())
    throw std::invalid_argument("not as many ids as pointers");
  std::map<int64_t, void *> known;
  for (size_t i = 0; i < uids.size(); ++i)
    known[uids[i]] = pointers[i];
  for (size_t i = 0; i < count; ++i) {
    auto lives = plan.graph->graph.tensors[i].lives;
    if (lives == DnnTensor::Lives::between)
      continue;
    void *pointer = run->pointers[i] = known[plan.graph->uids[i]];
    if (!pointer)
      throw std::invalid_argument("a tensor has no pointer");
    if (lives == DnnTensor::Lives::asValue)
      std::memcpy(&run->values[i], pointer, sizeof(uint32_t));
    else if (reinterpret_cast<uintptr_t>(pointer) % pointerAlignment != 0)
      throw std::invalid_argument("a pointer is less aligned than promised");
  }
  if (reinterpret_cast<uintptr_t>(run->workspace) % 256 != 0)
    throw std::invalid_argument("the workspace is not aligned");
  return run;
}

void finish(Object &object) {
  switch (object.kind) {
  case descriptor::graph:
    object.graph = graphFrom(object);
    break;
  case descriptor::heuristics:
    object.graph = object.one<const Object *>(at::heuristicsGraph)->graph;
    break;
  case descriptor::plan:
    object.graph = object.one<const Object *>(at::planConfig)->graph;
    break;
  default:
    return;
  }
  if (!object.graph)
    throw std::invalid_argument("a descriptor has no graph");
}
} // namespace

extern "C" {
size_t cudnnGetVersion() { return 91900; }

const char *cudnnGetErrorString(Status status) {
  return status == status::success ? "CUDNN_STATUS_SUCCESS"
         : status == badParam      ? "CUDNN_STATUS_BAD_PARAM"
         : status == notSupported  ? "CUDNN_STATUS_NOT_SUPPORTED"
                                   : "CUDNN_STATUS_EXECUTION_FAILED";
}

void cudnnGetLastErrorString(char *text, size_t size) {
  std::snprintf(text, size, "%s", lastError.c_str());
  lastError.clear();
}

Status cudnnCreate(Handle *handle) {
  *handle = new HandleObject();
  return status::success;
}

Status cudnnDestroy(Handle handle) {
  delete handle;
  return status::success;
}

Status cudnnSetStream(Handle handle, Stream stream) {
  if (!handle)
    return notInitialized;
  handle->stream = stream;
  return status::success;
}

Status cudnnBackendCreateDescriptor(int kind, Descriptor *made) {
  *made = new Object{kind, false, {}, nullptr};
  return status::success;
}

Status cudnnBackendDestroyDescriptor(Descriptor descriptor) {
  delete static_cast<Object *>(descriptor);
  return status::success;
}

Status cudnnBackendSetAttribute(Descriptor descriptor, int attribute, int type,
                                int64_t count, const void *elements) {
  auto *object = static_cast<Object *>(descriptor);
  if (!object || object->isFinished || widthOf(type) == 0 || count < 1)
    return fail(badParam, "an attribute cannot be set");
  auto *bytes = static_cast<const std::byte *>(elements);
  size_t size = widthOf(type) * static_cast<size_t>(count);
  object->attributes[attribute] = {type, count, {bytes, bytes + size}};
  return status::success;
}

Status cudnnBackendFinalize(Descriptor descriptor) try {
  finish(*static_cast<Object *>(descriptor));
  static_cast<Object *>(descriptor)->isFinished = true;
  return status::success;
} catch (const std::invalid_argument &error) {
  return fail(badParam, error.what());
}

Status cudnnBackendGetAttribute(Descriptor descriptor, int attribute, int,
                                int64_t asked, int64_t *count, void *elements) {
  auto *object = static_cast<Object *>(descriptor);
  if (!object || !object->isFinished || asked < 1)
    return fail(badParam, "a descriptor is not finished");
  *count = 1;
  if (attribute == at::planWorkspaceSize) {
    *static_cast<int64_t *>(elements) = workspaceBytes;
    return status::success;
  }
  if (attribute != at::heuristicsResults)
    return fail(notSupported, "an attribute is not modelled");
  auto *config = *static_cast<Object **>(elements);
  config->graph = object->graph;
  config->isFinished = true;
  return status::success;
}

Status cudnnBackendExecute(Handle handle, Descriptor plan,
                           Descriptor variantPack) try {
  if (!handle)
    return notInitialized;
  auto run =
      runOf(*static_cast<Object *>(plan), *static_cast<Object *>(variantPack));
  int queued = meshworkEmulatorEnqueue(
      handle->stream, [](void *state) { static_cast<Run *>(state)->run(); },
      run.release(), [](void *state) { delete static_cast<Run *>(state); });
  return queued == result::success ? status::success : executionFailed;
} catch (const std::invalid_argument &error) {
  return fail(badParam, error.what());
}
}
