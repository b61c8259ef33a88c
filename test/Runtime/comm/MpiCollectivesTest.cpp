// The cases of CollectiveShapesTest between processes: run by mpirun with as
// many as it likes; every rank checks its own results.
#include "CollectiveCase.h"
#include "absl/strings/str_cat.h"
#include "runtime/comm/MeetingPlace.h"
#include "runtime/comm/MessageTransport.h"
#include "runtime/comm/MpiMessages.h"
#include "runtime/comm/SocketMessages.h"
#include "runtime/machine/Clock.h"
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <sched.h>
#include <unistd.h>

namespace meshwork::runtime::test {
namespace {
using Kind = plan::CollectiveKind;

std::vector<std::vector<uint32_t>> meshesOf(uint32_t ranks) {
  std::vector<std::vector<uint32_t>> meshes = {{ranks}, {1, ranks}};
  for (uint32_t a = 2; a < ranks; ++a)
    if (ranks % a == 0)
      meshes.push_back({a, ranks / a});
  return meshes;
}

void inTwoParts(int64_t items, absl::FunctionRef<void(int64_t, int64_t)> body) {
  body(items / 2, items);
  body(0, items / 2);
}

/// "" when all is right.
std::string runCase(World &world, Kind kind, uint32_t seed) {
  CollectiveCase one(kind, seed, meshesOf(world.size()));
  MessageTransport transport(world, Mesh(one.mesh));
  CollectiveRequest request = one.request(world.rank());
  request.channel = seed % 9;
  auto collective = transport.prepare(world.rank(), std::move(request));
  if (!collective.ok())
    return std::string(collective.status().message());
  CommTimes times;
  int64_t begin = steadyNs();
  if (absl::Status status = (*collective)->run(inTwoParts, times); !status.ok())
    return std::string(status.message());
  if (int64_t took = steadyNs() - begin; times.waitNs + times.moveNs > took)
    return absl::StrCat("waits ", times.waitNs, " ns and moves for ",
                        times.moveNs, " ns, but takes ", took, " ns");
  std::string text = one.firstDifference(world.rank());
  // Nobody may start the next case with this one's memory still in use.
  absl::StatusOr<uint32_t> met = transport.agree(world.rank(), 0, "a case");
  return met.ok() ? text : std::string(met.status().message());
}

/// Along a line of ranks: each receives two tensors, one of them with gaps, and
/// sends on one more than it got; several at once, which are awaited in any
/// order.
std::string transfersArrive(World &world) {
  constexpr uint32_t rounds = 3;
  constexpr int64_t rows = 300, columns = 50, gap = 7;
  MessageTransport transport(world, Mesh({world.size()}));
  uint32_t me = world.rank(), last = world.size() - 1;
  auto tensors = [&](std::vector<float> &memory, uint32_t round) {
    float *at = memory.data() + round * rows * (2 * columns + gap);
    auto *bytes = reinterpret_cast<std::byte *>(at);
    return std::vector<Strided>{
        {bytes, plan::DType::f32, {rows, columns}, {columns + gap, 1}},
        {bytes + rows * (columns + gap) * sizeof(float),
         plan::DType::f32,
         {rows, columns},
         {columns, 1}}};
  };
  std::vector<float> memory(rounds * rows * (2 * columns + gap), 0);
  std::vector<std::unique_ptr<PreparedTransfer>> receives, sends;
  auto prepare = [&](bool sending, uint32_t peer, uint32_t round, auto &to) {
    auto one = transport.prepareTransfer(
        me, {sending, peer, 0, tensors(memory, round), "x"});
    to.push_back(std::move(*one));
  };
  CommTimes times;
  absl::Status status;
  for (uint32_t round = 0; round < rounds; ++round) {
    if (me > 0)
      prepare(false, me - 1, round, receives);
    if (me < last)
      prepare(true, me + 1, round, sends);
  }
  for (auto &receive : receives)
    status.Update(receive->start(inTwoParts));
  for (uint32_t round = 0; round < rounds; ++round) {
    if (me > 0)
      status.Update(receives[round]->finish(inTwoParts, times));
    for (const Strided &tensor : tensors(memory, round))
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) {
          float &value =
              reinterpret_cast<float *>(tensor.data)[i * tensor.strides[0] + j];
          auto expected =
              static_cast<float>(me) * static_cast<float>(round + 1);
          if (value != expected)
            return absl::StrCat("round ", round, " of rank ", me, ": ", value,
                                " instead of ", expected);
          value += static_cast<float>(round + 1);
        }
    if (me < last)
      status.Update(sends[round]->start(inTwoParts));
  }
  for (size_t i = sends.size(); i-- > 0;)
    status.Update(sends[i]->finish(inTwoParts, times));
  absl::StatusOr<uint32_t> met = transport.agree(me, 0, "transfers");
  status.Update(met.status());
  return std::string(status.message());
}

/// Rank 0 works on a file until rank 1 has asked who is at fault.
std::string fileWorkIsNoFault(World &world) {
  MessageTransport transport(world, Mesh({world.size()}));
  uint32_t me = world.rank();
  std::string path = "/tmp/meshwork-asked-XXXXXX";
  if (me == 0)
    ::close(::mkstemp(path.data()));
  std::optional<FileWork<MessageTransport>> work;
  if (me == 0)
    work.emplace(transport, me, "it writes weights");
  auto paths = transport.exchange(me, path, "a path");
  if (!paths.ok())
    return std::string(paths.status().message());
  path = (*paths)[0];
  std::string text;
  Waiting forFirst{true, "the end", {0}};
  if (me == 1) {
    if (absl::Status found = world.blame(forFirst, 0.1); !found.ok())
      text =
          absl::StrCat("a rank at work on files is blamed: ", found.message());
    ::unlink(path.c_str());
  }
  while (me == 0 && ::access(path.c_str(), F_OK) == 0)
    ::sched_yield();
  work.reset();
  absl::StatusOr<uint32_t> met = transport.agree(me, 0, "a case");
  return met.ok() ? text : std::string(met.status().message());
}

/// MPI's, or sockets' where the environment tells where to meet.
absl::StatusOr<Messages *> carrier() {
  auto environment = [](const char *name) -> const char * {
    return std::getenv(name);
  };
  absl::StatusOr<Launch> launch = detectLaunch(environment);
  if (!launch.ok() || launch->hasManager)
    return MpiMessages::start(World::numLanes);
  absl::StatusOr<std::optional<MeetingPlace>> place =
      meetingPlace(*launch, environment);
  if (!place.ok() || !*place)
    return absl::FailedPreconditionError("no launcher started this process");
  return SocketMessages::start(**place, 30);
}

int runAll() {
  absl::StatusOr<World *> world = World::start(carrier(), 30, false);
  if (!world.ok()) {
    std::fprintf(stderr, "%s\n", world.status().ToString().c_str());
    return 1;
  }
  int cases = 0;
  for (Kind kind : {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter,
                    Kind::all_to_all, Kind::permute})
    for (uint32_t seed = 0; seed < 200; ++seed, ++cases)
      if (std::string text = runCase(**world, kind, seed); !text.empty()) {
        std::fprintf(stderr, "%s seed %u: %s\n",
                     plan::EnumNameCollectiveKind(kind), seed, text.c_str());
        (*world)->abort(1);
      }
  if (std::string text = transfersArrive(**world); !text.empty()) {
    std::fprintf(stderr, "%s\n", text.c_str());
    (*world)->abort(1);
  }
  if (std::string text = fileWorkIsNoFault(**world); !text.empty()) {
    std::fprintf(stderr, "%s\n", text.c_str());
    (*world)->abort(1);
  }
  if ((*world)->rank() == 0)
    std::printf("%d collectives on %u ranks\n", cases, (*world)->size());
  (*world)->finish();
  return (*world)->size() > 1 ? 0 : 1; // Alone nothing is tested.
}
} // namespace
} // namespace meshwork::runtime::test

int main() { return meshwork::runtime::test::runAll(); }
