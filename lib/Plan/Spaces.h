// Where buffers lie on a rank: places are bytes on one line, first the device's
// arena, then the host's. So two buffers share bytes when their places meet,
// whatever memory they lie in.
//
//   uint64_t place = placeOf(program, buffer) + view.offset;
//   if (isOnHost(program, place))
//     at = host + (place - hostBegin(program));
#pragma once

#include "meshwork/Plan/Plan.h"

namespace meshwork::plan {

/// The host's arena begins at a multiple of 64, as each buffer does in its own.
/// The check has passed, or its part that says that these sums fit 64 bits.
inline uint64_t hostBegin(const Program &program) {
  return (program.arena_bytes() + 63) / 64 * 64;
}

inline bool isOnHost(const Program &program, uint64_t place) {
  return program.host_bytes() > 0 && place >= hostBegin(program);
}

inline uint64_t placeOf(const Program &program, const Buffer &buffer) {
  return buffer.offset() +
         (buffer.space() == Space::host ? hostBegin(program) : 0);
}

/// Of both arenas, where they lie in one piece.
inline uint64_t bytesOfArenas(const Program &program) {
  return program.host_bytes() == 0 ? program.arena_bytes()
                                   : hostBegin(program) + program.host_bytes();
}

inline uint64_t bytesOf(const Program &program, Space space) {
  return space == Space::host ? program.host_bytes() : program.arena_bytes();
}

} // namespace meshwork::plan
