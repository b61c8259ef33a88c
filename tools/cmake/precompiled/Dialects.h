// What all that stands above the dialects includes most.
#include "Mlir.h"
#include "dialects/mesh/Mesh.h"
#include "dialects/schedule/Schedule.h"
#include "dialects/transformer/Transformer.h"
#include <mlir/Dialect/GPU/IR/GPUDialect.h>
#include <mlir/Dialect/LLVMIR/NVVMDialect.h>
