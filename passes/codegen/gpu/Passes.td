// Passes that turn clusters into kernels of a GPU.
#ifndef MESHWORK_CODEGEN_GPU_PASSES
#define MESHWORK_CODEGEN_GPU_PASSES
include "mlir/Pass/PassBase.td"

def EmitGpuKernelsPass : Pass<"codegen-emit-gpu-kernels", "::mlir::ModuleOp"> {
  let summary = "Appends the GPU kernels of clusters and instructions";
  let description = [{
    Before: `fused` ops with static shapes; those of kernel functions of a
    schedule have their strides, others lie contiguously. After: the same, and a
    `gpu.module` with a kernel for each, where kernels that are equal but for
    the streams of their dropouts are one. Instructions of a schedule that are
    neither launches, products nor collectives get a second one, whose kernels
    call the functions of passes/codegen/gpu/library.
    ```mlir
    // meshwork-opt -codegen-emit-gpu-kernels
    !x = tensor<4x8xf32, #transformer.dims<rows, cols>>
    func.func @halves(%x: !x) -> !x {
      %y = transformer.fused rows <rows> cols <cols> ins(%x : !x) -> !x {
      ^bb0(%a: !x):
        %r = transformer.roll %a by 4 : !x
        transformer.yield %r : !x
      }
      return %y : !x
    }
    // becomes
    gpu.module @kernels {
    gpu.func @kernel_0(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>) kernel attributes {known_block_size = array<i32: 32, 1, 1>, ...
    ...
    %r = llvm.load ... -> vector<4xf32>
    ...
    llvm.store %r, ... : vector<4xf32>, !llvm.ptr<1>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect", "::mlir::gpu::GPUDialect",
                           "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect", "::mlir::NVVM::NVVMDialect",
                           "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def EmitCudaCodePass : Pass<"codegen-emit-cuda-code", "::mlir::ModuleOp"> {
  let summary = "Writes the module's GPU kernels as PTX, and assembles them";
  let description = [{
    Before: as `-codegen-emit-gpu-kernels`. After: the same; PTX is written to
    `output`. With `assemble`, ptxas must be there and take it; a line a kernel
    to stderr tells its launch, registers and spills, and with
    `max-spill-bytes` more of them are an error.
    ```mlir
    // meshwork-opt -codegen-emit-cuda-code="arch=sm_90a"
    !x = tensor<4x8xf32, #transformer.dims<rows, cols>>
    func.func @halves(%x: !x) -> !x {
      %y = transformer.fused rows <rows> cols <cols> ins(%x : !x) -> !x {
      ^bb0(%a: !x):
        %r = transformer.roll %a by 4 : !x
        transformer.yield %r : !x
      }
      return %y : !x
    }
    // becomes
    .target sm_90a
    ...
    .visible .entry kernel_0(
    ...
    .maxntid 32, 1, 1
    ...
    ld.global.v4.b32 {%a, %b, %c, %d}, ...
    st.global.v4.b32 ..., {%a, %b, %c, %d};
    ```
  }];
  let options = [Option<"arch", "arch", "std::string", "\"sm_90a\"", "sm_80, sm_90a or sm_100">,
                 Option<"output", "output", "std::string", "\"-\"", "a file for the PTX; - is stdout, and empty is none">,
                 Option<"assemble", "assemble", "bool", "false", "run ptxas">,
                 Option<"ptxas", "ptxas", "std::string", "\"\"", "where it is, if not in PATH, /usr/local/cuda/bin or the Python environment">,
                 Option<"maxSpillBytes", "max-spill-bytes", "int64_t", "-1", "of one kernel, with assemble; -1 is any number">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect", "::mlir::gpu::GPUDialect",
                           "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect", "::mlir::NVVM::NVVMDialect",
                           "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

#endif // MESHWORK_CODEGEN_GPU_PASSES
