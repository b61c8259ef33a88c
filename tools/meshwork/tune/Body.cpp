#include "tools/meshwork/tune/Body.h"

#include "tools/meshwork/tune/Cost.h"

#include <algorithm>

namespace meshwork::tune {
namespace {

bool isSingle(const Choice &choice, uint32_t global) {
  return choice.dataParallel() * choice.micro >= global;
}
} // namespace

Choice bodyOf(const Choice &choice, bool gathersApart) {
  bool gathers = gathersApart && choice.zeroStage == 3;
  Choice body = choice;
  body.pp = 1;
  body.dp = gathers ? 2 : 1;
  body.fsdp = 1;
  body.zeroStage = gathers ? 3 : 0;
  body.gathered = gathers ? "free" : "";
  body.reduce = body.schedule = {};
  body.virtualStages = 0;
  body.offloads = false;
  return body;
}

uint32_t microbatchesOfBody(const Choice &choice, uint32_t global) {
  return isSingle(choice, global) ? 1 : 2;
}

namespace {

double passingBytes(const Compiled &one) {
  return static_cast<double>(one.costed.bytes) -
         static_cast<double>(one.storedBytes);
}

/// What one more layer adds.
OfLayer difference(const Compiled &few, const Compiled &more) {
  auto each = [](double a, double b) {
    return std::max(0.0, b - a) / layersMore;
  };
  return {each(few.lists.forward[0], more.lists.forward[0]),
          each(few.lists.backward[0], more.lists.backward[0]),
          each(few.update, more.update),
          each(passingBytes(few), passingBytes(more))};
}

Body asCompiled(const Compiled &compiled) {
  Body body{compiled.costed.status, compiled.costed.why};
  if (body.status == Costed::done) {
    body.forward = compiled.lists.forward[0];
    body.backward = compiled.lists.backward[0];
  }
  body.waits = compiled.waits;
  body.update = compiled.update;
  body.otherBytes = passingBytes(compiled);
  body.toHost = compiled.toHost;
  return body;
}

/// Extends a body by the layers of a kind that were left out. Those that were
/// not keep as much as they do.
void extend(Body &body, const LayerKind &kind, const OfLayer &one,
            const Waits &waits) {
  auto left = static_cast<double>(kind.layers - kind.shallow);
  body.forward += left * one.forward;
  body.backward += left * one.backward;
  body.waits = body.waits.plus(waits.times(left));
  body.update += left * one.update;
  body.otherBytes -= static_cast<double>(kind.shallow) * one.kept;
  bool isFirst = body.kept == 0;
  body.leastKept = isFirst ? one.kept : std::min(body.leastKept, one.kept);
  body.kept += static_cast<double>(kind.layers) * one.kept;
}

/// Likewise what its layers move.
void extend(ToHost &moved, const LayerKind &kind, const ToHost &few,
            const ToHost &more) {
  for (auto [bytes, count] : more) {
    auto found = few.find(bytes);
    int64_t before = found == few.end() ? 0 : found->second;
    moved[bytes] +=
        (kind.layers - kind.shallow) * (count - before) / layersMore;
  }
}
} // namespace

Body measureBody(const Facts &facts, const Models &models,
                 const spec::Spec &spec, uint32_t ranks) {
  bool isExtended = !facts.shallow.empty();
  Compiled few =
      compileWith(isExtended ? models.shallow() : models.whole(), spec, ranks);
  Body body = asCompiled(few);
  body.gathersWeights = spec.zero.stage == 3;
  for (size_t number = 0; number < facts.kinds.size(); ++number) {
    if (body.status != Costed::done)
      break;
    const LayerKind &kind = facts.kinds[number];
    OfLayer one;
    if (!kind.deeper.empty()) {
      Compiled more = compileWith(models.deeper(number), spec, ranks);
      if (more.costed.status != Costed::done)
        return asCompiled(more);
      one = difference(few, more);
      Waits waits =
          more.waits.plus(few.waits.times(-1)).times(1.0 / layersMore);
      extend(body, kind, one, waits.positive());
      extend(body.toHost, kind, few.toHost, more.toHost);
    }
    body.ofKinds.push_back(one);
  }
  body.waits = body.waits.positive();
  if (double all = body.waits.all(); all > body.seconds())
    body.waits = body.waits.times(body.seconds() / all);
  body.otherBytes = std::max(0.0, body.otherBytes);
  return body;
}

} // namespace meshwork::tune
