#include "lib/Explain/HostUse.h"
#include "absl/strings/str_cat.h"
#include "lib/Explain/Format.h"
#include "lib/Plan/Views.h"
#include <algorithm>

namespace meshwork::explain {
namespace {
using plan::orEmpty;

bool isOnHost(const plan::Program &program, const plan::View &view) {
  return program.buffers()->Get(view.buffer())->space() == plan::Space::host;
}

uint64_t bytesOf(const plan::View &view) {
  uint64_t bytes = plan::bytesOf(view.dtype());
  for (int64_t size : orEmpty(view.shape()))
    bytes = saturatingMul(bytes, static_cast<uint64_t>(size));
  return bytes;
}

void addCopy(const plan::Program &program, const plan::Copy &copy,
             uint64_t runs, HostUse &use) {
  const plan::View &from = *program.views()->Get(copy.src()),
                   &to = *program.views()->Get(copy.dst());
  uint64_t bytes = saturatingMul(bytesOf(from), runs);
  if (isOnHost(program, from))
    use.toDevice = saturatingAdd(use.toDevice, bytes);
  else if (isOnHost(program, to))
    use.back = saturatingAdd(use.back, bytes);
}

bool keeps(const plan::Program &program, plan::BufferKind kind) {
  const auto &buffers = orEmpty(program.buffers());
  return std::any_of(buffers.begin(), buffers.end(), [&](auto *buffer) {
    return buffer->kind() == kind && buffer->space() == plan::Space::host;
  });
}

std::string kindsOf(absl::Span<const plan::Program *const> programs) {
  std::string text;
  for (plan::BufferKind kind : plan::EnumValuesBufferKind())
    if (std::any_of(programs.begin(), programs.end(),
                    [&](auto *program) { return keeps(*program, kind); }))
      absl::StrAppend(&text, text.empty() ? "" : ", ",
                      plan::EnumNameBufferKind(kind));
  return text;
}
} // namespace

HostUse hostUse(const plan::Program &program, const Listing &listing) {
  HostUse use{program.host_bytes()};
  for (const Phase &phase : listing.phases())
    for (uint64_t i = phase.begin; i < phase.end; ++i)
      if (const plan::Copy *copy = listing[i].op_as_Copy())
        addCopy(program, *copy, saturatingMul(phase.runs, listing.timesOf(i)),
                use);
  return use;
}

HostUse mostHostUse(const plan::Plan &plan) {
  HostUse most;
  for (const plan::Program *program : *plan.programs()) {
    HostUse one = hostUse(*program, Listing(*program));
    most.kept = std::max(most.kept, one.kept);
    most.toDevice = std::max(most.toDevice, one.toDevice);
    most.back = std::max(most.back, one.back);
  }
  return most;
}

std::string kindsOnHost(const plan::Plan &plan) {
  std::vector<const plan::Program *> programs(plan.programs()->begin(),
                                              plan.programs()->end());
  return kindsOf(programs);
}

std::string hostText(const plan::Program &program, const Listing &listing) {
  HostUse use = hostUse(program, listing);
  if (use.kept == 0)
    return "";
  return absl::StrCat(
      "Beside it, in the host's memory: ", exactBytesText(use.kept), " (",
      kindsOf({&program}), "); a step brings ", bytesText(use.toDevice),
      " to the device and takes ", bytesText(use.back), " back\n");
}

} // namespace meshwork::explain
