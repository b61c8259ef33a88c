// Passes that turn clusters into kernels.
#ifndef MESHWORK_CODEGEN_PASSES
#define MESHWORK_CODEGEN_PASSES
include "mlir/Pass/PassBase.td"

def EmitKernelsPass : Pass<"codegen-emit-kernels", "::mlir::ModuleOp"> {
  let summary = "Appends the kernel of each cluster";
  let description = [{
    Before: `fused` ops with static shapes. After: the same, and for the n-th
    of them a function `kernel_n` of scf, vector, arith, math and llvm that
    computes it from operands and results that lie contiguously. For looking at
    kernels; the plan writer calls `emitKernel` itself, with the arena's layouts.
    ```mlir
    // meshwork-opt -codegen-emit-kernels="arch=x86-64-v4"
    !x = tensor<4x16xf32, #transformer.dims<rows, cols>>
    func.func @twice(%x: !x) -> !x {
      %y = transformer.fused rows <> cols <rows, cols> ins(%x : !x) -> !x {
      ^bb0(%a: !x):
        %b = transformer.map ins(%a : !x) -> !x {
        ^bb0(%v: f32):
          %s = arith.addf %v, %v : f32
          transformer.yield %s : f32
        }
        transformer.yield %b : !x
      }
      return %y : !x
    }
    // becomes
    llvm.func @kernel_0(%args: !llvm.ptr, %begin: i64, %end: i64) {
    ...
    %v = llvm.load ... -> vector<64xf32>
    %s = arith.addf %v, %v ... : vector<64xf32>
    ...
    llvm.store %s, ... : vector<64xf32>, !llvm.ptr
    ```
  }];
  let options = [Option<"arch", "arch", "std::string", "\"native\"", "native, x86-64-v3 or x86-64-v4">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect", "::mlir::LLVM::LLVMDialect",
                           "::mlir::math::MathDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

#endif // MESHWORK_CODEGEN_PASSES
