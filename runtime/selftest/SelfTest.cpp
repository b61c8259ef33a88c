#include "runtime/selftest/SelfTest.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "lib/Plan/StatusMacros.h"
#include "meshwork/Runtime/ExitCode.h"
#include "meshwork/Text/Counted.h"
#include "runtime/base/StartThread.h"
#include "runtime/rank/Names.h"
#include "runtime/selftest/OddOnesOut.h"
#include "runtime/train/Stop.h"
#include <algorithm>
#include <thread>

namespace meshwork::runtime {
namespace {
constexpr uint32_t mostThreads = 256;

class Tester {
public:
  Tester(Processes &processes, const RunOptions &options,
         SelfTestListener &listener)
      : processes(processes), options(options), listener(listener) {}
  absl::StatusOr<SelfTest> run();

private:
  absl::Status place();
  absl::Status measure();
  absl::Status moves();
  absl::Status gpus();
  absl::Status plans();
  /// Calls `body` for each rank that is here, all at once.
  absl::Status
  onRanks(const std::vector<uint32_t> &mesh,
          absl::FunctionRef<absl::Status(Transport &, uint32_t)> body);
  /// Of the ranks that are here the one whose results count: all have the same.
  bool isTelling(uint32_t rank) const {
    return rank == (found.areProcesses ? processes.rank() : 0);
  }
  void say(const std::string &line) {
    if (processes.isFirst())
      listener.tell(line);
  }
  void say(const std::vector<std::string> &lines) {
    for (const std::string &line : lines)
      say(line);
  }

  Processes &processes;
  const RunOptions &options;
  SelfTestListener &listener;
  GpuHere gpu = gpuHere();
  SelfTest found;
};

absl::Status Tester::place() {
  found.areProcesses = processes.areMany();
  found.ranks = processes.areMany() ? processes.count()
                                    : (options.ranks == 0 ? 2 : options.ranks);
  if (!found.areProcesses && found.ranks > mostThreads)
    return absl::InvalidArgumentError(
        absl::StrCat("--ranks is ", found.ranks,
                     ": as threads of one process a self-test "
                     "takes at most ",
                     mostThreads, "; start more as processes"));
  MESHWORK_RETURN_IF_ERROR(processes.shareCores(found.ranks, options).status());
  std::vector<std::string> known;
  MovesToCheck &tried = found.tried;
  for (uint32_t rank = 0; rank < found.ranks; ++rank) {
    const std::string &host = processes.hosts()[rank];
    auto place = std::find(known.begin(), known.end(), host);
    auto number = static_cast<uint32_t>(place - known.begin());
    if (place == known.end()) {
      known.push_back(host);
      tried.hosts.emplace_back();
      tried.leaders.push_back(rank);
    }
    found.hostOfRank.push_back(number);
    tried.hosts[number].push_back(rank);
  }
  tried.mesh = meshToCheck(found.ranks);
  say(absl::StrCat(
      counted(found.ranks, "rank"), " on ", counted(known.size(), "host"),
      ", as ", found.areProcesses ? "processes" : "threads of one process"));
  return absl::OkStatus();
}

absl::Status Tester::measure() {
  processes.beginPhase();
  MESHWORK_ASSIGN_OR_RETURN(found.machine, measureOn(processes, options));
  say(absl::StrFormat(
      "a host computes %.0f Gflop/s in f32, %.0f in bf16, and reads and writes "
      "%.1f GB/s",
      found.machine.rates.f32.products / 1e9,
      found.machine.rates.bf16.products / 1e9,
      found.machine.rates.kernelBytes / 1e9));
  return absl::OkStatus();
}

absl::Status
Tester::onRanks(const std::vector<uint32_t> &sizes,
                absl::FunctionRef<absl::Status(Transport &, uint32_t)> body) {
  std::shared_ptr<Transport> transport = processes.makeTransport(
      Mesh(sizes), options.timeoutSeconds, found.ranks <= usableCores());
  if (processes.areMany())
    return body(*transport, processes.rank());
  std::vector<absl::Status> ends(found.ranks);
  std::vector<std::thread> threads(found.ranks);
  auto runRank = [&](uint32_t rank) {
    ends[rank] = body(*transport, rank);
    if (!ends[rank].ok())
      transport->abort(rank, ends[rank]);
  };
  for (uint32_t rank = 0; rank < found.ranks; ++rank)
    if (absl::Status started =
            startThread(threads[rank], [&, rank] { runRank(rank); });
        !started.ok())
      transport->abort(rank, started);
  for (std::thread &thread : threads)
    if (thread.joinable())
      thread.join();
  return transport->failure();
}

absl::Status Tester::moves() {
  MESHWORK_RETURN_IF_ERROR(
      onRanks(found.tried.mesh, [&](Transport &transport, uint32_t rank) {
        auto mine = checkMoves(transport, rank, found.tried);
        MESHWORK_RETURN_IF_ERROR(mine.status());
        if (isTelling(rank))
          found.moves = *std::move(mine);
        return absl::OkStatus();
      }));
  say(found.moves.lines(found.tried, ""));
  return absl::OkStatus();
}

absl::Status Tester::gpus() {
  std::vector<int> ordinals;
  std::string why;
  MESHWORK_ASSIGN_OR_RETURN(ordinals,
                            agreeOnGpus(processes, found.ranks, options, why));
  found.gpus.name = gpu.name;
  found.gpus.notTried = why;
  if (ordinals.empty())
    return absl::OkStatus();
  MESHWORK_RETURN_IF_ERROR(onRanks(found.tried.mesh, [&](Transport &host,
                                                         uint32_t rank) {
    auto mine = checkGpu(host, rank, ordinals[found.areProcesses ? 0 : rank],
                         found.tried, options.timeoutSeconds);
    MESHWORK_RETURN_IF_ERROR(mine.status());
    if (isTelling(rank))
      found.gpus = *std::move(mine);
    return absl::OkStatus();
  }));
  found.gpus.name = gpu.name;
  const GpuRates &first = found.gpus.work[0];
  say(absl::StrFormat("%s: %.1f Tflop/s in f32, %.1f in bf16, copies %.0f GB/s",
                      gpu.name, first.f32, first.bf16, first.copyBytes / 1e9));
  say(found.gpus.moves.lines(found.tried, "GPU"));
  return absl::OkStatus();
}

absl::Status Tester::plans() {
  processes.beginPhase();
  MESHWORK_ASSIGN_OR_RETURN(
      found.plans, checkPlans(processes, found.ranks, options, gpu.arch));
  for (const PlanCheck &one : found.plans)
    say(absl::StrCat(
        one.name, " (", absl::StrJoin(one.axes, ", "), "): ",
        !one.notTried.empty()
            ? "not tried: " + one.notTried
            : absl::StrFormat("%s, largest difference %.1e",
                              one.isRight() ? "as on one rank" : "WRONG",
                              one.difference)));
  return absl::OkStatus();
}

absl::StatusOr<SelfTest> Tester::run() {
  if (processes.isFirst())
    MESHWORK_RETURN_IF_ERROR(listener.begin());
  for (auto part : {&Tester::place, &Tester::measure, &Tester::moves,
                    &Tester::gpus, &Tester::plans}) {
    if (options.stop && *options.stop)
      return stoppedBy(*options.stop,
                       "before the end of the self-test: nothing is written");
    MESHWORK_RETURN_IF_ERROR((this->*part)());
  }
  return std::move(found);
}

absl::Status testIn(Processes &processes, const RunOptions &options,
                    SelfTestListener &listener) {
  absl::StatusOr<SelfTest> found = Tester(processes, options, listener).run();
  MESHWORK_RETURN_IF_ERROR(found.status());
  absl::Status status;
  if (processes.isFirst()) {
    status = listener.deliver(*found);
    if (std::vector<std::string> wrong = found->wrong();
        status.ok() && !wrong.empty())
      status =
          absl::DataLossError(absl::StrCat("wrong numbers: ", firstOf(wrong)));
  }
  return processes.agreeOnEnd(status);
}
} // namespace

std::vector<std::string> SelfTest::wrong() const {
  std::vector<std::string> all = moves.wrong(tried, "");
  for (std::string &one : gpus.moves.wrong(tried, "GPU"))
    all.push_back(std::move(one));
  for (const PlanCheck &one : plans)
    if (!one.isRight())
      all.push_back(absl::StrFormat(
          "%s (%s): %s is off by %.1e of its largest value, expected at most "
          "%.0e",
          one.name, absl::StrJoin(one.axes, ", "), one.tensor, one.difference,
          allowedDifference));
  return all;
}

std::vector<std::string> SelfTest::slow() const {
  std::vector<double> products, kernels;
  for (const WorkRates &rank : machine.ofRanks) {
    products.push_back(rank.f32.products);
    kernels.push_back(rank.kernelBytes);
  }
  std::vector<std::string> all = moves.slow("");
  for (const auto &found :
       {slowRanks(products, "products"),
        slowRanks(kernels, "reads and writes of memory"), gpus.slow()})
    all.insert(all.end(), found.begin(), found.end());
  return all;
}

absl::Status selfTest(const RunOptions &options, SelfTestListener &listener) {
  absl::StatusOr<Processes> processes = Processes::start(options);
  MESHWORK_RETURN_IF_ERROR(processes.status());
  processes->warn(processes->openWarning());
  return processes->settle(testIn(*processes, options, listener));
}

} // namespace meshwork::runtime
