#include "lib/Plan/StatusMacros.h"
#include "runtime/device/cuda/MeasureParts.h"
#include "runtime/device/cuda/PtxModule.h"
#include "runtime/device/cuda/TimeRow.h"

namespace meshwork::runtime::cuda {
namespace {
constexpr int launches = 1000; // of a graph, whose own launch is longer
/// The oldest that plans have code for.
constexpr char emptyPtx[] = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry emptyKernel()
{
  ret;
}
)";

/// Many launches of one kernel, as a graph.
class LaunchGraph {
public:
  explicit LaunchGraph(const Driver &driver) : driver(driver) {}
  ~LaunchGraph() {
    if (exec)
      (void)driver.graphExecDestroy(exec);
  }

  absl::Status capture(Function kernel, Stream stream) {
    MESHWORK_RETURN_IF_ERROR(
        driver.check(driver.streamBeginCapture(stream, captureThreadLocal),
                     "beginning to capture launches"));
    Result launched = result::success;
    for (int i = 0; i < launches && launched == result::success; ++i)
      launched = driver.launchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream,
                                     nullptr, nullptr);
    Graph graph = nullptr;
    Result ended = driver.streamEndCapture(stream, &graph);
    MESHWORK_RETURN_IF_ERROR(driver.check(launched, "capturing launches"));
    MESHWORK_RETURN_IF_ERROR(driver.check(ended, "capturing launches"));
    Result made = driver.graphInstantiate(&exec, graph, 0);
    (void)driver.graphDestroy(graph);
    return driver.check(made, "making a graph of launches");
  }
  absl::Status put(Stream stream) {
    return driver.check(driver.graphLaunch(exec, stream),
                        "launching a graph of launches");
  }

private:
  const Driver &driver;
  GraphExec exec = nullptr;
};

} // namespace

absl::StatusOr<double> measureLaunch(const Gpu &gpu, Queue &queue) {
  std::unique_ptr<PtxModule> code;
  MESHWORK_ASSIGN_OR_RETURN(
      code, PtxModule::load(gpu.driver(), {emptyPtx}, "a kernel that ends"));
  Function kernel = nullptr;
  MESHWORK_ASSIGN_OR_RETURN(kernel, code->find("emptyKernel"));
  LaunchGraph graph(gpu.driver());
  MESHWORK_RETURN_IF_ERROR(graph.capture(kernel, queue.stream()));
  double seconds = 0;
  MESHWORK_ASSIGN_OR_RETURN(seconds, fastestRow(gpu, queue, 1, [&] {
                              return graph.put(queue.stream());
                            }));
  return seconds / launches;
}

} // namespace meshwork::runtime::cuda
