#include "runtime/selftest/CollectiveChecks.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/Plan/StatusMacros.h"
#include "runtime/machine/Bf16.h"
#include <algorithm>
#include <cstring>

namespace meshwork::runtime {
namespace {
using Kind = plan::CollectiveKind;
/// Elements that each rank has of what all have together: no power of two, so
/// that blocks do not come to lie at round places. Of many ranks fewer each.
int64_t blockOf(size_t ranks) {
  constexpr int64_t most = 40009, together = 10'000'000;
  return std::min(most, together / static_cast<int64_t>(ranks) | 1);
}

uint32_t smallestFactor(uint32_t number) {
  for (uint32_t factor = 2; factor * factor <= number; ++factor)
    if (number % factor == 0)
      return factor;
  return number;
}

/// From -6 to 6: in bf16, too, each is exact.
int64_t valueOf(uint32_t rank, int64_t index) {
  return (rank * int64_t{31} + index * 7) % 13 - 6;
}

/// As memory holds it, in bits.
uint32_t bitsOf(plan::DType dtype, int64_t value) {
  if (dtype == plan::DType::i32)
    return static_cast<uint32_t>(static_cast<int32_t>(value));
  auto number = static_cast<float>(value);
  if (dtype == plan::DType::bf16)
    return toBf16(number);
  uint32_t bits = 0;
  std::memcpy(&bits, &number, sizeof(bits));
  return bits;
}

/// One tensor of one dim.
struct Tensor {
  Tensor(plan::DType dtype, int64_t size) {
    view.dtype = dtype;
    view.shape = {size};
    view.strides = {1};
    memory.resize(static_cast<size_t>(size) * view.width());
    view.data = memory.data();
  }
  uint32_t at(int64_t i) const {
    uint32_t bits = 0;
    std::memcpy(&bits, memory.data() + static_cast<size_t>(i) * view.width(),
                view.width());
    return bits;
  }
  void set(int64_t i, uint32_t bits) {
    std::memcpy(memory.data() + static_cast<size_t>(i) * view.width(), &bits,
                view.width());
  }
  Strided view;
  std::vector<std::byte> memory;
};

/// One check, as one rank has it.
class Case {
public:
  Case(const CollectiveCheck &check, const Mesh &mesh, uint32_t rank)
      : check(check), members(mesh.group(rank, check.axes)),
        me(mesh.index(rank, check.axes)), block(blockOf(members.size())),
        source(check.dtype, inSize(check.kind, members.size())),
        target(check.dtype, outSize(check.kind, members.size())) {
    for (int64_t i = 0; i < source.view.shape[0]; ++i)
      source.set(i, bitsOf(check.dtype, valueOf(rank, i)));
  }

  uint64_t bytes() const { return source.memory.size(); }
  CollectiveRequest request() const {
    CollectiveRequest request{check.kind,
                              check.reduction,
                              check.axes,
                              {{source.view, target.view}},
                              "self-test"};
    for (size_t i = 0; check.kind == Kind::permute && i < members.size(); ++i)
      request.sources.push_back(
          static_cast<uint32_t>((i + 1) % members.size()));
    return request;
  }

  /// "" when all is right.
  std::string wrong() const {
    for (int64_t i = 0; i < target.view.shape[0]; ++i)
      if (uint32_t right = bitsOf(check.dtype, expected(i));
          target.at(i) != right)
        return absl::StrFormat("element %d of %d: bits %08x, expected %08x", i,
                               target.view.shape[0], target.at(i), right);
    return "";
  }

private:
  static int64_t inSize(Kind kind, size_t group) {
    bool isWhole = kind == Kind::reduce_scatter || kind == Kind::all_to_all;
    return blockOf(group) * (isWhole ? static_cast<int64_t>(group) : 1);
  }
  static int64_t outSize(Kind kind, size_t group) {
    bool isWhole = kind == Kind::all_gather || kind == Kind::all_to_all;
    return blockOf(group) * (isWhole ? static_cast<int64_t>(group) : 1);
  }
  int64_t combined(int64_t i) const {
    int64_t sum = 0, most = INT64_MIN;
    for (uint32_t member : members) {
      sum += valueOf(member, i);
      most = std::max(most, valueOf(member, i));
    }
    return check.reduction == plan::Reduction::max ? most : sum;
  }
  int64_t expected(int64_t i) const {
    auto from = [&](int64_t place) {
      return members[static_cast<size_t>(place)];
    };
    switch (check.kind) {
    case Kind::all_reduce:
      return combined(i);
    case Kind::reduce_scatter:
      return combined(me * block + i);
    case Kind::all_gather:
      return valueOf(from(i / block), i % block);
    case Kind::all_to_all:
      return valueOf(from(i / block), me * block + i % block);
    case Kind::permute:
      return valueOf(members[(me + 1) % members.size()], i);
    }
    return 0;
  }

  const CollectiveCheck &check;
  std::vector<uint32_t> members;
  uint32_t me;
  int64_t block;
  Tensor source, target;
};

void inLine(int64_t items, absl::FunctionRef<void(int64_t, int64_t)> body) {
  body(0, items);
}

/// Which lists of axes there are: each that is not empty.
std::vector<std::vector<uint32_t>> groupsOf(uint32_t numAxes) {
  std::vector<std::vector<uint32_t>> all;
  for (uint32_t bits = 1; bits < 1u << numAxes; ++bits) {
    std::vector<uint32_t> &axes = all.emplace_back();
    for (uint32_t axis = 0; axis < numAxes; ++axis)
      if (bits >> axis & 1)
        axes.push_back(axis);
  }
  return all;
}

std::vector<CollectiveCheck> checksFor(const Mesh &mesh, uint32_t numAxes) {
  std::vector<CollectiveCheck> all;
  for (const std::vector<uint32_t> &axes : groupsOf(numAxes))
    for (Kind kind : plan::EnumValuesCollectiveKind())
      for (plan::DType dtype :
           {plan::DType::f32, plan::DType::bf16, plan::DType::i32}) {
        auto add = [&](plan::Reduction reduction) {
          all.push_back({kind, reduction, dtype, axes, 0, 0, 0, ""});
          all.back().ranks = static_cast<uint32_t>(mesh.group(0, axes).size());
        };
        add(plan::Reduction::sum);
        if (kind == Kind::all_reduce && dtype != plan::DType::i32)
          add(plan::Reduction::max);
      }
  return all;
}

/// "SECONDS" and what is wrong, of two runs: the first may open connections.
absl::StatusOr<std::string> runTwice(PreparedCollective &prepared,
                                     const Case &one) {
  CommTimes ignored, times;
  MESHWORK_RETURN_IF_ERROR(prepared.run(inLine, ignored));
  MESHWORK_RETURN_IF_ERROR(prepared.run(inLine, times));
  double seconds = static_cast<double>(times.waitNs + times.moveNs) * 1e-9;
  return absl::StrFormat("%.17g %s", seconds, one.wrong());
}

/// Of what all ranks say: the slowest, and the lowest that is wrong.
void judge(const std::vector<std::string> &texts, CollectiveCheck &check) {
  for (size_t rank = texts.size(); rank-- > 0;) {
    const std::string &text = texts[rank];
    check.seconds = std::max(check.seconds, std::strtod(text.c_str(), nullptr));
    size_t end = text.find(' ');
    if (end + 1 < text.size())
      check.wrong = absl::StrCat("rank ", rank, ", ", text.substr(end + 1));
  }
}

absl::Status runCheck(Transport &transport, uint32_t rank, const Mesh &mesh,
                      CollectiveCheck &check) {
  Case one(check, mesh, rank);
  check.bytes = one.bytes();
  absl::StatusOr<std::unique_ptr<PreparedCollective>> prepared =
      transport.prepare(rank, one.request());
  MESHWORK_RETURN_IF_ERROR(prepared.status());
  std::string mine;
  MESHWORK_ASSIGN_OR_RETURN(mine, runTwice(**prepared, one));
  std::vector<std::string> texts; // Of all: memory may go after.
  MESHWORK_ASSIGN_OR_RETURN(texts,
                            transport.exchange(rank, mine, "a self-test"));
  judge(texts, check);
  return absl::OkStatus();
}
} // namespace

std::vector<uint32_t> meshToCheck(uint32_t ranks) {
  std::vector<uint32_t> sizes;
  for (; ranks > 1 && sizes.size() < 2; ranks /= sizes.back())
    sizes.push_back(smallestFactor(ranks));
  if (ranks > 1 || sizes.empty())
    sizes.push_back(ranks);
  return sizes;
}

std::vector<CollectiveRequest>
collectivesToCheck(uint32_t rank, const Mesh &mesh, uint32_t numAxes) {
  std::vector<CollectiveRequest> all;
  for (const CollectiveCheck &check : checksFor(mesh, numAxes))
    all.push_back(Case(check, mesh, rank).request());
  return all;
}

absl::StatusOr<std::vector<CollectiveCheck>>
checkCollectives(Transport &transport, uint32_t rank, const Mesh &mesh,
                 uint32_t numAxes) {
  std::vector<CollectiveCheck> all = checksFor(mesh, numAxes);
  for (CollectiveCheck &check : all)
    MESHWORK_RETURN_IF_ERROR(runCheck(transport, rank, mesh, check));
  return all;
}

} // namespace meshwork::runtime
