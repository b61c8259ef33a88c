#include "runtime/device/cuda/NcclTransport.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/base/StartThread.h"
#include "runtime/device/cuda/NcclCollective.h"
#include "runtime/device/cuda/NcclTransfer.h"
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <set>
#include <thread>

namespace meshwork::runtime::cuda {
namespace {
using Group = NcclTransport::Group;

/// "channel 1, axes 0,2": also a key of the texts that ranks exchange.
std::string textOf(const Group &group) {
  if (!group.pair.empty())
    return absl::StrCat("lane ", group.number, ", ranks ",
                        absl::StrJoin(group.pair, " to "));
  return absl::StrCat("channel ", group.number, ", axes ",
                      absl::StrJoin(group.axes, ","));
}

std::vector<uint32_t> membersOf(const Mesh &mesh, uint32_t rank,
                                const Group &group) {
  return group.pair.empty() ? mesh.group(rank, group.axes) : group.pair;
}

uint32_t indexIn(const Mesh &mesh, uint32_t rank, const Group &group) {
  return group.pair.empty() ? mesh.index(rank, group.axes)
                            : rank != group.pair[0];
}

Group groupOf(uint32_t rank, const PairRequest &request) {
  return {request.lane,
          {},
          request.sends ? std::vector<uint32_t>{rank, request.peer}
                        : std::vector<uint32_t>{request.peer, rank}};
}

std::set<Group> groupsOf(const NcclSetup &setup) {
  std::set<Group> groups;
  for (const CollectiveRequest &request : setup.requests)
    if (setup.mesh.group(setup.rank, request.axes).size() > 1)
      groups.insert({request.channel, request.axes});
  for (const PairRequest &request : setup.pairs)
    groups.insert(groupOf(setup.rank, request));
  return groups;
}

/// What NCCL goes by: the environment overrides what a communicator is made
/// with (NVIDIA's guide to NCCL, NCCL_MAX_CTAS).
uint32_t ctasGivenTo(uint32_t maxCtas) {
  const char *text = std::getenv("NCCL_MAX_CTAS");
  uint32_t given = 0;
  return text && absl::SimpleAtoi(text, &given) && given > 0 ? given : maxCtas;
}

/// The first of a group makes its id; every line is a group's text, ": " and
/// the id.
absl::StatusOr<std::string> makeIds(const NcclSetup &setup) {
  std::string text;
  for (const Group &group : groupsOf(setup)) {
    if (indexIn(setup.mesh, setup.rank, group) != 0)
      continue;
    const NcclLibrary *library = nullptr;
    MESHWORK_ASSIGN_OR_RETURN(library, NcclLibrary::open());
    nccl::UniqueId id;
    MESHWORK_RETURN_IF_ERROR(
        library->check(library->getUniqueId(&id), "making an id for NCCL"));
    absl::StrAppend(&text, textOf(group), ": ",
                    absl::BytesToHexString({id.bytes, sizeof(id.bytes)}), "\n");
  }
  return text;
}

absl::StatusOr<nccl::UniqueId> findId(const std::string &text,
                                      const Group &group, uint32_t root) {
  std::string start = textOf(group) + ": ";
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    nccl::UniqueId id;
    if (!absl::ConsumePrefix(&line, start) || line.size() != 2 * sizeof(id))
      continue;
    std::string bytes = absl::HexStringToBytes(line);
    std::memcpy(id.bytes, bytes.data(), sizeof(id.bytes));
    return id;
  }
  return absl::InternalError(
      absl::StrCat("rank ", root, " has no collective on ", textOf(group),
                   ", but a member of its group has"));
}
} // namespace

std::vector<CollectiveRequest> requestsOf(const RankProgram &program) {
  std::vector<CollectiveRequest> requests;
  for (uint32_t list = 0; list < program.table.lists().size(); ++list)
    for (const plan::Instruction *instruction :
         plan::listOf(program.program, list))
      if (instruction->op_type() == plan::Operation::Collective)
        requests.push_back(program.request(*instruction, nullptr));
  return requests;
}

std::vector<PairRequest> pairsOf(const RankProgram &program, const Mesh &mesh) {
  std::vector<PairRequest> pairs;
  const std::vector<plan::ListShape> &lists = program.table.lists();
  for (uint32_t list = 0; list < lists.size(); ++list)
    if (plan::sends(lists[list].kind) || plan::receives(lists[list].kind))
      pairs.push_back(program.pairRequest(list, mesh, nullptr));
  return pairs;
}

absl::StatusOr<std::unique_ptr<NcclTransport>>
NcclTransport::create(const NcclSetup &setup) {
  std::unique_ptr<NcclTransport> made(new NcclTransport(setup));
  MESHWORK_RETURN_IF_ERROR(setup.driver.check(
      setup.driver.streamCreate(&made->stream, streamNonBlocking, 0),
      "making a stream"));
  MESHWORK_ASSIGN_OR_RETURN(made->kernels, BoxKernels::load(setup.driver));
  MESHWORK_RETURN_IF_ERROR(made->openLibrary(setup));
  MESHWORK_RETURN_IF_ERROR(made->reserve(setup));
  MESHWORK_RETURN_IF_ERROR(made->connect(setup));
  MESHWORK_RETURN_IF_ERROR(made->registerStaging());
  return made;
}

/// Whether it can do what the setup asks for.
absl::Status NcclTransport::openLibrary(const NcclSetup &setup) {
  if (groupsOf(setup).empty())
    return absl::OkStatus();
  const NcclLibrary *library = nullptr;
  MESHWORK_ASSIGN_OR_RETURN(library, NcclLibrary::open());
  if (setup.maxCtas > 0)
    MESHWORK_RETURN_IF_ERROR(
        library->expectVersion(nccl::firstWithCtas, "--nccl-max-ctas"));
  if (!setup.registers)
    return absl::OkStatus();
  registers = library;
  return library->expectVersion(nccl::firstThatRegisters, "--nccl-register");
}

NcclTransport::~NcclTransport() {
  for (auto &[group, communicator] : communicators)
    if (communicator && communicator->hasFailed()) {
      cutOff();
      break;
    }
  for (auto &[channel, memory] : staging)
    memory->forget();
  communicators.clear(); // first: a failed one still has the streams
  if (stream)
    (void)driver.streamDestroy(stream);
}

absl::Status NcclTransport::reserve(const NcclSetup &setup) {
  std::map<uint32_t, uint64_t> bytes;
  for (const CollectiveRequest &request : setup.requests) {
    auto ranks = static_cast<uint32_t>(mesh.group(rank, request.axes).size());
    uint64_t &most = bytes[request.channel];
    if (callOf(request, ranks) == NcclCall::messages)
      most = std::max(
          most, messagesOf(request, mesh.index(rank, request.axes), ranks, 0)
                    .stagingBytes);
  }
  for (auto [channel, most] : bytes) {
    auto memory = std::make_unique<NcclMemory>(driver, registers);
    MESHWORK_RETURN_IF_ERROR(
        memory->allocate(most, "to pack what collectives move"));
    staging[channel] = std::move(memory);
  }
  return absl::OkStatus();
}

absl::Status NcclTransport::registerStaging() {
  if (registers)
    for (auto &[group, communicator] : communicators)
      if (auto memory = staging.find(group.number);
          group.pair.empty() && memory != staging.end())
        MESHWORK_RETURN_IF_ERROR(memory->second->registerWith(*communicator));
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<RegisteredMemory>>
NcclTransport::allocate(uint64_t bytes) {
  if (!registers || bytes == 0)
    return nullptr;
  auto memory = std::make_shared<NcclMemory>(driver, registers);
  MESHWORK_RETURN_IF_ERROR(memory->allocate(bytes, "for the plan"));
  for (auto &[group, communicator] : communicators)
    MESHWORK_RETURN_IF_ERROR(memory->registerWith(*communicator));
  return memory;
}

absl::Status NcclTransport::connect(const NcclSetup &setup) {
  std::string mine;
  MESHWORK_ASSIGN_OR_RETURN(mine, makeIds(setup));
  std::vector<std::string> texts;
  MESHWORK_ASSIGN_OR_RETURN(
      texts, setup.host.exchange(rank, mine, "the exchange of NCCL's ids"));
  MESHWORK_RETURN_IF_ERROR(
      warmUpMemory.allocate(warmUpBytes(), "for the first exchange of ranks"));
  for (const Group &group : groupsOf(setup)) {
    uint32_t root = membersOf(mesh, rank, group)[0];
    nccl::UniqueId id;
    MESHWORK_ASSIGN_OR_RETURN(id, findId(texts[root], group, root));
    MESHWORK_RETURN_IF_ERROR(connect(setup, group, id));
  }
  return absl::OkStatus();
}

absl::Status NcclTransport::connect(const NcclSetup &setup, const Group &group,
                                    const nccl::UniqueId &id) {
  const NcclLibrary *library = nullptr;
  MESHWORK_ASSIGN_OR_RETURN(library, NcclLibrary::open());
  bool isBeside = group.pair.empty() && group.number > 0;
  int maxCtas = isBeside ? static_cast<int>(setup.maxCtas) : 0;
  if (isBeside)
    ctasOfChannel = ctasGivenTo(setup.maxCtas);
  std::vector<uint32_t> members = membersOf(mesh, rank, group);
  uint32_t index = indexIn(mesh, rank, group);
  std::unique_ptr<NcclCommunicator> &made = communicators[group];
  MESHWORK_ASSIGN_OR_RETURN(
      made,
      NcclCommunicator::create(*library, {setup.host, setup.timeoutSeconds}, id,
                               members, index, textOf(group), maxCtas));
  absl::Status warm =
      warmUp(*made, index, static_cast<uint32_t>(members.size()),
             absl::StrCat("the first exchange on ", textOf(group)), setup);
  if (!warm.ok())
    cutOff(); // Freeing memory waits for the stream.
  return warm;
}

/// A word from each rank, one to all.
uint64_t NcclTransport::warmUpBytes() const {
  return (uint64_t{mesh.numRanks()} + 1) * sizeof(float);
}

/// NCCL connects two ranks when they first have something for each other; a
/// rank that cannot be reached is found here.
absl::Status NcclTransport::warmUp(NcclCommunicator &communicator,
                                   uint32_t index, uint32_t ranks,
                                   const std::string &what,
                                   const NcclSetup &setup) {
  const NcclLibrary &nccl = communicator.library();
  auto place = [&](uint32_t word) {
    return reinterpret_cast<void *>(warmUpMemory.address() +
                                    word * sizeof(float));
  };
  MESHWORK_RETURN_IF_ERROR(driver.check(
      driver.fillBytes(warmUpMemory.address(), 0, warmUpBytes(), stream),
      what));
  CommTimes times;
  MESHWORK_RETURN_IF_ERROR(communicator.group(
      [&](nccl::Comm comm) {
        nccl::Result result = nccl::result::success;
        for (uint32_t i = 0; i < ranks && goesOn(result); ++i) {
          if (i == index)
            continue;
          auto peer = static_cast<int>(i);
          result = nccl.send(place(ranks), 1, nccl::dataType::f32, peer, comm,
                             stream);
          if (goesOn(result))
            result = nccl.receive(place(i), 1, nccl::dataType::f32, peer, comm,
                                  stream);
        }
        return result;
      },
      what, times));
  MESHWORK_RETURN_IF_ERROR(communicator.group(
      [&](nccl::Comm comm) {
        return nccl.allReduce(place(0), place(0), 1, nccl::dataType::f32,
                              nccl::reduction::sum, comm, stream);
      },
      what, times));
  return finish(communicator.waiting(what), setup);
}

/// Waits for the own stream, never in the driver: a peer may not come.
absl::Status NcclTransport::finish(const Waiting &peers,
                                   const NcclSetup &setup) {
  PeerWait wait(setup.host, rank, peers);
  while (true) {
    Result state = driver.streamQuery(stream);
    if (state != result::notReady)
      return driver.check(state, peers.what);
    MESHWORK_RETURN_IF_ERROR(check());
    if (absl::Status failure = setup.host.failure(); !failure.ok())
      return absl::AbortedError(absl::StrCat(
          peers.what,
          " stopped because another rank failed: ", failure.message()));
    MESHWORK_RETURN_IF_ERROR(wait.check(setup.timeoutSeconds));
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

absl::StatusOr<std::unique_ptr<DeviceCollective>>
NcclTransport::prepare(uint32_t, CollectiveRequest request) {
  Group group{request.channel, request.axes};
  uint32_t index = mesh.index(rank, request.axes);
  auto ranks = static_cast<uint32_t>(mesh.group(rank, request.axes).size());
  auto communicator = communicators.find(group);
  auto memory = staging.find(request.channel);
  if (memory == staging.end() ||
      (ranks > 1 && communicator == communicators.end()))
    return absl::InternalError(absl::StrCat(
        request.describe(), " on ", textOf(group), " was not announced"));
  auto made = std::make_unique<NcclCollective>(
      ranks > 1 ? communicator->second.get() : nullptr, index, ranks,
      std::move(request), memory->second->address());
  MESHWORK_RETURN_IF_ERROR(made->place(kernels, stream));
  // The tables leave the host before a step begins.
  MESHWORK_RETURN_IF_ERROR(driver.check(driver.streamSynchronize(stream),
                                        "copying the tables of a collective"));
  return made;
}

absl::StatusOr<std::unique_ptr<DeviceTransfer>>
NcclTransport::prepareTransfer(uint32_t, PairRequest request) {
  Group group = groupOf(rank, request);
  auto communicator = communicators.find(group);
  if (communicator == communicators.end())
    return absl::InternalError(absl::StrCat(
        request.describe(), " on ", textOf(group), " was not announced"));
  auto made = std::make_unique<NcclTransfer>(
      driver, registers, *communicator->second,
      /*peer=*/request.sends ? 1 : 0, std::move(request));
  MESHWORK_RETURN_IF_ERROR(made->place(kernels, stream));
  MESHWORK_RETURN_IF_ERROR(driver.check(driver.streamSynchronize(stream),
                                        "copying the tables of a transfer"));
  return made;
}

Waiting NcclTransport::waiting(uint32_t) const {
  std::set<uint32_t> peers;
  for (const auto &[group, communicator] : communicators)
    for (uint32_t member : membersOf(mesh, rank, group))
      peers.insert(member);
  peers.erase(rank);
  return {true,
          absl::StrCat("what the GPU of rank ", rank, " waits for"),
          {peers.begin(), peers.end()}};
}

void NcclTransport::cutOff() {
  // All at once: to abort one is to wait for what it has in streams, which may
  // lie behind what another waits for.
  std::vector<std::function<void()>> cuts;
  for (auto &[group, communicator] : communicators)
    if (communicator)
      cuts.push_back([&one = *communicator] { one.cutOff(); });
  runAtOnce(std::move(cuts));
}

absl::Status NcclTransport::check() {
  for (auto &[group, communicator] : communicators)
    if (communicator)
      MESHWORK_RETURN_IF_ERROR(communicator->check());
  return absl::OkStatus();
}

} // namespace meshwork::runtime::cuda
