// Work is timed by its mean (MeasureWork.h). Of what is short, launches and
// collectives, the best of several rows counts: other work on the machine only
// ever makes one slower.
#include "runtime/run/MeasureMachine.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/Plan/Checked.h"
#include "runtime/comm/InProcess.h"
#include "runtime/device/cpu/MeasureWork.h"
#include "runtime/machine/Clock.h"
#include "runtime/machine/Memory.h"
#include <algorithm>
#include <sstream>
#include <thread>

namespace meshwork::runtime {
namespace {
constexpr uint64_t reducedBytes = 16 << 20; // a bucket of gradients
/// How often what is short is done in a row; a rank alone may be quick where
/// its peer was early, a row is not.
struct Rows {
  int count, length;
};
constexpr Rows launchRows{20, 100}, smallRows{10, 20}, largeRows{4, 3};

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
  MESHWORK_ASSIGN_OR_RETURN(found.rates, measureWork(team));
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

/// Of which a node has the sum of its processes'.
std::vector<double *> ratesOf(WorkRates &rates) {
  std::vector<double *> all = {&rates.kernelBytes, &rates.copyBytes};
  for (TypeRates *type : {&rates.f32, &rates.bf16})
    all.insert(all.end(), {&type->products, &type->attention, &type->gradient});
  return all;
}
/// Of which it has the largest.
std::vector<double *> delaysOf(MeasuredMachine &machine) {
  return {&machine.rates.f32.halfSize, &machine.rates.bf16.halfSize,
          &machine.launchSeconds};
}

/// For the other processes.
std::string textOf(MeasuredMachine m) {
  std::string text = absl::StrCat(m.cores);
  for (const std::vector<double *> &all : {ratesOf(m.rates), delaysOf(m)})
    for (const double *number : all)
      absl::StrAppendFormat(&text, " %.17g", *number);
  return text;
}

/// Adds what another process of the node found.
void add(const std::string &text, MeasuredMachine &sum) {
  std::istringstream in(text);
  MeasuredMachine one;
  in >> one.cores;
  sum.cores += one.cores;
  double number = 0;
  for (double *rate : ratesOf(sum.rates))
    *rate += in >> number ? number : 0;
  for (double *delay : delaysOf(sum))
    *delay = std::max(*delay, in >> number ? number : 0);
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
  for (const std::string &text : texts) {
    MeasuredMachine one;
    add(text, one);
    node.ofRanks.push_back(one.rates);
  }
  auto transport =
      processes.makeTransport(Mesh({processes.count()}), options.timeoutSeconds,
                              processes.count() <= usableCores());
  absl::StatusOr<MeasuredLink> link = measureLink(*transport, processes.rank());
  MESHWORK_RETURN_IF_ERROR(link.status());
  (here < processes.count() ? node.betweenNodes : node.withinNode) = *link;
  return node;
}

} // namespace

absl::StatusOr<MeasuredMachine> measureOn(Processes &processes,
                                          const RunOptions &options) {
  uint32_t ranks = processes.count();
  std::vector<int> cpus = allowedCpus();
  absl::StatusOr<std::vector<CoreShare>> cores =
      processes.shareCores(ranks, options);
  MESHWORK_RETURN_IF_ERROR(cores.status());
  absl::StatusOr<MeasuredMachine> found =
      measureCores((*cores)[processes.rank()]);
  MESHWORK_RETURN_IF_ERROR(found.status());
  if (ranks > 1)
    return measureProcesses(processes, options, *found);
  absl::StatusOr<MeasuredLink> link = measureThreads(options, cpus);
  MESHWORK_RETURN_IF_ERROR(link.status());
  found->inProcess = *link;
  return found;
}

static absl::Status
measureIn(Processes &processes, const RunOptions &options,
          absl::FunctionRef<absl::Status(const MeasuredMachine &)> deliver) {
  absl::StatusOr<MeasuredMachine> found = measureOn(processes, options);
  MESHWORK_RETURN_IF_ERROR(found.status());
  return processes.agreeOnEnd(processes.isFirst() ? deliver(*found)
                                                  : absl::OkStatus());
}

absl::Status measureMachine(
    const RunOptions &options,
    absl::FunctionRef<absl::Status(const MeasuredMachine &)> deliver) {
  absl::StatusOr<Processes> processes = Processes::start(options);
  MESHWORK_RETURN_IF_ERROR(processes.status());
  return processes->settle(measureIn(*processes, options, deliver));
}

} // namespace meshwork::runtime
