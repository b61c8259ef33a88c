#include "runtime/comm/MessageTransport.h"
#include "absl/strings/str_cat.h"
#include "runtime/comm/MessageCollective.h"
#include "runtime/comm/MessageTransfer.h"
#include <cstring>

namespace meshwork::runtime {
namespace {
/// A text from a peer; more is a mistake, not a message.
constexpr uint64_t maxText = uint64_t{1} << 32;
} // namespace

MessageTransport::MessageTransport(World &world, Mesh mesh)
    : world(world), mesh(std::move(mesh)) {}
MessageTransport::~MessageTransport() = default;

absl::StatusOr<std::unique_ptr<PreparedCollective>>
MessageTransport::prepare(uint32_t rank, CollectiveRequest request) {
  Staging &buffers = staging[request.channel];
  std::vector<uint32_t> members = mesh.group(rank, request.axes);
  uint32_t index = mesh.index(rank, request.axes);
  return std::make_unique<MessageCollective>(world, buffers, std::move(members),
                                             index, std::move(request));
}

absl::StatusOr<std::unique_ptr<PreparedTransfer>>
MessageTransport::prepareTransfer(uint32_t, PairRequest request) {
  return std::make_unique<MessageTransfer>(world, std::move(request));
}

absl::StatusOr<uint32_t> MessageTransport::agree(uint32_t, uint32_t flags,
                                                 const char *what) {
  std::vector<uint32_t> all(world.size(), flags);
  std::vector<Messages::Pending> pending;
  for (uint32_t peer = 0; peer < world.size(); ++peer) {
    if (peer == world.rank())
      continue;
    absl::Status status = world.receive(World::serviceLane, peer, &all[peer],
                                        sizeof(flags), pending);
    if (status.ok())
      status =
          world.send(World::serviceLane, peer, &flags, sizeof(flags), pending);
    if (!status.ok())
      return status;
  }
  if (absl::Status met = world.wait(World::serviceLane, pending, what);
      !met.ok())
    return met;
  for (uint32_t other : all)
    flags |= other;
  return flags;
}

absl::StatusOr<std::vector<std::string>>
exchangeTexts(World &world, const std::string &mine, const std::string &what) {
  std::vector<std::string> texts(world.size(), mine);
  std::vector<uint64_t> sizes(world.size(), mine.size());
  std::vector<Messages::Pending> pending;
  auto withPeers = [&](auto visit) -> absl::Status {
    for (uint32_t peer = 0; peer < world.size(); ++peer)
      if (peer != world.rank())
        if (absl::Status status = visit(peer); !status.ok())
          return status;
    return world.wait(World::serviceLane, pending, what);
  };
  uint64_t size = mine.size();
  absl::Status status = withPeers([&](uint32_t peer) {
    absl::Status posted = world.receive(World::serviceLane, peer, &sizes[peer],
                                        sizeof(size), pending);
    return posted.ok() ? world.send(World::serviceLane, peer, &size,
                                    sizeof(size), pending)
                       : posted;
  });
  if (!status.ok())
    return status;
  status = withPeers([&](uint32_t peer) {
    if (sizes[peer] > maxText)
      return absl::InternalError(absl::StrCat(
          "rank ", peer, " sends a text of ", sizes[peer], " bytes"));
    texts[peer].resize(sizes[peer]);
    absl::Status posted =
        world.receive(World::serviceLane, peer, texts[peer].data(),
                      texts[peer].size(), pending);
    return posted.ok() ? world.send(World::serviceLane, peer, mine.data(),
                                    mine.size(), pending)
                       : posted;
  });
  if (!status.ok())
    return status;
  return texts;
}

absl::StatusOr<std::vector<std::string>>
MessageTransport::exchange(uint32_t, std::string mine, const char *what) {
  return exchangeTexts(world, mine, what);
}

absl::Status MessageTransport::gather(uint32_t rank, std::string mine,
                                      Deliver deliver) {
  const std::string what = "the end of a step on all ranks";
  std::vector<Messages::Pending> pending;
  std::vector<uint64_t> sizes(world.size(), mine.size());
  uint64_t size = mine.size();
  if (rank != 0) {
    absl::Status status =
        world.send(World::serviceLane, 0, &size, sizeof(size), pending);
    if (status.ok())
      status =
          world.send(World::serviceLane, 0, mine.data(), mine.size(), pending);
    return status.ok() ? world.wait(World::serviceLane, pending, what) : status;
  }
  std::vector<std::string> all(world.size(), mine);
  for (bool isText : {false, true}) {
    for (uint32_t peer = 1; peer < world.size(); ++peer) {
      if (isText && sizes[peer] > maxText)
        return absl::InternalError(absl::StrCat(
            "rank ", peer, " sends a text of ", sizes[peer], " bytes"));
      if (isText)
        all[peer].resize(sizes[peer]);
      absl::Status status =
          isText ? world.receive(World::serviceLane, peer, all[peer].data(),
                                 all[peer].size(), pending)
                 : world.receive(World::serviceLane, peer, &sizes[peer],
                                 sizeof(size), pending);
      if (!status.ok())
        return status;
    }
    if (absl::Status status = world.wait(World::serviceLane, pending, what);
        !status.ok())
      return status;
  }
  return deliver(all);
}

absl::Status MessageTransport::toFirst(uint32_t from,
                                       absl::Span<float> values) {
  std::vector<Messages::Pending> pending;
  size_t bytes = values.size() * sizeof(float);
  absl::Status status =
      world.rank() == from
          ? world.send(World::serviceLane, 0, values.data(), bytes, pending)
          : world.receive(World::serviceLane, from, values.data(), bytes,
                          pending);
  return status.ok() ? world.wait(World::serviceLane, pending,
                                  "the gathering of weights")
                     : status;
}

void MessageTransport::abort(uint32_t, const absl::Status &why) {
  world.fail(why);
}

void MessageTransport::setWaiting(uint32_t, const Waiting &waiting) {
  world.setWaiting(World::elsewhere, waiting);
}

void MessageTransport::setFileWork(uint32_t rank, std::string what) {
  world.setFileWork(rank, std::move(what));
}

absl::Status MessageTransport::blame(uint32_t, const Waiting &mine,
                                     double seconds) {
  return world.blame(mine, seconds);
}

} // namespace meshwork::runtime
