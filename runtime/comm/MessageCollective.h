// One collective of one process; see MessageTransport.h.
#pragma once

#include "runtime/comm/MessageTransport.h"
#include "runtime/comm/Moves.h"

namespace meshwork::runtime {

class MessageCollective : public PreparedCollective {
public:
  /// `members` are the ranks of the group by index; this process is `index`.
  /// Grows `staging` to what is needed.
  MessageCollective(World &world, MessageTransport::Staging &staging,
                    std::vector<uint32_t> members, uint32_t index,
                    CollectiveRequest request);
  absl::Status run(ParallelFor parallel, CommTimes &times) override;

private:
  /// Elements [begin, end) of a box, packed from byte `at` of a message on.
  struct Slice {
    uint32_t part;
    const Box *box;
    int64_t begin, end;
    size_t at;
  };
  struct Message {
    std::vector<Slice> slices;
    size_t bytes = 0;
    size_t at = 0; // in the staging memory
  };
  std::pair<int64_t, int64_t> share(int64_t n, uint32_t owner) const;
  Message needs(const std::vector<Move> &moves, uint32_t target,
                uint32_t source) const;
  void arrange();
  absl::Status swap(const std::vector<Message> &out, const std::byte *from,
                    const std::vector<Message> &in, std::byte *to);
  void pack(const Message &message, std::byte *memory, ParallelFor parallel);
  void unpack(const Message &message, const std::byte *memory,
              ParallelFor parallel);
  void moveOwn(ParallelFor parallel);
  void reduce(ParallelFor parallel);
  absl::Status spread(ParallelFor parallel);

  World &world;
  MessageTransport::Staging &staging;
  std::vector<uint32_t> members;
  uint32_t index, ranks;
  CollectiveRequest request;
  std::string what;
  bool reduces;
  std::vector<std::vector<Move>> moves; // of each index
  std::vector<Message> sends, receives; // to and from each index
  std::vector<Messages::Pending> pending;
  int64_t waitedNs = 0; // of a run, for messages
};

} // namespace meshwork::runtime
