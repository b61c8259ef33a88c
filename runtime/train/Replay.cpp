#include "runtime/train/Replay.h"
#include "absl/strings/str_cat.h"
#include "lib/Plan/Operands.h"
#include "lib/Plan/Shards.h"
#include "meshwork/Plan/Frame.h"
#include "runtime/machine/Float8.h"
#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <cstring>

namespace meshwork::runtime {
using plan::ViewInfo;
namespace {

/// The exponent bits of f32 and bf16 lie at the same place of the upper half.
bool isNonFinite(const std::byte *at, plan::DType type, bool &isNan) {
  uint32_t bits = 0;
  std::memcpy(&bits, at, plan::sizeOf(type)); // little endian
  if (type == plan::DType::bf16)
    bits <<= 16;
  if (plan::isFloat8(type))
    bits =
        std::bit_cast<uint32_t>(fromFloat8(type, static_cast<uint8_t>(bits)));
  isNan = (bits & 0x7fffffffu) > 0x7f800000u;
  return (bits & 0x7f800000u) == 0x7f800000u;
}

const char *scan(const ViewInfo &view, const std::byte *data, size_t dim) {
  bool isNan = false;
  if (dim == view.shape.size()) {
    if (!isNonFinite(data, view.dtype, isNan))
      return nullptr;
    return isNan ? "NaN" : "infinity";
  }
  int64_t step =
      view.strides[dim] * static_cast<int64_t>(plan::sizeOf(view.dtype));
  for (int64_t i = 0; i < view.shape[dim]; ++i)
    if (const char *found = scan(view, data + i * step, dim + 1))
      return found;
  return nullptr;
}
} // namespace

const char *nonFiniteIn(const ViewInfo &view, const std::byte *data) {
  return view.dtype == plan::DType::i32 ? nullptr : scan(view, data, 0);
}

void NonFiniteScan::after(const ListRun &run, uint32_t at, int64_t, int64_t,
                          const CommTimes &) {
  if (first)
    return;
  const plan::Instruction &source =
      rank.instruction(run.list, rank.turn(run.list, at).instruction);
  forEachOperand(source, [&](const plan::Operand &operand) {
    if (first || !operand.written)
      return;
    const ViewInfo &view = rank.view(operand.view);
    absl::StatusOr<HostView> host =
        rank.toHost(operand.view, rank.where(run, at));
    const char *found =
        host.ok() ? nonFiniteIn(view, host->tensor.data) : nullptr;
    if (!found)
      return;
    const plan::Buffer &buffer = *rank.program().buffers()->Get(view.buffer);
    bool isOfOne = plan::isOfMicrobatch(rank.table().lists()[run.list].kind);
    first = Finding{false, run.action, at, rank.rank(), ""};
    first->isReceived = source.op_as_Receive() != nullptr;
    first->text =
        absl::StrCat("the first is a", found[0] == 'i' ? "n " : " ", found,
                     " in ", plan::quote(buffer.name()),
                     ", written by instruction ", plan::quote(source.name()),
                     " (", plan::EnumNameOperation(source.op_type()), ", ",
                     rank.nameOf(run.list, at), ")",
                     isOfOne ? absl::StrCat(" in microbatch ", run.microbatch)
                             : std::string(),
                     " on rank ", rank.rank());
  });
}

std::string Finding::encode() const {
  return absl::StrCat(inParameter ? 1 : 0, " ", isReceived ? 1 : 0, " ", action,
                      " ", index, " ", rank, "\n", text);
}

std::optional<Finding> Finding::decode(const std::string &from) {
  Finding finding;
  unsigned in = 0, received = 0;
  int length = 0;
  if (std::sscanf(from.c_str(), "%u %u %u %u %u%n", &in, &received,
                  &finding.action, &finding.index, &finding.rank, &length) != 5)
    return std::nullopt;
  finding.inParameter = in != 0;
  finding.isReceived = received != 0;
  finding.text = from.substr(static_cast<size_t>(length) + 1);
  return finding;
}

namespace {
const char *foundIn(const Rank &rank, uint32_t view) {
  absl::StatusOr<HostView> host = rank.toHost(view);
  return host.ok() ? nonFiniteIn(rank.view(view), host->tensor.data) : nullptr;
}

/// The first parameter with a view that holds what is not finite.
template <typename ViewsOf>
std::optional<Finding> scanViews(const Rank &rank, const char *what,
                                 const char *verb, const char *when,
                                 ViewsOf viewsOf) {
  uint32_t index = 0;
  for (const plan::Parameter *parameter :
       plan::orEmpty(rank.program().parameters())) {
    for (uint32_t view : viewsOf(*parameter)) {
      const char *found = view == plan::noView ? nullptr : foundIn(rank, view);
      if (!found)
        continue;
      Finding finding{true, 0, index, rank.rank(), ""};
      finding.text = absl::StrCat(what, plan::quote(parameter->name()),
                                  " of rank ", rank.rank(), verb,
                                  found[0] == 'i' ? "n " : " ", found, when);
      return finding;
    }
    ++index;
  }
  return std::nullopt;
}
} // namespace

std::optional<Finding> scanParameters(const Rank &rank) {
  return scanViews(rank, "parameter ", " held a", " before the step",
                   [](const plan::Parameter &parameter) {
                     return std::array{plan::masterOf(parameter).view(),
                                       plan::weightView(parameter)};
                   });
}

std::optional<Finding> scanGradients(const Rank &rank) {
  return scanViews(rank, "the gradient of ", " holds a", "",
                   [](const plan::Parameter &parameter) {
                     return std::array{plan::gradientView(parameter)};
                   });
}

} // namespace meshwork::runtime
