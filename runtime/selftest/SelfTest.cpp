#include "runtime/selftest/SelfTest.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "lib/Plan/StatusMacros.h"
#include "meshwork/Runtime/ExitCode.h"
#include "meshwork/Text/Counted.h"
#include "runtime/base/StartThread.h"
#include "runtime/device/cuda/Driver.h"
#include "runtime/rank/Names.h"
#include "runtime/selftest/OddOnesOut.h"
#include <algorithm>
#include <thread>

namespace meshwork::runtime {
namespace {
constexpr size_t mostRounds = 256; // of pairs: each takes some 0.1 s

/// The GPU that code is to be made for, "" where there is none.
struct GpuHere {
  std::string name, arch;
};

GpuHere gpuHere() {
  absl::StatusOr<const cuda::Driver *> driver = cuda::Driver::open();
  cuda::Device device = 0;
  char name[256] = "";
  int major = 0, minor = 0;
  if (!driver.ok() || (*driver)->deviceGet(&device, 0) != 0 ||
      (*driver)->deviceGetName(name, sizeof(name), device) != 0 ||
      (*driver)->deviceGetAttribute(&major, cuda::attribute::computeMajor,
                                    device) != 0 ||
      (*driver)->deviceGetAttribute(&minor, cuda::attribute::computeMinor,
                                    device) != 0)
    return {};
  return {absl::StrCat(name, " (compute capability ", major, ".", minor, ")"),
          major >= 10  ? "sm_100"
          : major == 9 ? "sm_90a"
                       : "sm_80"};
}

class Tester {
public:
  Tester(Processes &processes, const RunOptions &options,
         SelfTestListener &listener)
      : processes(processes), options(options), listener(listener) {}
  absl::StatusOr<SelfTest> run();

private:
  absl::Status place();
  absl::Status measure();
  absl::Status links();
  absl::Status collectives();
  absl::Status plans();
  /// Calls `body` for each rank that is here, all at once.
  absl::Status
  onRanks(const std::vector<uint32_t> &mesh,
          absl::FunctionRef<absl::Status(Transport &, uint32_t)> body);
  std::vector<std::vector<uint32_t>> ranksOfHosts() const;
  void say(const std::string &line) {
    if (processes.isFirst())
      listener.tell(line);
  }

  Processes &processes;
  const RunOptions &options;
  SelfTestListener &listener;
  SelfTest found;
};

absl::Status Tester::place() {
  found.areProcesses = processes.areMany();
  found.ranks = processes.areMany() ? processes.count()
                                    : (options.ranks == 0 ? 2 : options.ranks);
  MESHWORK_RETURN_IF_ERROR(processes.shareCores(found.ranks, options).status());
  std::vector<std::string> known;
  for (const std::string &host : processes.hosts()) {
    auto place = std::find(known.begin(), known.end(), host);
    found.hostOfRank.push_back(static_cast<uint32_t>(place - known.begin()));
    if (place == known.end())
      known.push_back(host);
  }
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

std::vector<std::vector<uint32_t>> Tester::ranksOfHosts() const {
  std::vector<std::vector<uint32_t>> hosts(found.numHosts());
  for (uint32_t rank = 0; rank < found.ranks; ++rank)
    hosts[found.hostOfRank[rank]].push_back(rank);
  return hosts;
}

std::string linksText(const std::vector<PairLink> &links, const char *where) {
  auto [low, high] = std::minmax_element(
      links.begin(), links.end(), [](const PairLink &a, const PairLink &b) {
        return a.bandwidth < b.bandwidth;
      });
  return absl::StrFormat("%s %s: %.3g to %.3g GB/s",
                         counted(links.size(), "pair"), where,
                         low->bandwidth / 1e9, high->bandwidth / 1e9);
}

/// Between hosts, one rank of each; then within all hosts at once.
absl::Status Tester::links() {
  std::vector<std::vector<uint32_t>> hosts = ranksOfHosts();
  std::vector<uint32_t> leaders;
  for (const std::vector<uint32_t> &host : hosts)
    leaders.push_back(host[0]);
  MESHWORK_RETURN_IF_ERROR(
      onRanks({found.ranks}, [&](Transport &transport, uint32_t rank) {
        auto between = measureLinks(transport, rank, {leaders}, mostRounds);
        MESHWORK_RETURN_IF_ERROR(between.status());
        auto within = measureLinks(transport, rank, hosts, mostRounds);
        MESHWORK_RETURN_IF_ERROR(within.status());
        if (rank == (found.areProcesses ? processes.rank() : 0)) {
          found.betweenHosts = *std::move(between);
          found.withinHosts = *std::move(within);
        }
        return absl::OkStatus();
      }));
  if (!found.withinHosts.empty())
    say(linksText(found.withinHosts, "within a host"));
  if (!found.betweenHosts.empty())
    say(linksText(found.betweenHosts, "of hosts"));
  return absl::OkStatus();
}

absl::Status Tester::collectives() {
  found.mesh = meshToCheck(found.ranks);
  MESHWORK_RETURN_IF_ERROR(onRanks(found.mesh, [&](Transport &transport,
                                                   uint32_t rank) {
    auto checks = checkCollectives(transport, rank, Mesh(found.mesh),
                                   static_cast<uint32_t>(found.mesh.size()));
    MESHWORK_RETURN_IF_ERROR(checks.status());
    if (rank == (found.areProcesses ? processes.rank() : 0))
      found.collectives = *std::move(checks);
    return absl::OkStatus();
  }));
  auto wrong = std::count_if(
      found.collectives.begin(), found.collectives.end(),
      [](const CollectiveCheck &one) { return !one.wrong.empty(); });
  say(absl::StrCat(counted(found.collectives.size(), "collective"),
                   " over the groups of a mesh of ",
                   absl::StrJoin(found.mesh, " x "), ": ",
                   wrong == 0 ? "all right" : absl::StrCat(wrong, " wrong")));
  return absl::OkStatus();
}

absl::Status Tester::plans() {
  GpuHere gpu = gpuHere();
  found.gpu = gpu.name;
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
  MESHWORK_RETURN_IF_ERROR(place());
  MESHWORK_RETURN_IF_ERROR(measure());
  MESHWORK_RETURN_IF_ERROR(links());
  MESHWORK_RETURN_IF_ERROR(collectives());
  MESHWORK_RETURN_IF_ERROR(plans());
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

uint32_t SelfTest::numHosts() const {
  return 1 + *std::max_element(hostOfRank.begin(), hostOfRank.end());
}

std::vector<std::string> SelfTest::wrong() const {
  std::vector<std::string> all;
  for (const CollectiveCheck &one : collectives)
    if (!one.wrong.empty())
      all.push_back(absl::StrCat(plan::EnumNameCollectiveKind(one.kind), " of ",
                                 plan::EnumNameDType(one.dtype), " over ",
                                 one.ranks, " ranks (axes ",
                                 absl::StrJoin(one.axes, ", "), " of ",
                                 absl::StrJoin(mesh, " x "), "): ", one.wrong));
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
  std::vector<std::string> all = slowLinks(betweenHosts, "two hosts");
  for (std::string &one : slowLinks(withinHosts, "one host"))
    all.push_back(std::move(one));
  std::vector<double> products, kernels;
  for (const WorkRates &rank : machine.ofRanks) {
    products.push_back(rank.f32.products);
    kernels.push_back(rank.kernelBytes);
  }
  for (std::string &one : slowRanks(products, "products"))
    all.push_back(std::move(one));
  for (std::string &one : slowRanks(kernels, "reads and writes of memory"))
    all.push_back(std::move(one));
  return all;
}

absl::Status selfTest(const RunOptions &options, SelfTestListener &listener) {
  absl::StatusOr<Processes> processes = Processes::start(options);
  MESHWORK_RETURN_IF_ERROR(processes.status());
  processes->warn(processes->openWarning());
  return processes->settle(testIn(*processes, options, listener));
}

} // namespace meshwork::runtime
