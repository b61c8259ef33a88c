// How a GPU runs instructions that are no clusters: kernels call the device
// functions of library/, with a constant for all that a plan fixes.
//
//   FailureOr<DeviceCalls> calls = deviceCallsOf(op);
//   for (const DeviceCall &call : calls->calls) launch(call.grid, call.block);
#pragma once

#include <string>

#include "dialects/schedule/Schedule.h"

namespace meshwork::codegen {

/// One argument of a device function.
struct DeviceArgument {
  enum Kind : uint8_t {
    pointer,   // the operand with number `integer`
    null,      // the place of one that is absent
    adds,      // i32 of the launch: whether the run adds to what is there
    workspace, // pointer of the launch
    stream, // i32 of the launch: number `integer` of the kernel's streams; an
            // i64 for the function
    integer64,
    number32
  };
  Kind kind;
  int64_t integer = 0;
  float number = 0;
};

/// One kernel.
struct DeviceCall {
  std::string function;
  llvm::SmallVector<DeviceArgument> arguments;
  int64_t grid = 1, block = 256;
  int64_t sharedBytes = 0; // dynamic
  /// Blocks that a multiprocessor should have room for, which bounds a thread's
  /// registers; 0: as ptxas likes.
  int64_t blocksAtOnce = 0;
  llvm::SmallVector<uint32_t> streams =
      {}; // of dropouts; calls that differ in them share code

  DeviceCall &pointer(int64_t operand) {
    return add({DeviceArgument::pointer, operand});
  }
  /// The operand, or null without one; such operands are numbered one after
  /// another.
  DeviceCall &pointerIf(bool isThere, int64_t operand) {
    return isThere ? pointer(operand) : add({DeviceArgument::null});
  }
  DeviceCall &adds() { return add({DeviceArgument::adds}); }
  DeviceCall &workspace() { return add({DeviceArgument::workspace}); }
  DeviceCall &stream(uint32_t value) {
    streams.push_back(value);
    return add(
        {DeviceArgument::stream, static_cast<int64_t>(streams.size()) - 1});
  }
  DeviceCall &integers(llvm::ArrayRef<int64_t> values) {
    for (int64_t value : values)
      add({DeviceArgument::integer64, value});
    return *this;
  }
  DeviceCall &number(float value) {
    return add({DeviceArgument::number32, 0, value});
  }

private:
  DeviceCall &add(DeviceArgument argument) {
    arguments.push_back(argument);
    return *this;
  }
};

/// The kernels of one instruction, in order. They get the pointers of
/// `operands`, in the order that Plan.fbs says.
struct DeviceCalls {
  llvm::SmallVector<mlir::Value> operands;
  llvm::SmallVector<DeviceCall> calls;
  uint64_t workspaceBytes = 0;
};

/// Whether `op` is an instruction that has such kernels.
bool hasDeviceCalls(mlir::Operation *op);
/// Errors, at the op: what the CPU device refuses too (element types, strides
/// that do not nest), and 2^31 blocks or more.
mlir::FailureOr<DeviceCalls> deviceCallsOf(mlir::Operation *op);

/// Scratch of a rank: the most that an instruction of the program needs.
mlir::FailureOr<uint64_t> gpuWorkspaceBytes(schedule::ProgramOp program);

} // namespace meshwork::codegen
