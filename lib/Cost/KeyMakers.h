// Kinds of keys. Internal to lib/Cost.
#ifndef MESHWORK_LIB_COST_KEYMAKERS_H
#define MESHWORK_LIB_COST_KEYMAKERS_H

#include "lib/Cost/Keys.h"

namespace meshwork::cost {

using NumberOf = std::function<double &(Machine &)>;

/// A finite number with a unit.
Key number(std::string path, bool required, double least, double most,
           const char *unit, NumberOf field);
/// The same, not required; prints nothing where the field has `usual`.
Key numberBeside(double usual, std::string path, double least, double most,
                 const char *unit, NumberOf field);
/// A whole number from 1 on; 0 is not said.
Key count(const char *path, bool required, uint32_t most,
          std::function<uint32_t &(Machine &)> field);

using Rates = std::array<double, numArithmetics> Machine::*;
/// One for each type, flops a second.
void addRates(std::vector<Key> &keys, const std::string &section, Rates rates,
              bool required);

/// Of what computes and what keeps it: flops, attention, peak, products,
/// memory.
void addWorkKeys(std::vector<Key> &keys);
/// Of what lies between ranks, and to the host: node, nodes, overlap, links.
void addLinkKeys(std::vector<Key> &keys);
/// Of what a run meets: uneven experts, failures, the storage of checkpoints.
void addRunKeys(std::vector<Key> &keys);

} // namespace meshwork::cost

#endif // MESHWORK_LIB_COST_KEYMAKERS_H
