// What --fixed says of keys that only some specs may have: others do without
// them. lib/Spec alone knows where a key has a meaning.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace meshwork::tune {

class Space;
class Specs;

/// Why keys are left out, by key.
using Reasons = std::map<std::string, std::string>;

/// `own` and those of `fixed` that mean something beside it, all of them
/// "section.key=value". The reasons of the others go to `leftOut`, if given.
std::vector<std::string> withMeaningful(const std::vector<std::string> &own,
                                        const std::vector<std::string> &fixed,
                                        Reasons *leftOut = nullptr);

/// Keys of --fixed that have no meaning in any spec of the space.
Reasons unusedKeys(const Specs &specs, Space &space);

} // namespace meshwork::tune
