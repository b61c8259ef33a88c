#include "passes/partition/ExpandRing.h"

#include "dialects/transformer/Facts.h"
#include "passes/partition/Ring.h"

using namespace mlir;

namespace meshwork::partition {
using namespace transformer;
using namespace sharding;
namespace {

/// What takes the place of parts: they must not wait for the last of them.
Value kept(Value whole) {
  setKept(whole.getDefiningOp());
  return whole;
}

/// Builds the hops of one op at its place.
class Expansion {
public:
  Expansion(AttentionOpInterface op, mesh::MeshAttr attr, const Mesh &mesh,
            const Axes &axes, int64_t size)
      : op(op), attr(attr), axes(axes), size(size),
        ring(mesh, axes, size, op.getTerms().getCausal(),
             op.getTerms().getWindow()),
        builder(op), f32(builder.getF32Type()) {}

  SmallVector<Value> run() {
    switch (op.getOverKeys()) {
    case OverKeys::merged:
      return merged();
    case OverKeys::summed:
      return summed();
    }
    llvm_unreachable("all ways are handled");
  }

private:
  SmallVector<Value> merged();
  SmallVector<Value> summed();

  /// Keys and values where they are at a stop.
  struct Visit {
    Value keys, values;
    size_t stop = 0;
  };

  Visit own() { return {op.getK(), op.getV(), 0}; }
  /// What is received at the stop after `before`.
  Visit next(const Visit &before) {
    size_t stop = before.stop + 1;
    const Visit &from = ring.comeFromHome(stop) ? own() : before;
    std::vector<int64_t> sources = ring.keySources(stop);
    return {moved(from.keys, sources, "keys"),
            moved(from.values, sources, "values"), stop};
  }

  /// From stop `first` on. What goes to the next one is on its way before it is
  /// used here: it then moves beside the computation.
  void visitAll(size_t first, function_ref<void(const Visit &)> use) {
    Visit visit = own();
    bool isLast = false;
    while (!isLast) {
      isLast = visit.stop + 1 == ring.numStops();
      Visit coming = isLast ? Visit() : next(visit);
      if (visit.stop >= first)
        use(visit);
      visit = coming;
    }
  }

  Value moved(Value value, ArrayRef<int64_t> sources, StringRef what) {
    auto text = [&](const Twine &words) {
      return builder.getStringAttr(words);
    };
    constexpr int64_t noLayer = mesh::CauseAttr::noLayer;
    auto cause = mesh::CauseAttr::get(
        builder.getContext(), text(what + Twine(" of attention")),
        layerOf(op).value_or(noLayer), text(""), noLayer,
        text("go around a ring (context.method)"), {text("context.method")});
    return mesh::PermuteOp::create(builder, op->getLoc(), value.getType(),
                                   value, builder.getDenseI64ArrayAttr(sources),
                                   axesAttr(attr, axes), cause);
  }

  /// `op` with the keys of a visit, and results of f32.
  ResultRange attend(const Visit &visit) {
    Value positions = positionsOf(visit);
    auto clone = cast<AttentionOpInterface>(builder.clone(*op.getOperation()));
    clone.getKMutable().assign(visit.keys);
    clone.getVMutable().assign(visit.values);
    clone.getKeysMutable().assign(positions);
    clone.setTermsAttr(op.getTerms().with({.totalKeys = size}));
    clone->removeAttr(mesh::MeshDialect::shardingsName); // Types are local.
    for (Value result : clone->getResults())
      result.setType(withElement(tensorType(result), f32));
    return clone->getResults();
  }

  Value positionsOf(const Visit &visit) {
    auto keys = tensorType(visit.keys);
    auto dims = DimsAttr::get(builder.getContext(),
                              {dimsOf(keys).getNames()[1].getValue()});
    auto type =
        RankedTensorType::get({keys.getDimSize(1)}, builder.getI32Type(), dims);
    return mesh::PositionsOp::create(builder, op->getLoc(), type,
                                     dimAttr(attr, axes), size,
                                     ring.distance(visit.stop));
  }

  Value sum(Value a, Value b) {
    return kept(buildSum(builder, op->getLoc(), a, b));
  }

  Value rounded(Value value, Type type) {
    return type == value.getType()
               ? value
               : buildMap(
                     builder, op->getLoc(), type, {value},
                     [](ImplicitLocOpBuilder &, ValueRange x) { return x[0]; });
  }

  /// Of what all hops together make, as the op's own.
  Value likeResult(Value value, unsigned result) {
    return rounded(value, op->getResult(result).getType());
  }

  AttentionOpInterface op;
  mesh::MeshAttr attr;
  const Axes &axes;
  int64_t size;
  Ring ring;
  OpBuilder builder;
  Type f32;
};

/// The part of a result, and its log-sum-exp, of which a row without keys has
/// next to nothing: finite, so that nothing is subtracted from infinity.
struct Partial {
  Value out, lse;
};

Value atLeast(ImplicitLocOpBuilder &b, Value x, float least) {
  return arith::MaxNumFOp::create(
      b, x, arith::ConstantOp::create(b, b.getF32FloatAttr(least)));
}

Value exponential(ImplicitLocOpBuilder &b, Value x, Value less) {
  return math::ExpOp::create(b, arith::SubFOp::create(b, x, less));
}

/// No score is as low.
constexpr float nothing = -1e30f;

Partial merge(OpBuilder &builder, Location loc, const Partial &a,
              const Partial &b) {
  Value lse = buildMap(
      builder, loc, a.lse.getType(), {a.lse, b.lse},
      [&](ImplicitLocOpBuilder &i, ValueRange x) -> Value {
        Value p = atLeast(i, x[0], nothing), q = atLeast(i, x[1], nothing);
        Value top = arith::MaxNumFOp::create(i, p, q);
        Value sum = arith::AddFOp::create(i, exponential(i, p, top),
                                          exponential(i, q, top));
        return arith::AddFOp::create(i, top, math::LogOp::create(i, sum));
      });
  Value out = buildMap(
      builder, loc, a.out.getType(), {a.out, b.out, a.lse, b.lse, lse},
      [&](ImplicitLocOpBuilder &i, ValueRange x) -> Value {
        auto share = [&](Value part, Value own) -> Value {
          return arith::MulFOp::create(
              i, part, exponential(i, atLeast(i, own, nothing), x[4]));
        };
        return arith::AddFOp::create(i, share(x[0], x[2]), share(x[1], x[3]));
      });
  return {kept(out), kept(lse)};
}

SmallVector<Value> Expansion::merged() {
  Partial all{};
  visitAll(0, [&](const Visit &visit) {
    ResultRange part = attend(visit);
    Partial found{part[0], part[1]};
    all = all.out ? merge(builder, op->getLoc(), all, found) : found;
  });
  return {likeResult(all.out, 0), all.lse};
}

SmallVector<Value> Expansion::summed() {
  Value dq, dk, dv; // the last two of the keys that visit
  auto add = [&](Value &to, Value part) { to = to ? sum(to, part) : part; };
  auto pass = [&](ArrayRef<int64_t> sources) {
    dk = moved(dk, sources, "gradients of keys");
    dv = moved(dv, sources, "gradients of values");
  };
  auto addPart = [&](const Visit &visit) {
    ResultRange part = attend(visit);
    add(dq, part[0]);
    add(dk, part[1]);
    add(dv, part[2]);
  };
  visitAll(1, [&](const Visit &visit) {
    if (visit.stop > 1)
      pass(ring.sumSources(visit.stop));
    addPart(visit);
  });
  if (dk)
    pass(ring.homeSources());
  addPart(own());
  return {likeResult(dq, 0), likeResult(dk, 1), likeResult(dv, 2)};
}
} // namespace

SmallVector<Value> expandRing(AttentionOpInterface op, mesh::MeshAttr attr,
                              const Mesh &mesh, const Axes &axes,
                              int64_t size) {
  Operation *before = op->getPrevNode();
  SmallVector<Value> results = Expansion(op, attr, mesh, axes, size).run();
  inheritFactsSince(before, op);
  return results;
}

} // namespace meshwork::partition
