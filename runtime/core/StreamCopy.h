// A copy of memory that nobody reads soon.
#pragma once

#include <cstddef>

namespace meshwork::runtime {

/// As memcpy, past the caches: what others have there stays, and what is
/// written need not be read first. That saves a third of the traffic, and
/// nearly half of the time of copies that are too small for the C library to do
/// so (some tens of MiB). Other threads see the bytes after any
/// synchronization.
void *streamCopy(void *to, const void *from, size_t bytes);

} // namespace meshwork::runtime
