// The arenas of one rank, byte by byte: each element's value in double
// precision, at the bytes where the plan has it, and the buffer it was written
// through. Real memory answers every read with some number. Here a read finds
// nothing in bytes that were never written, or were written through another
// buffer, in another type or in part.
//
//   ByteMemory memory(plan::bytesOfArenas(program));
//   memory.write(64, {plan::DType::f32, buffer}, 0.5);
//   const double *value = memory.find(64, {plan::DType::f32, buffer});
#pragma once

#include "meshwork/Plan/Types.h"
#include <cstdint>
#include <string>
#include <vector>

namespace meshwork::verify {

/// What an access takes an element for.
struct Element {
  plan::DType dtype;
  uint32_t buffer;
  uint64_t bytes() const { return plan::bytesOf(dtype); }
};

class ByteMemory {
public:
  explicit ByteMemory(uint64_t size) : all(size) {}

  /// The element at `place`; null if these bytes do not hold it.
  const double *find(uint64_t place, Element element) const;
  void write(uint64_t place, Element element, double value);
  /// What one buffer has at `from` another one has at `to` then. Bytes that
  /// hold nothing of the first hold nothing there. The two do not meet.
  struct Site {
    uint64_t place;
    uint32_t buffer;
  };
  void copy(Site from, Site to, uint64_t bytes);
  /// Makes these bytes ones that were never written.
  void forget(uint64_t place, uint64_t bytes);

  /// What is under way beside the rank's own instructions: others may then read
  /// what it reads, and touch nothing that it writes.
  enum class Use : uint8_t { reads, writes };
  void begin(uint64_t place, uint64_t bytes, Use use);
  void end(uint64_t place, uint64_t bytes, Use use);
  bool mayRead(uint64_t place, uint64_t bytes) const;
  bool mayWrite(uint64_t place, uint64_t bytes) const;

  /// What is there instead of the element: "nothing", "a value of another
  /// buffer". `nameOf` a buffer.
  template <typename NameOf>
  std::string found(uint64_t place, Element wanted, NameOf nameOf) const {
    const Byte &byte = all[place];
    if (byte.kind == Kind::nothing)
      return "nothing";
    if (byte.kind == Kind::inside)
      return "the middle of an element";
    if (byte.owner != wanted.buffer)
      return "a value of buffer " + nameOf(byte.owner);
    return std::string("a value in ") + plan::EnumNameDType(byte.dtype);
  }

private:
  enum class Kind : uint8_t { nothing, begin, inside };
  struct Byte {
    double value = 0; // where an element begins
    uint32_t owner = 0;
    Kind kind = Kind::nothing;
    plan::DType dtype = plan::DType::f32;
    uint8_t readers = 0; // under way
    bool isWritten = false;
  };

  void cutElementAt(uint64_t place);

  std::vector<Byte> all;
};

} // namespace meshwork::verify
