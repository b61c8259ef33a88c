// Work on text from outside, in a child process: whatever the text does to a
// parser, the tool itself ends with a message and a documented exit code.
//
//   return guarded([&] {
//     beginReading("model.mlir", badData, text.size());
//     ... parse and check it ...
//     endReading();
//     ... compile ...
//   });
#pragma once

#include <cstdint>
#include <string_view>

#include "llvm/ADT/STLFunctionalExtras.h"

namespace meshwork::driver {

/// Runs `work` in a child with a stack of its own and returns its exit code.
/// When the child ends otherwise says how, and returns what follows from it:
/// the code given to `beginReading` while it reads, noResources when memory is
/// lacking, else internal. A signal from the user ends the parent too.
/// To be called before there are other threads.
int guarded(llvm::function_ref<int()> work);

/// From here on `work` may only take processor time and memory in proportion
/// to `bytes`, the size of the text that messages call `name`. When it takes
/// more, or crashes, the text is to blame and the exit code is `refusal`.
void beginReading(std::string_view name, int refusal, uint64_t bytes);
void endReading();

/// Whether the system has no more memory for this process, or hardly any.
bool isMemoryShort();
/// To be called when something has failed: where memory is short, ends `work`
/// with that as the reason. MLIR may tell a failure that has none.
void checkMemory();

} // namespace meshwork::driver
