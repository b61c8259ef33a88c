// The processes of a run: this one alone, or as many as there are ranks.
#pragma once

#include "lib/Plan/PlanFile.h"
#include "meshwork/Runtime/Run.h"
#include "runtime/comm/MessageTransport.h"
#include "runtime/machine/CoreClaims.h"
#include "runtime/machine/Executor.h"

namespace meshwork::runtime {

class Processes {
public:
  /// Looks at options and environment, starts MPI when asked for.
  static absl::StatusOr<Processes> start(const RunOptions &options);

  bool areMany() const { return world != nullptr; }
  /// Prints, reports and writes files.
  bool isFirst() const { return !world || world->rank() == 0; }
  uint32_t rank() const { return world ? world->rank() : 0; }

  uint32_t count() const { return world ? world->size() : 1; }
  /// On stderr, once; "" is nothing.
  void warn(const std::string &warning) const;
  /// Every process's text, by rank.
  absl::StatusOr<std::vector<std::string>>
  exchange(const std::string &mine) const;

  /// Before each plan of a run: claims and agreements of the one before are
  /// none of its own.
  void beginPhase() {
    claims = {};
    agreed = false;
  }
  /// As many processes as ranks (exit code 78), and the same plan and options
  /// in all of them: names the odd rank.
  absl::Status agreeOn(const plan::PlanFile &plan,
                       const RunOptions &options) const;
  /// Cores of each rank, claimed for as long as this lives; of ranks elsewhere
  /// an empty share.
  absl::StatusOr<std::vector<CoreShare>> shareCores(uint32_t ranks,
                                                    const RunOptions &options);
  /// After shareCores: where each rank is.
  const std::vector<std::string> &hosts() const { return hostOfRank; }
  bool coresAreTaken() const { return claims.areTooFew(); }
  /// After shareCores: "", or that --threads asks for more than there are.
  std::string coresWarning(const RunOptions &options) const;
  /// "", or that strangers reach the ports of this run.
  const std::string &openWarning() const { return open; }
  /// After shareCores.
  DeviceOptions deviceOptions(uint32_t ranks, const RunOptions &options) const;
  /// Ranks that take memory of this machine.
  uint32_t ranksHere(uint32_t ranks) const {
    return world ? neighbours : ranks;
  }

  /// Lives to the process's end where there are many processes: MPI may still
  /// use its memory after a failure.
  std::shared_ptr<Transport> makeTransport(const Mesh &mesh,
                                           double timeoutSeconds, bool spins);
  /// Null when all ranks are here.
  MessageTransport *messages() const { return transport; }

  /// While the result lives, peers wait for this process as long as a disk
  /// takes (see FileWork); null where there are none.
  std::unique_ptr<FileWork<World>> fileWork(const char *what) const;

  /// After a run that all processes have come through, each with how it ended
  /// there. The lowest rank with a failure gets its own, which it tells; the
  /// others one that is marked as told, with exit code 0.
  absl::Status agreeOnEnd(absl::Status status);
  /// The end of a run. A failure that was not agreed on is told to the other
  /// processes; one that comes from there is marked as told.
  absl::Status settle(absl::Status status);

private:
  absl::StatusOr<CoreShare> shareOf(uint32_t leader, uint32_t mine,
                                    const std::vector<int> &cpus, bool pin,
                                    const RunOptions &options);

  World *world = nullptr;
  MessageTransport *transport = nullptr;
  std::string launcher, open;
  uint32_t neighbours = 1; // processes of this machine
  uint32_t sharers = 1;    // ranks on the cores of this process
  std::vector<std::string> hostOfRank;
  CoreClaims claims;
  bool agreed = false; // on the end
};

} // namespace meshwork::runtime
