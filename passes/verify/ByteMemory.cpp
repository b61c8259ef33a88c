#include "passes/verify/ByteMemory.h"

namespace meshwork::verify {

const double *ByteMemory::find(uint64_t place, Element element) const {
  const Byte &first = all[place];
  if (first.kind != Kind::begin || first.owner != element.buffer ||
      first.dtype != element.dtype)
    return nullptr;
  // Another element may have been written over its end.
  for (uint64_t i = 1; i < element.bytes(); ++i)
    if (all[place + i].kind != Kind::inside)
      return nullptr;
  return &first.value;
}

/// An element that begins before `place` and reaches beyond it ends there.
void ByteMemory::cutElementAt(uint64_t place) {
  for (; place < all.size() && all[place].kind == Kind::inside; ++place)
    all[place].kind = Kind::nothing;
}

void ByteMemory::forget(uint64_t place, uint64_t bytes) {
  for (uint64_t i = place; i < place + bytes; ++i)
    all[i].kind = Kind::nothing;
  cutElementAt(place + bytes);
}

void ByteMemory::write(uint64_t place, Element element, double value) {
  forget(place, element.bytes());
  all[place].value = value;
  all[place].owner = element.buffer;
  all[place].dtype = element.dtype;
  all[place].kind = Kind::begin;
  for (uint64_t i = 1; i < element.bytes(); ++i)
    all[place + i].kind = Kind::inside;
}

void ByteMemory::copy(Site from, Site to, uint64_t bytes) {
  forget(to.place, bytes);
  for (uint64_t i = 0; i < bytes; ++i) {
    const Byte &source = all[from.place + i];
    Byte &target = all[to.place + i];
    bool isOwn = source.kind == Kind::begin && source.owner == from.buffer;
    // The rest of an element follows where its first byte went.
    bool follows = source.kind == Kind::inside && i > 0 &&
                   all[to.place + i - 1].kind != Kind::nothing;
    if (!isOwn && !follows)
      continue;
    target.kind = source.kind;
    target.value = source.value;
    target.dtype = source.dtype;
    target.owner = to.buffer;
  }
}

void ByteMemory::begin(uint64_t place, uint64_t bytes, Use use) {
  for (uint64_t i = place; i < place + bytes; ++i) {
    all[i].readers += use == Use::reads;
    all[i].isWritten |= use == Use::writes;
  }
}

void ByteMemory::end(uint64_t place, uint64_t bytes, Use use) {
  for (uint64_t i = place; i < place + bytes; ++i) {
    all[i].readers -= use == Use::reads;
    all[i].isWritten &= use != Use::writes;
  }
}

bool ByteMemory::mayRead(uint64_t place, uint64_t bytes) const {
  for (uint64_t i = place; i < place + bytes; ++i)
    if (all[i].isWritten)
      return false;
  return true;
}

bool ByteMemory::mayWrite(uint64_t place, uint64_t bytes) const {
  for (uint64_t i = place; i < place + bytes; ++i)
    if (all[i].isWritten || all[i].readers > 0)
      return false;
  return true;
}

} // namespace meshwork::verify
