#include "runtime/rank/Processes.h"
#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "lib/Plan/Checked.h"
#include "meshwork/Plan/Frame.h"
#include "meshwork/Runtime/ExitCode.h"
#include "meshwork/Text/Counted.h"
#include "runtime/comm/InProcess.h"
#include "runtime/comm/Launch.h"
#include "runtime/rank/Carrier.h"
#include "runtime/rank/Names.h"
#include "runtime/rank/OddOnes.h"
#include "runtime/rank/OptionTable.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <unistd.h>

namespace meshwork::runtime {
namespace {
World *running = nullptr; // for endProcess

const char *environment(const char *name) { return std::getenv(name); }

absl::Status config(const std::string &text) {
  return withExitCode(absl::FailedPreconditionError(text), ExitCode::config);
}

/// What must be the same in every process; files are not looked into.
std::string textOf(const plan::PlanFile &plan, const RunOptions &options) {
  XXH128_hash_t hash =
      XXH3_128bits(plan.payload().data(), plan.payload().size());
  return absl::StrCat(absl::Hex(hash.high64, absl::kZeroPad16),
                      absl::Hex(hash.low64, absl::kZeroPad16), "\n",
                      absl::StrJoin(sharedOptions(options), "\n"));
}

/// Of lines: those that `other` lacks.
std::string linesWithout(const std::string &text, const std::string &other) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n'),
                           others = absl::StrSplit(other, '\n');
  std::erase_if(lines, [&](const std::string &line) {
    return absl::c_linear_search(others, line);
  });
  return lines.empty() ? "none" : absl::StrJoin(lines, " ");
}

/// "name cpu,cpu": processes that see the same cores share them.
std::string machineText(const std::vector<int> &cpus) {
  return absl::StrCat(hostName(), " ", absl::StrJoin(cpus, ","));
}

std::string hostOf(const std::string &machine) {
  return machine.substr(0, machine.find(' '));
}
} // namespace

static absl::StatusOr<Processes> alone(const RunOptions &options) {
  MESHWORK_RETURN_IF_ERROR(refuseInterface(options));
  return Processes();
}

absl::StatusOr<Processes> Processes::start(const RunOptions &options) {
  if (options.transport == RunOptions::Transport::threads)
    return alone(options);
  absl::StatusOr<Launch> launch = detectLaunch(environment);
  if (!launch.ok())
    return config(std::string(launch.status().message()));
  if (!launch->isParallel &&
      options.transport == RunOptions::Transport::automatic)
    return alone(options);
  Processes processes;
  bool spins = launch->size != 0 && launch->size <= usableCores();
  MESHWORK_ASSIGN_OR_RETURN(
      processes.world, World::start(carrierOf(*launch, options, processes.open),
                                    options.timeoutSeconds, spins));
  World *world = running = processes.world;
  processes.launcher = launch->isParallel ? launch->source : std::string("MPI");
  uint32_t size = launch->size == 0 ? world->size() : launch->size;
  if (launch->isParallel &&
      (size != world->size() || launch->rank != world->rank()))
    return processes.settle(config(absl::StrCat(
        launch->source, " says rank ", launch->rank, ", ", launch->asOne(),
        "; MPI says rank ", world->rank(), " of ", world->size(),
        ": start all ranks with the mpirun or srun of this Open MPI")));
  return processes;
}

absl::Status Processes::agreeOn(const plan::PlanFile &plan,
                                const RunOptions &options) const {
  if (!world)
    return absl::OkStatus();
  uint64_t ranks = 1;
  for (const plan::Axis *axis : *plan.plan().mesh())
    ranks *= axis->size();
  absl::StatusOr<std::vector<std::string>> texts =
      exchangeTexts(*world, textOf(plan, options), "the start");
  MESHWORK_RETURN_IF_ERROR(texts.status());
  std::vector<std::string> plans;
  for (const std::string &text : *texts)
    plans.push_back(text.substr(0, text.find('\n')));
  if (std::vector<uint32_t> odd = oddOnes(plans); !odd.empty())
    return config(absl::StrCat(ranksWith(odd, "has", "have"),
                               " another plan than the other ranks: hash ",
                               plans[odd[0]].substr(0, 8), ", theirs is ",
                               plans[odd[0] == 0 ? 1 : 0].substr(0, 8),
                               "; give all ranks the same file"));
  if (ranks != world->size())
    return config(absl::StrCat("the plan is for ", counted(ranks, "rank"), ", ",
                               launcher, " started ", world->size(),
                               ": start as many, or compile for another mesh"));
  if (std::vector<uint32_t> odd = oddOnes(*texts); !odd.empty())
    return config(absl::StrCat(
        ranksWith(odd, "was", "were"),
        " started with other options than the other ranks: found ",
        linesWithout((*texts)[odd[0]], usual(*texts)), ", expected ",
        linesWithout(usual(*texts), (*texts)[odd[0]])));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>>
Processes::exchange(const std::string &mine) const {
  if (!world)
    return std::vector<std::string>{mine};
  return exchangeTexts(*world, mine, "the start");
}

absl::StatusOr<std::vector<CoreShare>>
Processes::shareCores(uint32_t ranks, const RunOptions &options) {
  std::vector<int> cpus = allowedCpus();
  // A quota is of time, on whichever cores: pinned to some of them, containers
  // side by side would all take the same ones.
  size_t usable = usableCores();
  bool pin = options.pin && usable == cpus.size();
  cpus.resize(usable);
  sharers = ranks;
  hostOfRank.assign(ranks, hostName());
  if (!world)
    return claims.share(cpus, ranks, options.threads, pin);
  absl::StatusOr<std::vector<std::string>> machines =
      exchangeTexts(*world, machineText(cpus), "the start");
  MESHWORK_RETURN_IF_ERROR(machines.status());
  uint32_t mine = 0, leader = 0;
  sharers = 0;
  const std::string &here = (*machines)[world->rank()];
  neighbours = 0;
  for (uint32_t rank = 0; rank < machines->size(); ++rank) {
    hostOfRank[rank] = hostOf((*machines)[rank]);
    neighbours += hostOfRank[rank] == hostOf(here);
    if ((*machines)[rank] != here)
      continue;
    mine += rank < world->rank();
    if (sharers++ == 0)
      leader = rank;
  }
  std::vector<CoreShare> shares(ranks, CoreShare{0, {}});
  MESHWORK_ASSIGN_OR_RETURN(shares[world->rank()],
                            shareOf(leader, mine, cpus, pin, options));
  return shares;
}

/// The lowest of the processes that see the same cores claims for all of them.
absl::StatusOr<CoreShare> Processes::shareOf(uint32_t leader, uint32_t mine,
                                             const std::vector<int> &cpus,
                                             bool pin,
                                             const RunOptions &options) {
  std::string text;
  if (mine == 0)
    text = absl::StrJoin(
        pinnedCpus(claims.share(cpus, sharers, options.threads, pin)), ",");
  std::vector<std::string> claimed;
  MESHWORK_ASSIGN_OR_RETURN(claimed, exchangeTexts(*world, text, "the start"));
  CoreShare share =
      runtime::shareCores(cpus, sharers, options.threads, false)[mine];
  std::vector<std::string> all =
      absl::StrSplit(claimed[leader], ',', absl::SkipEmpty());
  size_t each = all.size() / sharers;
  for (size_t i = mine * each; i < (mine + 1) * each; ++i)
    share.cpus.push_back(std::atoi(all[i].c_str()));
  return share;
}

void Processes::warn(const std::string &warning) const {
  if (!warning.empty() && isFirst())
    std::fprintf(stderr, "meshwork-run: warning: %s\n", warning.c_str());
}

std::string Processes::coresWarning(const RunOptions &options) const {
  uint64_t threads = uint64_t{static_cast<uint32_t>(options.threads)} * sharers,
           cores = usableCores(), each = std::max<uint64_t>(1, cores / sharers);
  if (threads <= cores || static_cast<uint64_t>(options.threads) <= each)
    return "";
  return absl::StrCat("--threads ", options.threads, " gives ", sharers,
                      sharers == 1 ? " rank " : " ranks ", threads,
                      " threads on ", cores, cores == 1 ? " core" : " cores",
                      ": each waits for its turn and holds up the others; "
                      "leave --threads out, or give at most ",
                      each);
}

DeviceOptions Processes::deviceOptions(uint32_t ranks,
                                       const RunOptions &options) const {
  return {world ? 1 : ranks,
          rank(),
          neighbours,
          options.timeoutSeconds,
          options.shareGpu,
          options.synchronous,
          options.tuneMatmuls,
          options.compareCpu,
          options.cudnnAttention,
          options.wgmmaAttention,
          options.noWgmmaAttention,
          static_cast<uint32_t>(options.ncclMaxCtas),
          options.ncclRegister,
          [this](const std::string &mine) { return exchange(mine); }};
}

std::shared_ptr<Transport>
Processes::makeTransport(const Mesh &mesh, double timeoutSeconds, bool spins) {
  if (!world)
    return std::make_shared<InProcessTransport>(
        mesh, InProcessOptions{timeoutSeconds, spins});
  transport = new MessageTransport(*world, mesh);
  return std::shared_ptr<Transport>(transport, [](Transport *) {});
}

std::unique_ptr<FileWork<World>> Processes::fileWork(const char *what) const {
  return world ? std::make_unique<FileWork<World>>(*world, world->rank(), what)
               : nullptr;
}

absl::Status Processes::agreeOnEnd(absl::Status status) {
  if (!world)
    return status;
  std::vector<std::string> codes;
  MESHWORK_ASSIGN_OR_RETURN(
      codes,
      exchangeTexts(*world, absl::StrCat(exitCodeOf(status)), "the end"));
  agreed = true;
  for (uint32_t rank = 0; rank < codes.size(); ++rank) {
    if (codes[rank] == "0")
      continue;
    if (rank == world->rank())
      return status;
    // A launcher ends a job at the first code that is not 0: that of the
    // process that has told why.
    return toldElsewhere(
        absl::AbortedError(absl::StrCat("rank ", rank, " failed")), 0);
  }
  return absl::OkStatus();
}

absl::Status Processes::settle(absl::Status status) {
  if (!world)
    return status;
  if (status.ok() || agreed) {
    world->finish();
    running = nullptr;
    return status;
  }
  // Often all ranks find the same; the lowest one tells.
  uint32_t patience =
      world->rank() == 0 ? 0 : 10 + 2 * std::min(world->rank(), 15u);
  for (uint32_t i = 0; i < patience && !world->failedElsewhere(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  world->announce(status, exitCodeOf(status));
  if (world->failedElsewhere())
    return toldElsewhere(std::move(status), world->remoteExitCode());
  std::string text(status.message());
  if (text.find("rank") != std::string::npos)
    return status;
  absl::Status named(status.code(),
                     absl::StrCat("rank ", world->rank(), ": ", text));
  return withExitCode(std::move(named),
                      static_cast<ExitCode>(exitCodeOf(status)));
}

void endProcess(const absl::Status &status) {
  int code = exitCodeOf(status);
  if (running && !status.ok()) {
    // The rank that failed ends all; time enough for it to tell why.
    if (isToldElsewhere(status))
      std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    running->abort(code);
  }
  std::_Exit(code);
}

} // namespace meshwork::runtime
