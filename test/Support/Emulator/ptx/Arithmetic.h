// Opcodes that integers and floats share: Integer.cpp reads the type and
// passes floats on to Float.cpp.
#pragma once

#include "test/Support/Emulator/ptx/Lanes.h"

namespace meshwork::ptx {

inline bool isFloat(Type type) { return type >= Type::f16; }

void floatAdd(Line &line, Type type);
void floatSub(Line &line, Type type);
void floatMul(Line &line, Type type);
void floatFma(Line &line, Type type); // also mad
void floatDiv(Line &line, Type type);
void floatMin(Line &line, Type type);
void floatMax(Line &line, Type type);
void floatAbs(Line &line, Type type);
void floatNeg(Line &line, Type type);

} // namespace meshwork::ptx
