// RUN: meshwork-opt %s | meshwork-opt | FileCheck %s
// RUN: meshwork-opt %s --mlir-print-op-generic | meshwork-opt | FileCheck %s
// Facts stand on ops of any dialect, and on the module.
#e = #transformer.dims<embed>
// CHECK: module attributes {
// CHECK-SAME: transformer.balance_coefficient = 1.000000e-02 : f64, transformer.config = "{\22model_type\22:\22llama\22}", transformer.gradient_type = bf16, transformer.max_positions = 8 : i64, transformer.model_flops = 2.000000e+00 : f64, transformer.palm_attention_flops = 1.000000e+00 : f64
module attributes {mesh.mesh = #mesh.mesh<"dp"=2>, transformer.balance_coefficient = 0.01 : f64, transformer.config = "{\"model_type\":\"llama\"}", transformer.gradient_type = bf16, transformer.max_positions = 8 : i64,
                   transformer.model_flops = 2.0 : f64, transformer.palm_attention_flops = 1.0 : f64} {
  func.func @f(%x: tensor<2xf32, #e>) {
    // CHECK: mesh.all_gather {{.*}} {transformer.pass = #transformer.pass<backward>}
    %0 = mesh.all_gather %x dim 0 over ["dp"] cause "w" {transformer.pass = #transformer.pass<backward>} : tensor<2xf32, #e> -> tensor<4xf32, #e>
    // CHECK: transformer.activate relu {{.*}} {transformer.layer = 3 : i64, transformer.not_before, transformer.of_step, transformer.parameter = "w", transformer.pass = #transformer.pass<recomputed>, transformer.stage = 2 : i64}
    %1 = transformer.activate relu %0 {transformer.layer = 3 : i64, transformer.not_before, transformer.of_step, transformer.parameter = "w", transformer.pass = #transformer.pass<recomputed>, transformer.stage = 2 : i64} : tensor<4xf32, #e>
    return
  }
}
