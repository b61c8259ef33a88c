// The best of several runs counts each time: other work on the machine only
// ever makes one slower.
#include "runtime/run/MeasureMachine.h"
#include "absl/strings/str_split.h"
#include "runtime/comm/InProcess.h"
#include "runtime/core/Checked.h"
#include "runtime/core/Clock.h"
#include "runtime/core/Memory.h"
#include "runtime/core/Processes.h"
#include "runtime/device/cpu/MeasurePeak.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace meshwork::runtime {
namespace {
constexpr uint64_t copiedBytes = 256 << 20, // beyond the caches
    reducedBytes = 16 << 20;                // a bucket of gradients
constexpr int copies = 6;
/// How often what is short is done in a row; a rank alone may be quick where
/// its peer was early, a row is not.
struct Rows {
  int count, length;
};
constexpr Rows launchRows{20, 100}, smallRows{10, 20}, largeRows{4, 3};
constexpr int64_t chunkBytes = 1 << 20;

double seconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }

/// Seconds of the fastest of `times` calls.
template <typename Call> double fastest(int times, Call call) {
  int64_t best = INT64_MAX;
  for (int i = 0; i < times; ++i) {
    int64_t begin = steadyNs();
    call();
    best = std::min(best, steadyNs() - begin);
  }
  return seconds(std::max<int64_t>(best, 1));
}

absl::StatusOr<double> measureCopy(ThreadTeam &team) {
  absl::StatusOr<Arena> from = Arena::create(copiedBytes);
  MESHWORK_RETURN_IF_ERROR(from.status());
  absl::StatusOr<Arena> to = Arena::create(copiedBytes);
  MESHWORK_RETURN_IF_ERROR(to.status());
  double time = fastest(copies, [&] {
    team.parallelFor(
        copiedBytes / chunkBytes, [&](int64_t begin, int64_t end, int) {
          std::memcpy(to->data() + begin * chunkBytes,
                      from->data() + begin * chunkBytes,
                      static_cast<size_t>(end - begin) * chunkBytes);
        });
  });
  return 2.0 * static_cast<double>(copiedBytes) / time;
}

/// Seconds of one call, in the fastest of some rows.
template <typename Call> double fastestInRows(Rows rows, Call call) {
  return fastest(rows.count,
                 [&] {
                   for (int i = 0; i < rows.length; ++i)
                     call();
                 }) /
         rows.length;
}

double measureLaunch(ThreadTeam &team) {
  std::vector<int> work(static_cast<size_t>(team.size()));
  return fastestInRows(launchRows, [&] {
    team.parallelFor(team.size(), [&](int64_t first, int64_t, int thread) {
      work[static_cast<size_t>(thread)] += static_cast<int>(first);
    });
  });
}

/// What one process finds on its cores.
absl::StatusOr<MeasuredMachine> measureCores(const CoreShare &share) {
  ThreadTeam team(share.threads, share.cpus);
  MESHWORK_RETURN_IF_ERROR(team.status());
  MeasuredMachine found;
  found.cores = static_cast<uint32_t>(team.size());
  double tflops = 0;
  MESHWORK_ASSIGN_OR_RETURN(tflops,
                            measureMatmulTflops(plan::DType::f32, team));
  found.f32Flops = tflops * 1e12;
  MESHWORK_ASSIGN_OR_RETURN(tflops,
                            measureMatmulTflops(plan::DType::bf16, team));
  found.bf16Flops = tflops * 1e12;
  MESHWORK_ASSIGN_OR_RETURN(found.copyBytes, measureCopy(team));
  found.launchSeconds = measureLaunch(team);
  return found;
}

/// An all_reduce over the first axis of the transport's mesh, run by one rank.
class Sum {
public:
  Sum(Transport &transport, uint32_t rank, uint64_t bytes)
      : data(bytes / sizeof(float)) {
    Strided view;
    view.data = reinterpret_cast<std::byte *>(data.data());
    view.dtype = plan::DType::f32;
    view.shape = {static_cast<int64_t>(data.size())};
    view.strides = {1};
    prepared = transport.prepare(rank, {plan::CollectiveKind::all_reduce,
                                        plan::Reduction::sum,
                                        {0},
                                        {{view, view}},
                                        "the measurement"});
  }

  absl::StatusOr<double> fastestOf(Rows rows) {
    MESHWORK_RETURN_IF_ERROR(prepared.status());
    auto inLine = [](int64_t items,
                     absl::FunctionRef<void(int64_t, int64_t)> body) {
      body(0, items);
    };
    CommTimes ignored;
    absl::Status status;
    double best = fastestInRows(rows, [&] {
      if (status.ok())
        status = (*prepared)->run(inLine, ignored);
    });
    MESHWORK_RETURN_IF_ERROR(status);
    return best;
  }

private:
  std::vector<float> data;
  absl::StatusOr<std::unique_ptr<PreparedCollective>> prepared;
};

absl::StatusOr<MeasuredLink> measureLink(Transport &transport, uint32_t rank) {
  MeasuredLink link{transport.numRanks(), reducedBytes, 0, 0};
  Sum small(transport, rank, sizeof(float)), large(transport, rank, link.bytes);
  MESHWORK_ASSIGN_OR_RETURN(link.smallSeconds, small.fastestOf(smallRows));
  MESHWORK_ASSIGN_OR_RETURN(link.largeSeconds, large.fastestOf(largeRows));
  return link;
}

/// Between two threads of this process.
absl::StatusOr<MeasuredLink> measureThreads(const RunOptions &options,
                                            const std::vector<int> &cpus) {
  InProcessTransport transport(
      Mesh({2}), {options.timeoutSeconds, /*spins=*/cpus.size() > 1});
  absl::StatusOr<MeasuredLink> found[2];
  auto measure = [&](uint32_t rank) {
    unpin(cpus); // the team that products ran on has pinned its maker
    found[rank] = measureLink(transport, rank);
  };
  std::thread other(measure, 1);
  measure(0);
  other.join();
  MESHWORK_RETURN_IF_ERROR(found[1].status());
  return found[0];
}

/// "cores f32 bf16 copy launch", for the other processes.
std::string textOf(const MeasuredMachine &m) {
  char text[160];
  std::snprintf(text, sizeof(text), "%u %.17g %.17g %.17g %.17g", m.cores,
                m.f32Flops, m.bf16Flops, m.copyBytes, m.launchSeconds);
  return text;
}

/// Adds what another process of the node found.
void add(const std::string &text, MeasuredMachine &sum) {
  MeasuredMachine one;
  std::sscanf(text.c_str(), "%u %lf %lf %lf %lf", &one.cores, &one.f32Flops,
              &one.bf16Flops, &one.copyBytes, &one.launchSeconds);
  sum.cores += one.cores;
  sum.f32Flops += one.f32Flops;
  sum.bf16Flops += one.bf16Flops;
  sum.copyBytes += one.copyBytes;
  sum.launchSeconds = std::max(sum.launchSeconds, one.launchSeconds);
}

absl::StatusOr<MeasuredMachine> measureProcesses(Processes &processes,
                                                 const RunOptions &options,
                                                 MeasuredMachine mine) {
  std::vector<std::string> texts;
  MESHWORK_ASSIGN_OR_RETURN(texts, processes.exchange(textOf(mine)));
  uint32_t here = processes.ranksHere(processes.count());
  MeasuredMachine node;
  for (uint32_t rank = 0; rank < here; ++rank) // launchers fill node by node
    add(texts[rank], node);
  auto transport = processes.makeTransport(
      Mesh({processes.count()}), options.timeoutSeconds,
      processes.count() <= std::thread::hardware_concurrency());
  absl::StatusOr<MeasuredLink> link = measureLink(*transport, processes.rank());
  MESHWORK_RETURN_IF_ERROR(link.status());
  (here < processes.count() ? node.betweenNodes : node.withinNode) = *link;
  return node;
}

absl::Status
measureIn(Processes &processes, const RunOptions &options,
          absl::FunctionRef<absl::Status(const MeasuredMachine &)> deliver) {
  uint32_t ranks = processes.count();
  std::vector<int> cpus = allowedCpus();
  absl::StatusOr<std::vector<CoreShare>> cores =
      processes.shareCores(ranks, options);
  MESHWORK_RETURN_IF_ERROR(cores.status());
  absl::StatusOr<MeasuredMachine> found =
      measureCores((*cores)[processes.rank()]);
  if (found.ok() && ranks > 1) {
    found = measureProcesses(processes, options, *found);
  } else if (found.ok()) {
    absl::StatusOr<MeasuredLink> link = measureThreads(options, cpus);
    MESHWORK_RETURN_IF_ERROR(link.status());
    found->inProcess = *link;
  }
  MESHWORK_RETURN_IF_ERROR(found.status());
  return processes.agreeOnEnd(processes.isFirst() ? deliver(*found)
                                                  : absl::OkStatus());
}
} // namespace

absl::Status measureMachine(
    const RunOptions &options,
    absl::FunctionRef<absl::Status(const MeasuredMachine &)> deliver) {
  absl::StatusOr<Processes> processes = Processes::start(options);
  MESHWORK_RETURN_IF_ERROR(processes.status());
  return processes->settle(measureIn(*processes, options, deliver));
}

} // namespace meshwork::runtime
