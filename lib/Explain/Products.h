// Which matrix products multiply what: in a plan with FP8, which do and which
// do not.
#pragma once

#include "lib/Explain/Listing.h"

namespace meshwork::explain {

/// Products of one name, with "*" for the number of a layer, and types.
struct Products {
  std::string name;
  std::string types; // "e4m3 x e5m2 to bf16"
  bool isFloat8 = false;
  bool isRounded = false;  // to what FP8 has, but multiplied in its own type
  bool fitsFloat8 = false; // all sizes are multiples of 16
  uint64_t instructions = 0;
  uint64_t flops = 0; // of a rank in a step
};

/// In the order of the program.
std::vector<Products> products(const plan::Program &program,
                               const Listing &listing);

/// As text; empty where no product is in FP8.
std::string productsText(const plan::Program &program, const Listing &listing);

} // namespace meshwork::explain
