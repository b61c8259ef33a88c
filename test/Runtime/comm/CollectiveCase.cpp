#include "CollectiveCase.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "meshwork/Plan/Frame.h"
#include "runtime/machine/Bf16.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace meshwork::runtime::test {
namespace {
using Kind = plan::CollectiveKind;
using Index = std::vector<int64_t>;
constexpr uint32_t untouched = 0x5a5b5c5d;

/// Calls `visit` with each index of `shape`.
template <typename Visit> void forEachIndex(const Index &shape, Visit visit) {
  Index index(shape.size(), 0);
  for (int64_t size : shape)
    if (size == 0)
      return;
  while (true) {
    visit(index);
    size_t dim = shape.size();
    while (dim-- > 0 && ++index[dim] == shape[dim])
      index[dim] = 0;
    if (dim == SIZE_MAX)
      return;
  }
}

std::byte *place(const Strided &view, const Index &index) {
  int64_t offset = 0;
  for (size_t i = 0; i < index.size(); ++i)
    offset += index[i] * view.strides[i];
  return view.data + offset * view.width();
}

int64_t ceilBlock(int64_t size, int64_t parts) {
  return (size + parts - 1) / parts;
}
} // namespace

double TestTensor::at(const Index &index) const {
  const std::byte *from = place(view, index);
  if (view.dtype == plan::DType::bf16)
    return fromBf16(*reinterpret_cast<const uint16_t *>(from));
  if (view.dtype == plan::DType::i32)
    return *reinterpret_cast<const int32_t *>(from);
  return *reinterpret_cast<const float *>(from);
}

void TestTensor::set(const Index &index, double value) {
  std::byte *to = place(view, index);
  if (view.dtype == plan::DType::bf16)
    *reinterpret_cast<uint16_t *>(to) = toBf16(static_cast<float>(value));
  else if (view.dtype == plan::DType::i32)
    *reinterpret_cast<int32_t *>(to) = static_cast<int32_t>(value);
  else
    *reinterpret_cast<float *>(to) = static_cast<float>(value);
}

CollectiveCase::CollectiveCase(Kind kind, uint32_t seed,
                               std::vector<std::vector<uint32_t>> meshes)
    : kind(kind), random(seed * 5 + static_cast<uint32_t>(kind)) {
  chooseGroup(std::move(meshes));
  inPlace =
      kind != Kind::all_to_all && kind != Kind::permute && pick(0, 2) == 0;
  bool reduces = kind == Kind::all_reduce || kind == Kind::reduce_scatter;
  if (reduces && seed % 4 == 1)
    reduction = plan::Reduction::max;
  parts.resize(static_cast<size_t>(pick(1, 3)));
  for (Part &part : parts) {
    chooseShapes(part);
    inPlace ? allocateInPlace(part) : allocate(part);
    fill(part);
    work(part);
  }
}

int64_t CollectiveCase::pick(int64_t low, int64_t high) {
  return low +
         static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
}

void CollectiveCase::chooseGroup(std::vector<std::vector<uint32_t>> meshes) {
  if (meshes.empty())
    meshes = {{1}, {2}, {3}, {4}, {2, 2}, {2, 3}, {2, 1, 2}, {3, 2}};
  mesh = meshes[random() % meshes.size()];
  axes.resize(mesh.size());
  std::iota(axes.begin(), axes.end(), 0);
  std::shuffle(axes.begin(), axes.end(), random);
  axes.resize(static_cast<size_t>(pick(1, static_cast<int64_t>(mesh.size()))));
  for (uint32_t size : mesh)
    ranks *= size;
  for (uint32_t axis : axes)
    group *= mesh[axis];
  if (kind != Kind::permute)
    return;
  for (uint32_t i = 0; i < group; ++i)
    sources.push_back(random() % 4 == 0 ? plan::noSource : random() % group);
}

void CollectiveCase::chooseShapes(Part &part) {
  const plan::DType types[] = {plan::DType::f32, plan::DType::bf16,
                               plan::DType::i32};
  part.dtype = types[random() % 3];
  size_t dims = static_cast<size_t>(pick(1, 4));
  Index whole(dims);
  for (int64_t &size : whole)
    size = pick(1, 7);
  if (pick(0, 9) == 0)
    whole[0] = pick(3000, 30000) / static_cast<int64_t>(dims * dims * dims);
  part.src = part.dst = whole;
  if (kind == Kind::all_reduce || kind == Kind::permute)
    return;
  part.dim = random() % dims;
  int64_t n = group;
  if (kind == Kind::all_gather)
    part.src[part.dim] = ceilBlock(whole[part.dim], n);
  if (kind == Kind::reduce_scatter)
    part.dst[part.dim] = ceilBlock(whole[part.dim], n);
  if (kind != Kind::all_to_all)
    return;
  part.toDim = random() % dims;
  if (part.dim == part.toDim) {
    part.src[part.dim] = part.dst[part.dim] = n * whole[part.dim];
    return;
  }
  part.src[part.dim] = ceilBlock(whole[part.dim], n);
  part.dst[part.toDim] = ceilBlock(whole[part.toDim], n);
}

TestTensor CollectiveCase::make(plan::DType dtype, const Index &shape,
                                bool dense) {
  TestTensor tensor;
  tensor.view.dtype = dtype;
  tensor.view.shape = shape;
  tensor.view.strides.assign(shape.size(), 1);
  std::vector<size_t> order(shape.size());
  std::iota(order.begin(), order.end(), 0);
  std::reverse(order.begin(), order.end());
  if (!dense)
    std::shuffle(order.begin(), order.end(), random);
  int64_t step = dense ? 1 : pick(1, 2);
  for (size_t dim : order) {
    tensor.view.strides[dim] = step;
    step = step * shape[dim] + (dense ? 0 : pick(0, 3));
  }
  // Whole blocks past the end, as a shifted view of an uneven tensor needs.
  tensor.memory.assign(static_cast<size_t>(step) * 4 + 16, untouched);
  tensor.view.data = reinterpret_cast<std::byte *>(tensor.memory.data());
  return tensor;
}

/// Every rank has memory of its own and the strides of the first.
void CollectiveCase::allocate(Part &part) {
  TestTensor src = make(part.dtype, part.src, pick(0, 1) == 0),
             dst = make(part.dtype, part.dst, pick(0, 1) == 0);
  part.srcs.assign(ranks, src);
  part.dsts.assign(ranks, dst);
  for (uint32_t rank = 0; rank < ranks; ++rank)
    for (auto *tensors : {&part.srcs, &part.dsts}) {
      TestTensor &tensor = (*tensors)[rank];
      tensor.view.data = reinterpret_cast<std::byte *>(tensor.memory.data());
    }
}

/// The smaller of both is the rank's own block of the other.
void CollectiveCase::allocateInPlace(Part &part) {
  bool gathers = kind == Kind::all_gather;
  Index &whole = gathers ? part.dst : part.src;
  Index &block = gathers ? part.src : part.dst;
  bool outermost = part.dim == 0 && pick(0, 1) == 0;
  if (kind != Kind::all_reduce && !outermost) // Blocks must fill it.
    whole[part.dim] = block[part.dim] * group;
  TestTensor like = make(part.dtype, whole, outermost);
  part.srcs.assign(ranks, like);
  part.dsts.assign(ranks, TestTensor());
  Mesh of(mesh);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    TestTensor &src = part.srcs[rank], &dst = part.dsts[rank];
    src.view.data = reinterpret_cast<std::byte *>(src.memory.data());
    dst.view = src.view;
    Strided &part_ = gathers ? src.view : dst.view;
    part_.shape = block;
    if (kind != Kind::all_reduce)
      part_.data += of.index(rank, axes) * block[part.dim] *
                    part_.strides[part.dim] * part_.width();
  }
}

double CollectiveCase::valueFor(const Part &part, uint32_t rank,
                                const Index &index) const {
  uint32_t hash = rank * 7919 + 17;
  for (int64_t i : index)
    hash = hash * 31 + static_cast<uint32_t>(i);
  hash *= 2654435761u;
  double value = static_cast<double>(static_cast<int32_t>(hash)) / 3.0e5;
  if (part.dtype == plan::DType::i32)
    return static_cast<int32_t>(hash);
  float single = static_cast<float>(value);
  return part.dtype == plan::DType::bf16 ? fromBf16(toBf16(single)) : single;
}

void CollectiveCase::fill(Part &part) {
  for (uint32_t rank = 0; rank < ranks; ++rank)
    forEachIndex(part.src, [&](const Index &index) {
      part.srcs[rank].set(index, valueFor(part, rank, index));
    });
}

/// The answer, straight from Plan.fbs.
void CollectiveCase::work(Part &part) {
  Mesh of(mesh);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    std::vector<uint32_t> members = of.group(rank, axes);
    int64_t me = of.index(rank, axes);
    // In place, the answer lies in what was the source.
    TestTensor answer = inPlace ? part.srcs[rank] : part.dsts[rank];
    std::byte *start = reinterpret_cast<std::byte *>(answer.memory.data());
    const std::vector<uint32_t> &was =
        (inPlace ? part.srcs[rank] : part.dsts[rank]).memory;
    answer.view = part.dsts[rank].view;
    answer.view.data =
        start + (part.dsts[rank].view.data -
                 reinterpret_cast<const std::byte *>(was.data()));
    auto count = [&](const Index &index) {
      uint32_t total = 0; // wraps around
      for (uint32_t member : members)
        total += static_cast<uint32_t>(
            static_cast<int32_t>(valueFor(part, member, index)));
      return static_cast<double>(static_cast<int32_t>(total));
    };
    auto sum = [&](const Index &index) -> double {
      if (part.dtype == plan::DType::i32)
        return count(index);
      float total = 0;
      for (size_t j = 0; j < members.size(); ++j) {
        float value = static_cast<float>(valueFor(part, members[j], index));
        total = j == 0 ? value : total + value;
      }
      return total;
    };
    auto combined = [&](const Index &index) {
      if (reduction == plan::Reduction::sum)
        return sum(index);
      double most = valueFor(part, members[0], index);
      for (uint32_t member : members)
        most = std::max(most, valueFor(part, member, index));
      return most;
    };
    forEachIndex(part.dst, [&](const Index &index) {
      Index from = index;
      double value = 0;
      int64_t block = part.src[part.dim];
      switch (kind) {
      case Kind::all_reduce:
        value = combined(index);
        break;
      case Kind::permute:
        if (uint32_t source = sources[static_cast<size_t>(me)];
            source != plan::noSource)
          value = valueFor(part, members[source], from);
        break;
      case Kind::all_gather:
        from[part.dim] = index[part.dim] % block;
        value = valueFor(
            part, members[static_cast<size_t>(index[part.dim] / block)], from);
        break;
      case Kind::reduce_scatter:
        from[part.dim] += me * part.dst[part.dim];
        value = from[part.dim] < part.src[part.dim] ? combined(from) : 0;
        break;
      case Kind::all_to_all: {
        if (part.dim == part.toDim) {
          int64_t piece = block / group;
          from[part.dim] = me * piece + index[part.dim] % piece;
          value = valueFor(
              part, members[static_cast<size_t>(index[part.dim] / piece)],
              from);
          break;
        }
        from[part.dim] = index[part.dim] % block;
        from[part.toDim] += me * part.dst[part.toDim];
        if (from[part.toDim] < part.src[part.toDim])
          value = valueFor(
              part, members[static_cast<size_t>(index[part.dim] / block)],
              from);
        break;
      }
      }
      answer.set(index, value);
    });
    part.expected.push_back(std::move(answer));
  }
}

CollectiveRequest CollectiveCase::request(uint32_t rank) const {
  CollectiveRequest request{kind, reduction, axes, {}, "case", sources};
  for (const Part &part : parts)
    request.parts.push_back(
        {part.srcs[rank].view, part.dsts[rank].view, part.dim, part.toDim});
  return request;
}

std::vector<std::vector<uint32_t> *> CollectiveCase::memories(uint32_t rank) {
  std::vector<std::vector<uint32_t> *> all;
  for (Part &part : parts) {
    all.push_back(&part.srcs[rank].memory);
    if (!inPlace)
      all.push_back(&part.dsts[rank].memory);
  }
  return all;
}

std::string CollectiveCase::firstDifference(uint32_t rank,
                                            double tolerance) const {
  for (size_t p = 0; p < parts.size(); ++p) {
    const TestTensor &found =
        inPlace ? parts[p].srcs[rank] : parts[p].dsts[rank];
    const auto &expected = parts[p].expected[rank].memory;
    auto isClose = [&](uint32_t a, uint32_t b) {
      return parts[p].dtype == plan::DType::f32 &&
             std::abs(double(std::bit_cast<float>(a)) -
                      std::bit_cast<float>(b)) <= tolerance;
    };
    for (size_t i = 0; i < expected.size(); ++i)
      if (found.memory[i] != expected[i] &&
          !isClose(found.memory[i], expected[i]))
        return absl::StrCat("rank ", rank, ", part ", p, ", word ", i, ": ",
                            absl::Hex(found.memory[i]), ", expected ",
                            absl::Hex(expected[i]));
  }
  return "";
}

std::string CollectiveCase::firstDifference() const {
  for (uint32_t rank = 0; rank < ranks; ++rank)
    if (std::string text = firstDifference(rank); !text.empty())
      return text;
  return "";
}

std::string CollectiveCase::describe() const {
  std::string text =
      absl::StrCat(plan::EnumNameCollectiveKind(kind),
                   reduction == plan::Reduction::max ? " of maxima" : "",
                   " mesh ", absl::StrJoin(mesh, "x"), " axes ",
                   absl::StrJoin(axes, ","), inPlace ? " in place" : "");
  for (const Part &part : parts)
    absl::StrAppend(&text, "; ", plan::EnumNameDType(part.dtype), "[",
                    absl::StrJoin(part.src, ","), "] -> [",
                    absl::StrJoin(part.dst, ","), "] dim ", part.dim, " to ",
                    part.toDim);
  return text;
}

} // namespace meshwork::runtime::test
