#include "lib/Explain/Unread.h"
#include "lib/Explain/Listing.h"
#include "lib/Plan/Operands.h"

namespace meshwork::explain {

std::vector<const plan::Buffer *> unreadStores(const plan::Program &program) {
  const auto &buffers = *program.buffers();
  std::vector<bool> isRead(buffers.size()), isWritten(buffers.size());
  Listing listing(program);
  for (uint64_t i = 0; i < listing.size(); ++i)
    plan::forEachOperand(listing[i], [&](const plan::Operand &operand) {
      uint32_t buffer = program.views()->Get(operand.view)->buffer();
      isRead[buffer] = isRead[buffer] || operand.read;
      isWritten[buffer] = isWritten[buffer] || operand.written;
    });
  std::vector<const plan::Buffer *> unread;
  for (uint32_t i = 0; i < buffers.size(); ++i) {
    const plan::Buffer &buffer = *buffers.Get(i);
    if (isWritten[i] && !isRead[i] && !buffer.persistent() &&
        buffer.kind() != plan::BufferKind::results)
      unread.push_back(&buffer);
  }
  return unread;
}

} // namespace meshwork::explain
