// Sums of rows by index, the same bits in each run: every row of the table has
// one block, which adds what belongs there in the order of ids.
//
// Block b has the rows b, b + blocks, b + 2 blocks, ..., so that ids that are
// near each other, as frequent tokens are, go to different blocks. It lists, in
// shared memory, where its rows stand among the ids, links equal ones, and adds
// up. Where they are more than the list holds it takes fewer rows at a time;
// a single row with too many is summed piece by piece.
#include "passes/codegen/gpu/library/Device.h"
#include "passes/codegen/gpu/library/EmbeddingGradGeometry.h"

namespace meshwork {
namespace {
using namespace embeddingGrad;
constexpr u32 lanes = 32, idsOfLane = capacity / lanes,
              entries = warps * capacity;
constexpr int ahead = 8; // rows whose loads are under way at once

struct Task {
  const i32 *ids;
  u32 numIds;
  i64 first;
  u32 tableRows, blocks;

  /// The local number of a row of this block, or a number past all of them.
  __device__ u32 localRow(i32 id) const {
    i64 row = static_cast<i64>(id) - first;
    if (static_cast<u64>(row) >= tableRows)
      return ~0u;
    u32 number = static_cast<u32>(row), local = number / blocks;
    return number - local * blocks == blockInGrid() ? local : ~0u;
  }
};

/// In shared memory. An entry is a place among the ids; warp w's are from
/// w * capacity on, in the order of ids.
struct List {
  u32 count[warps]; // more than capacity: some found no room
  i32 place[entries], next[entries];
  u32 row[entries];
  i32 head[1]; // of each local row, one after another: its first entry, or -1

  /// One warp's part of `find`: ids [begin, end).
  __device__ void scan(const Task &task, u32 from, u32 to, u32 begin, u32 end) {
    u32 lane = threadInBlock() % lanes, warp = threadInBlock() / lanes,
        found = 0;
    for (u32 start = begin; start < end && found <= capacity;
         start += capacity) {
      i32 ids[idsOfLane];
#pragma unroll
      for (u32 j = 0; j < idsOfLane; ++j) {
        u32 at = start + j * lanes + lane;
        ids[j] = task.ids[at < end ? at : end - 1];
      }
#pragma unroll
      for (u32 j = 0; j < idsOfLane; ++j) {
        u32 at = start + j * lanes + lane, local = task.localRow(ids[j]);
        bool isHit = at < end && local >= from && local < to;
        u32 hits = ballot(isHit);
        u32 slot = found + countBits(hits & ((1u << lane) - 1));
        if (isHit && slot < capacity)
          add(warp * capacity + slot, at, local);
        found += countBits(hits);
      }
    }
    if (lane == 0)
      count[warp] = found;
  }
  __device__ void add(u32 entry, u32 at, u32 local) {
    place[entry] = static_cast<i32>(at);
    next[entry] = -1;
    row[entry] = local;
  }

  /// Hangs an entry behind the last one before it of the same row.
  __device__ void link(u32 warp, u32 slot) {
    u32 entry = warp * capacity + slot, local = row[entry];
    for (i32 w = static_cast<i32>(warp); w >= 0; --w)
      for (i32 s =
               static_cast<i32>(w == static_cast<i32>(warp) ? slot : count[w]) -
               1;
           s >= 0; --s)
        if (u32 before = static_cast<u32>(w) * capacity + static_cast<u32>(s);
            row[before] == local) {
          next[before] = static_cast<i32>(entry);
          return;
        }
    head[local] = static_cast<i32>(entry);
  }

  /// Lists local rows [from, to) among ids [begin, end); false: no room. All
  /// threads of the block call it, and meet after it to call it again.
  __device__ bool find(const Task &task, u32 from, u32 to, u32 begin, u32 end) {
    u32 part = ((end - begin + warps - 1) / warps + capacity - 1) / capacity *
               capacity;
    u32 start = begin + threadInBlock() / lanes * part;
    scan(task, from, to, start, start + part < end ? start + part : end);
    for (u32 local = from + threadInBlock(); local < to; local += threads)
      head[local] = -1;
    meetBlock();
    for (u32 w = 0; w < warps; ++w)
      if (count[w] > capacity)
        return false;
    for (u32 w = 0; w < warps; ++w)
      for (u32 slot = threadInBlock(); slot < count[w]; slot += threads)
        link(w, slot);
    meetBlock();
    return true;
  }
};

static_assert(sizeof(List) == sharedBytes(1));

/// The sum of a row's listed entries, added to `sum` in order.
template <int N, typename From>
__device__ void addListed(const List &list, u32 local, const From *column,
                          i64 stride, Vector<float, N> &sum) {
  for (i32 entry = list.head[local]; entry >= 0;) {
    i32 place[ahead];
    decltype(loadRaw<N>(column)) values[ahead]; // narrow until it is added
#pragma unroll
    for (int j = 0; j < ahead; ++j) {
      place[j] = entry >= 0 ? list.place[entry] : -1;
      entry = entry >= 0 ? list.next[entry] : -1;
    }
#pragma unroll
    for (int j = 0; j < ahead; ++j) {
      values[j] =
          0; // Adding it changes nothing: a sum that begins at 0 is never -0.
      if (place[j] >= 0)
        values[j] = loadRaw<N>(column + place[j] * stride);
    }
#pragma unroll
    for (int j = 0; j < ahead; ++j)
      sum += widen<N>(values[j]);
  }
}

template <int N, typename To>
__device__ void addTo(To *row, Vector<float, N> sum, bool adds) {
  Vector<float, N> old = 0.0f;
  if (adds)
    old = load<N>(row);
  store<N>(row, old + sum);
}

/// `team` threads share a row's columns, and the block's teams its rows.
template <int N, typename From, typename To>
__device__ void run(List &list, const Task &task, const From *dout,
                    i64 doutStride, To *table, i64 tableStride, u32 width,
                    u32 team, bool adds) {
  u32 block = blockInGrid(),
      numRows = block < task.tableRows
                    ? (task.tableRows - block - 1) / task.blocks + 1
                    : 0;
  u32 member = threadInBlock() % team * N, mine = threadInBlock() / team;
  auto rowOf = [&](u32 local) {
    return table +
           (block + static_cast<i64>(local) * task.blocks) * tableStride;
  };
  for (u32 from = 0, to = numRows; from < numRows; from = to, to = numRows) {
    bool fits = list.find(task, from, to, 0, task.numIds);
    for (; !fits && to - from > 1;
         fits = list.find(task, from, to, 0, task.numIds)) {
      meetBlock();
      to = from + (to - from) / 2;
    }
    if (fits) {
      for (u32 local = from + mine; local < to && mine < threads / team;
           local += threads / team)
        for (u32 column = member; column < width; column += team * N) {
          Vector<float, N> sum = 0.0f;
          addListed<N>(list, local, dout + column, doutStride, sum);
          if (!adds || list.head[local] >= 0)
            addTo<N>(rowOf(local) + column, sum, adds);
        }
      meetBlock();
      continue;
    }
    for (u32 begin = 0; begin < width; begin += team * N) {
      Vector<float, N> sum = 0.0f;
      bool isMine = mine == 0 && begin + member < width;
      for (u32 piece = 0; piece < task.numIds; piece += entries) {
        meetBlock();
        list.find(task, from, to, piece,
                  piece + entries < task.numIds ? piece + entries
                                                : task.numIds);
        if (isMine)
          addListed<N>(list, from, dout + begin + member, doutStride, sum);
      }
      if (isMine)
        addTo<N>(rowOf(from) + begin + member, sum, adds);
    }
    meetBlock();
  }
}
} // namespace

/// dtable[ids[i] - first, e] (+)= sum of dout[i, e], e < width, over i < numIds
/// in order; rows without any become 0 unless it `adds`. A whole table, which
/// is no shard, has no `first`. `blocks` blocks of 256 threads, of which `team`
/// share a row, `vector` columns each; shared bytes: EmbeddingGradGeometry.h.
DEVICE_FUNCTION void meshwork_embedding_grad(const i32 *ids, const void *dout,
                                             const i32 *first, void *dtable,
                                             i32 adds, i64 isShard, i64 blocks,
                                             i64 team, i64 numIds, i64 width,
                                             i64 rows, i64 doutStride,
                                             i64 tableStride, i64 doutBytes,
                                             i64 tableBytes, i64 vector) {
  Task task = {ids, static_cast<u32>(numIds), isShard ? *first : 0,
               static_cast<u32>(rows), static_cast<u32>(blocks)};
  List &list = *reinterpret_cast<List *>(meshwork_shared);
  withType(doutBytes, [&](auto *doutType) {
    withType(tableBytes, [&](auto *tableType) {
      withWidth(vector, [&](auto w) {
        run<decltype(w)::value>(
            list, task,
            static_cast<decltype(doutType)>(const_cast<void *>(dout)),
            doutStride, static_cast<decltype(tableType)>(dtable), tableStride,
            static_cast<u32>(width), static_cast<u32>(team), adds != 0);
      });
    });
  });
}

} // namespace meshwork
