// Collectives by NCCL between processes: run by mpirun, with a device for each
// on this machine; MPI carries the ids. The cases are those of NcclTest.
#include "absl/strings/str_cat.h"
#include "runtime/comm/MessageTransport.h"
#include "runtime/comm/MpiMessages.h"
#include "runtime/device/cuda/NcclMoves.h"
#include "runtime/device/cuda/NcclTransport.h"
#include "test/Runtime/cuda/DeviceCase.h"
#include <cmath>
#include <cstdio>

namespace meshwork::runtime::cuda::test {
namespace {
using runtime::test::CollectiveCase;
using Kind = plan::CollectiveKind;

/// "" when all is right.
std::string runCase(World &world, TestDevice &on, Kind kind, uint32_t seed) {
  CollectiveCase one(kind, seed, {{world.size()}, {1, world.size()}});
  Mesh mesh(one.mesh);
  MessageTransport host(world, mesh);
  RankOfCase mine(on, one, world.rank());
  CollectiveRequest request = mine.onDevice();
  request.channel = seed % 3;
  auto transport = NcclTransport::create(
      {*on.driver, host, mesh, world.rank(), {request}, 60});
  expectOk(transport.status());
  auto collective = (*transport)->prepare(world.rank(), request);
  expectOk(collective.status());
  CommTimes times;
  expectOk((*collective)->enqueue(on.stream, times));
  on.synchronize();
  mine.copyBack();
  double n = one.group; // As NcclTest derives it.
  double tolerance =
      2 * (n - 1) * n * CollectiveCase::maxValue * std::ldexp(1.0, -24);
  bool native = callOf(request, one.group) != NcclCall::messages;
  return one.firstDifference(world.rank(), native ? tolerance : 0);
}

int runAll(World &world) {
  TestDevice on(world.rank());
  int cases = 0;
  for (Kind kind : {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter,
                    Kind::all_to_all, Kind::permute})
    for (uint32_t seed = 0; seed < 12; ++seed, ++cases)
      if (std::string text = runCase(world, on, kind, seed); !text.empty()) {
        std::fprintf(stderr, "%s seed %u: %s\n",
                     plan::EnumNameCollectiveKind(kind), seed, text.c_str());
        world.abort(1);
      }
  if (world.rank() == 0)
    std::printf("%d collectives on %u ranks\n", cases, world.size());
  return world.size() > 1 ? 0 : 1; // Alone nothing is tested.
}
} // namespace
} // namespace meshwork::runtime::cuda::test

int main() {
  using namespace meshwork::runtime;
  absl::StatusOr<World *> world =
      World::start(MpiMessages::start(World::numLanes), 60, false);
  if (!world.ok()) {
    std::fprintf(stderr, "%s\n", world.status().ToString().c_str());
    return 1;
  }
  int code = 1;
  try {
    code = cuda::test::runAll(**world);
  } catch (const std::exception &failure) {
    std::fprintf(stderr, "rank %u: %s\n", (*world)->rank(), failure.what());
    (*world)->abort(1);
  }
  (*world)->finish();
  return code;
}
