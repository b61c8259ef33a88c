// Rows of a table by index, and the gradient of that.
//
// Data sources check that every id is in the vocabulary. Should one slip
// through, its row becomes NaN, which the step's loss check then reports; the
// gradient leaves it out. Neither touches memory outside the views. A table
// that is a shard gives zeros instead: another rank holds the row.
#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>

#include "absl/strings/str_cat.h"
#include "meshwork/Plan/Frame.h"
#include "runtime/device/cpu/Operation.h"
#include "runtime/device/cpu/Rows.h"

namespace meshwork::runtime::cpu {
namespace {

/// What both directions share: `many` rows picked from, or added to, `table`.
struct Lookup {
  Rows table, many;
  Tensor ids;
  int64_t numIds = 0;
  std::optional<Tensor> firstRow; // of a shard

  const int32_t *idsIn(std::byte *arena) const {
    return reinterpret_cast<const int32_t *>(ids.in(arena));
  }
  int64_t firstIn(std::byte *arena) const {
    return firstRow ? *reinterpret_cast<const int32_t *>(firstRow->in(arena))
                    : 0;
  }
  bool inTable(int64_t row) const { return row >= 0 && row < table.count; }
};

absl::StatusOr<Lookup> lookupOf(const ProgramOnRank &program, uint32_t table,
                                uint32_t ids, uint32_t many, uint32_t firstRow,
                                const char *tableRole, const char *manyRole) {
  Lookup lookup;
  MESHWORK_ASSIGN_OR_RETURN(lookup.ids, tensorOf(program, ids, "ids"));
  MESHWORK_RETURN_IF_ERROR(expectType(lookup.ids, DType::i32, "ids"));
  MESHWORK_ASSIGN_OR_RETURN(lookup.numIds, denseCount(lookup.ids, "ids"));
  MESHWORK_ASSIGN_OR_RETURN(lookup.table,
                            floatRowsOf(program, table, 1, tableRole));
  MESHWORK_ASSIGN_OR_RETURN(
      lookup.many, floatRowsOf(program, many, lookup.ids.rank(), manyRole));
  if (lookup.many.count != lookup.numIds ||
      lookup.many.width != lookup.table.width)
    return absl::InvalidArgumentError(absl::StrCat(
        manyRole, " is ", lookup.many.tensor.describe(), ", expected ",
        lookup.numIds, " rows of ", lookup.table.width,
        " elements, as ids and ", tableRole, " have"));
  if (firstRow == plan::noView)
    return lookup;
  Tensor tensor;
  MESHWORK_ASSIGN_OR_RETURN(tensor, tensorOf(program, firstRow, "first_row"));
  MESHWORK_RETURN_IF_ERROR(expectType(tensor, DType::i32, "first_row"));
  lookup.firstRow = std::move(tensor);
  return lookup;
}

class EmbeddingOperation final : public Operation {
public:
  explicit EmbeddingOperation(Lookup lookup) : lookup(std::move(lookup)) {}

  void run(const StepState &) override {
    withTypes(lookup.table.tensor.dtype, lookup.many.tensor.dtype,
              [&](auto *table, auto *out) { pick(table, out); });
  }

private:
  template <typename TableT, typename OutT> void pick(TableT *, OutT *) {
    const int32_t *ids = lookup.idsIn(arena);
    int64_t width = lookup.table.width, first = lookup.firstIn(arena);
    float absent =
        lookup.firstRow ? 0.0f : std::numeric_limits<float>::quiet_NaN();
    team->parallelFor(lookup.numIds, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        OutT *out = lookup.many.row<OutT>(arena, i);
        if (!lookup.inTable(ids[i] - first)) {
          for (int64_t e = 0; e < width; ++e)
            assign(out[e], absent);
          continue;
        }
        const TableT *row = lookup.table.row<TableT>(arena, ids[i] - first);
        for (int64_t e = 0; e < width; ++e)
          assign(out[e], toFloat(row[e]));
      }
    });
  }

  Lookup lookup;
};

class EmbeddingGradOperation final : public Operation {
public:
  EmbeddingGradOperation(Lookup lookup, plan::Accumulate accumulate)
      : lookup(std::move(lookup)), accumulate(accumulate) {}

  /// The order of ids (in the first thread's part) or one row of sums.
  uint64_t workspaceBytes() const override {
    return orderBytes() + static_cast<uint64_t>(lookup.table.width) * 4;
  }

  void run(const StepState &state) override {
    if (!accumulates(accumulate, state))
      clear();
    int64_t *order = reinterpret_cast<int64_t *>(workspaceOf(0));
    sortIds(order);
    withTypes(lookup.table.tensor.dtype, lookup.many.tensor.dtype,
              [&](auto *table, auto *dout) { scatter(order, table, dout); });
  }

private:
  uint64_t orderBytes() const {
    return alignUp(static_cast<uint64_t>(lookup.numIds) * 8);
  }

  void clear() {
    const Rows &table = lookup.table;
    team->parallelFor(table.count, [&](int64_t begin, int64_t end, int) {
      uint64_t rowBytes = table.width * table.tensor.bytes();
      for (int64_t row = begin; row < end; ++row)
        std::memset(table.tensor.in(arena) +
                        row * table.stride * table.tensor.bytes(),
                    0, rowBytes);
    });
  }

  /// Keys (id, position): sorted, equal ids stand together in the order of i.
  void sortIds(int64_t *order) const {
    const int32_t *ids = lookup.idsIn(arena);
    for (int64_t i = 0; i < lookup.numIds; ++i)
      order[i] = (static_cast<int64_t>(ids[i]) << 32) | i;
    std::sort(order, order + lookup.numIds);
  }

  /// Each thread takes the groups of equal ids that start in its range.
  template <typename TableT, typename DoutT>
  void scatter(const int64_t *order, TableT *, DoutT *) {
    int64_t count = lookup.numIds, first = lookup.firstIn(arena);
    auto idAt = [&](int64_t i) { return static_cast<int32_t>(order[i] >> 32); };
    team->parallelFor(count, [&](int64_t begin, int64_t end, int thread) {
      float *sums =
          reinterpret_cast<float *>(workspaceOf(thread) + orderBytes());
      int64_t i = begin;
      while (i > 0 && i < end && idAt(i) == idAt(i - 1))
        ++i;
      while (i < end) {
        int64_t last = i;
        while (last + 1 < count && idAt(last + 1) == idAt(i))
          ++last;
        if (lookup.inTable(idAt(i) - first))
          addGroup<TableT, DoutT>(order, i, last + 1, idAt(i) - first, sums);
        i = last + 1;
      }
    });
  }

  template <typename TableT, typename DoutT>
  void addGroup(const int64_t *order, int64_t begin, int64_t end, int64_t index,
                float *sums) {
    int64_t width = lookup.table.width;
    std::fill(sums, sums + width, 0.0f);
    for (int64_t i = begin; i < end; ++i) {
      const DoutT *row = lookup.many.row<DoutT>(arena, order[i] & 0xffffffff);
      for (int64_t e = 0; e < width; ++e)
        sums[e] += toFloat(row[e]);
    }
    TableT *row = lookup.table.row<TableT>(arena, index);
    for (int64_t e = 0; e < width; ++e)
      assign(row[e], toFloat(row[e]) + sums[e]);
  }

  Lookup lookup;
  plan::Accumulate accumulate;
};

} // namespace

OperationOr make(const plan::Embedding &op, const ProgramOnRank &program) {
  Lookup lookup;
  MESHWORK_ASSIGN_OR_RETURN(lookup,
                            lookupOf(program, op.table(), op.ids(), op.out(),
                                     op.first_row(), "table", "out"));
  return std::make_unique<EmbeddingOperation>(std::move(lookup));
}

OperationOr make(const plan::EmbeddingGrad &op, const ProgramOnRank &program) {
  Lookup lookup;
  MESHWORK_ASSIGN_OR_RETURN(lookup,
                            lookupOf(program, op.dtable(), op.ids(), op.dout(),
                                     op.first_row(), "dtable", "dout"));
  if (lookup.numIds > INT32_MAX)
    return absl::UnimplementedError(
        absl::StrCat("has ", lookup.numIds, " ids, expected at most 2^31 - 1"));
  return std::make_unique<EmbeddingGradOperation>(std::move(lookup),
                                                  op.accumulate());
}

} // namespace meshwork::runtime::cpu
