// Parts of reading a decoder's configuration. Internal to lib/Import.
#pragma once

#include "lib/Import/Family.h"

namespace meshwork::importer {

/// Sets `windows`, by the family, sliding_window and layer_types.
void readWindows(Config &config, const Family &family, Decoder &m);
/// Sets `padding`, as PyTorch's padding_idx: negative ones count from the end.
void readPadding(Config &config, const Family &family, Decoder &m);

} // namespace meshwork::importer
