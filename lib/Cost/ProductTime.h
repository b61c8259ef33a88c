// What products take by their shape, where the machine has tiles.
#ifndef MESHWORK_LIB_COST_PRODUCTTIME_H
#define MESHWORK_LIB_COST_PRODUCTTIME_H

#include "lib/Cost/Machine.h"
#include "lib/Cost/Shapes.h"

namespace meshwork::cost {

/// Seconds of its flops, `rate` being those of the whole GPU in a tile without
/// limit. The fastest of the machine's tiles, lying or standing, each with k in
/// one piece or cut in two, four and so on.
double secondsByTiles(const Machine &machine, const ProductShape &shape,
                      double rate);

} // namespace meshwork::cost

#endif // MESHWORK_LIB_COST_PRODUCTTIME_H
