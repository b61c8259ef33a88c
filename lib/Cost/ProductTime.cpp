#include "lib/Cost/ProductTime.h"

#include <cmath>
#include <limits>

namespace meshwork::cost {
namespace {

/// Parts of k are no shorter: a library gains nothing from those.
constexpr double shortestPart = 1024;
constexpr int mostParts = 16;

/// All tiles, a wave of them after the other, a multiprocessor for each.
double secondsOfWaves(const Machine &machine, const ProductShape &shape,
                      double rate, double rows, double columns, int parts) {
  double tiles = shape.batch * std::ceil(shape.m / rows) *
                 std::ceil(shape.n / columns) * parts;
  double waves = std::ceil(tiles / machine.products.multiprocessors);
  double k =
      std::ceil(shape.k / parts) + machine.products.begin / shape.operandBytes;
  // A tile loads (rows + columns) k and multiplies rows columns k.
  double intensity = rows * columns / (rows + columns);
  double reached = intensity / (intensity + machine.products.halfTile);
  return waves * 2 * rows * columns * k /
         (rate / machine.products.multiprocessors * reached);
}

/// Of parts of k each writes its sums in f32, and they are read again.
double secondsOfParts(const Machine &machine, const ProductShape &shape,
                      int parts) {
  constexpr double bytes = 2 * 4;
  return parts == 1
             ? 0
             : bytes * parts * shape.batch * shape.m * shape.n / machine.memory;
}
} // namespace

double secondsByTiles(const Machine &machine, const ProductShape &shape,
                      double rate) {
  double least = std::numeric_limits<double>::infinity();
  for (const Tile &tile : machine.products.tiles)
    for (int parts = 1;
         parts == 1 || (parts <= mostParts && shape.k / parts >= shortestPart);
         parts *= 2)
      for (bool stands : {false, true})
        least = std::min(
            least, secondsOfWaves(machine, shape, rate,
                                  stands ? tile.columns : tile.rows,
                                  stands ? tile.rows : tile.columns, parts) +
                       secondsOfParts(machine, shape, parts));
  return least + shape.asideBytes / machine.memory;
}

} // namespace meshwork::cost
