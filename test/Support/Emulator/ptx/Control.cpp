// Branches, calls, barriers and the end. How lanes go separate ways is in
// WarpLoop.cpp.
#include "test/Support/Emulator/ptx/Barriers.h"
#include "test/Support/Emulator/ptx/Lanes.h"
#include "test/Support/Emulator/ptx/Mbarriers.h"

namespace meshwork::ptx {
namespace {

void nothing(Warp &, const Instruction &, Mask) {}
void trap(Warp &, const Instruction &, Mask active) {
  throw Fault{Fault::Kind::trap, "trap", __builtin_ctz(active)};
}

void decodeBra(Line &line) {
  line.take("uni"); // a promise; checked as every other branch
  if (line.operand(0).kind != Operand::Kind::name)
    line.fail("the target is no label");
  uint32_t label = line.decoder.label(line.operand(0).name);
  line.emit(nothing, {}, Flow::branch).target = label;
}
void decodeBrx(Line &line) {
  if (!line.take("idx"))
    line.fail("only brx.idx exists");
  line.take("uni");
  uint32_t index = line.source(0, Type::u32);
  uint32_t targets = line.decoder.indexedTargets(line.operand(1).name);
  line.emit(nothing, {index}, Flow::indexed).target = targets;
}
void decodeExit(Line &line) { line.emit(nothing, {}, Flow::exit); }
void decodeRet(Line &line) {
  line.take("uni");
  std::optional<uint32_t> end = line.decoder.returnLabel();
  if (!end)
    return decodeExit(line);
  line.emit(nothing, {}, Flow::branch).target = *end;
}
void decodeCall(Line &line) {
  line.take("uni");
  if (!line.statement.guard.empty())
    line.fail("a call under a predicate is not modelled");
  size_t name = line.operand(0).kind == Operand::Kind::list ? 1 : 0;
  if (line.operand(name).kind != Operand::Kind::name)
    line.fail("the function's name is missing");
  std::vector<Operand> results, arguments;
  if (name == 1)
    results = line.items(0);
  if (line.numOperands() > name + 1)
    arguments = line.items(name + 1);
  if (line.numOperands() > name + 2)
    line.fail("indirect calls are not modelled");
  line.decoder.call(line, line.operand(name).name, results, arguments);
}
void decodeTrap(Line &line) { line.emit(trap, {}); }
void fenceProxy(Warp &warp, const Instruction &, Mask) {
  ++warp.proxyFences;
  fenceMbarriers(warp);
}
void fenceInit(Warp &warp, const Instruction &, Mask) { fenceMbarriers(warp); }

/// Between ordinary instructions and TMA or wgmma; only these two kinds count.
void decodeAsyncFence(Line &line) {
  if (line.take("mbarrier_init")) {
    if (!line.take("release") || !line.take("cluster"))
      line.fail("only fence.mbarrier_init.release.cluster exists");
    line.emit(fenceInit, {});
  } else if (line.take("async") && !line.take("global")) {
    line.emit(fenceProxy, {});
  }
}

/// Orders of memory: the emulator has only one.
void decodeFence(Line &line) {
  decodeAsyncFence(line);
  static constexpr std::string_view words[] = {"sc",
                                               "acq_rel",
                                               "acquire",
                                               "release",
                                               "cta",
                                               "cluster",
                                               "gpu",
                                               "gl",
                                               "sys",
                                               "proxy",
                                               "async::generic",
                                               "alias",
                                               "global",
                                               "shared::cta",
                                               "shared::cluster",
                                               "sync_restrict::shared::cta"};
  while (line.takeOneOf(words) >= 0) {
  }
}
void decodeNanosleep(Line &line) {
  line.source(0, line.type());
  line.emit(nothing, {});
}
/// Says when a dependent grid may start: grids run one after the other.
void decodeGriddepcontrol(Line &line) {
  if (!line.take("launch_dependents") && !line.take("wait"))
    line.fail("no action that is modelled");
}

void decodeWarpSync(Line &line) {
  if (!line.take("sync"))
    line.fail("only bar.warp.sync exists");
  uint32_t mask = line.source(0, Type::b32);
  line.emit(nothing, {}, Flow::gather).together = mask;
}
BarrierKind takeBarrierKind(Line &line) {
  if (line.take("sync"))
    return BarrierKind::sync;
  if (line.take("arrive"))
    return BarrierKind::arrive;
  if (!line.take("red"))
    line.fail(".sync, .arrive or .red is missing");
  return line.take("popc")  ? BarrierKind::count
         : line.take("and") ? BarrierKind::all
         : line.take("or")
             ? BarrierKind::any
             : (line.fail("the reduction is missing"), BarrierKind::any);
}
void decodeBar(Line &line) {
  if (line.take("warp"))
    return decodeWarpSync(line);
  line.take("cta");
  line.take("aligned");
  BarrierKind kind = takeBarrierKind(line);
  bool reduces = kind >= BarrierKind::count;
  uint32_t to = noRegister, p = noRegister;
  size_t first = 0, last = line.numOperands();
  bool negated = false;
  if (reduces) {
    to = line.dest(0, line.type());
    first = 1;
    negated = line.operand(--last).negated;
    p = line.source(last, Type::pred);
  }
  uint32_t id = line.source(first, Type::u32);
  uint32_t threads =
      first + 1 < last ? line.source(first + 1, Type::u32) : noRegister;
  if (kind == BarrierKind::arrive && threads == noRegister)
    line.fail("the number of threads is missing");
  Instruction &i = line.emit(nothing, {id, threads, to, p}, Flow::barrier);
  i.count = uint8_t(kind);
  i.extra = negated;
}

} // namespace

std::span<const Opcode> controlOpcodes() {
  static constexpr Opcode list[] = {{"bra", decodeBra},
                                    {"brx", decodeBrx},
                                    {"ret", decodeRet},
                                    {"exit", decodeExit},
                                    {"call", decodeCall},
                                    {"trap", decodeTrap},
                                    {"brkpt", decodeTrap},
                                    {"membar", decodeFence},
                                    {"fence", decodeFence},
                                    {"nanosleep", decodeNanosleep},
                                    {"bar", decodeBar},
                                    {"barrier", decodeBar},
                                    {"griddepcontrol", decodeGriddepcontrol}};
  return list;
}

} // namespace meshwork::ptx
