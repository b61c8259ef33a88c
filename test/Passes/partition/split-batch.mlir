// RUN: meshwork-opt %s -partition-split-batch="axes=dp" | FileCheck %s

#b = #transformer.dims<batch, embed>
#e = #transformer.dims<embed>

// Each rank has half of the batch; the sum over it is partial until @update.
// CHECK: module attributes {mesh.axes = {dp = 2 : i64}}
module attributes {mesh.axes = {dp = 2 : i64}} {
  // CHECK-LABEL: func.func @microbatch
  // CHECK-SAME: tensor<4x8xf32
  func.func @microbatch(%x: tensor<8x8xf32, #b>) {
    // CHECK: transformer.reduce {{.*}} tensor<4x8xf32, {{.*}} -> tensor<8xf32
    %g = transformer.reduce add %x over <batch> : tensor<8x8xf32, #b> -> tensor<8xf32, #e>
    transformer.accumulate gradient "w", %g : tensor<8xf32, #e>
    return
  }
  // CHECK-LABEL: func.func @update
  func.func @update() {
    // CHECK: %[[G:.*]] = transformer.state{{ +}}gradient "w"
    // CHECK: %[[R:.*]] = mesh.all_reduce %[[G]] over ["dp"] cause "gradient: summed over the batch, which is split over dp"
    // CHECK: transformer.assign{{ +}}gradient "w", %[[R]]
    %g = transformer.state gradient "w" : tensor<8xf32, #e>
    transformer.assign gradient "w", %g : tensor<8xf32, #e>
    return
  }
}
