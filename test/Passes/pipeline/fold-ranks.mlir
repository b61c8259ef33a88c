// RUN: meshwork-opt %s -split-input-file -pipeline-fold-ranks | FileCheck %s
// RUN: meshwork-opt %s -split-input-file -pipeline-fold-ranks="policies=none,none,full,none" | FileCheck %s --check-prefix=POLICIES

// The second rank is the third but for names, the numbers of layers and stages,
// and whom it sends to. The first receives nothing.
#e = #transformer.dims<embed>
// CHECK: module
// CHECK-NEXT: module attributes {schedule.action_table = #schedule.action_table<[0F0]>}
// CHECK: module attributes {
// CHECK-SAME: schedule.action_table = #schedule.action_table<[1F0]>
// CHECK-SAME: schedule.equal_ranks = [#schedule.equal_rank<2, [2F0], ["h.1", "h.2"],
// CHECK-SAME: layers = [1, 2], stages = [1, 2], peers = [0, 1, 2, 3]>]
// CHECK-NOT: "h.2.w"
// Layers that are recomputed in different ways are different.
// POLICIES-NOT: schedule.equal_ranks
module {
  module attributes {schedule.action_table = #schedule.action_table<[0F0]>} {
    func.func @microbatch() {
      %w = transformer.parameter "h.0.w" layer 0 init <constant, 1.0> : tensor<8xf32, #e>
      transformer.stage_list forward stage 0
      mesh.send forward %w over "pp" to 1 : tensor<8xf32, #e>
      return
    }
  }
  module attributes {schedule.action_table = #schedule.action_table<[1F0]>} {
    func.func @microbatch() {
      %w = transformer.parameter "h.1.w" layer 1 init <constant, 1.0> : tensor<8xf32, #e>
      transformer.stage_list forward stage 1
      %x = mesh.receive forward over "pp" from 0 {transformer.stage = 1 : i64} : tensor<8xf32, #e>
      mesh.send forward %w over "pp" to 2 {transformer.stage = 1 : i64} : tensor<8xf32, #e>
      return
    }
  }
  module attributes {schedule.action_table = #schedule.action_table<[2F0]>} {
    func.func @microbatch() {
      %w = transformer.parameter "h.2.w" layer 2 init <constant, 1.0> : tensor<8xf32, #e>
      transformer.stage_list forward stage 2
      %x = mesh.receive forward over "pp" from 1 {transformer.stage = 2 : i64} : tensor<8xf32, #e>
      mesh.send forward %w over "pp" to 3 {transformer.stage = 2 : i64} : tensor<8xf32, #e>
      return
    }
  }
}

// -----

// What a kernel draws goes by a number of its own. A constant, an operand, a
// leaf of a name, an initial value and the order of layers tell ranks apart.
#e = #transformer.dims<embed>
// CHECK-LABEL: @drawn
// CHECK-NOT: schedule.equal_ranks
module @drawn {
  module {
    func.func @microbatch(%x: tensor<8xf32, #e>) {
      %y = transformer.map ins(%x : tensor<8xf32, #e>) -> tensor<8xf32, #e> {
      ^bb0(%a: f32):
        %c = arith.constant 1.0 : f32
        transformer.yield %c : f32
      }
      return
    }
  }
  module {
    func.func @microbatch(%x: tensor<8xf32, #e>) {
      %y = transformer.map ins(%x : tensor<8xf32, #e>) -> tensor<8xf32, #e> {
      ^bb0(%a: f32):
        %c = arith.constant 2.0 : f32
        transformer.yield %c : f32
      }
      return
    }
  }
  module {
    func.func @microbatch(%x: tensor<8xf32, #e>) {
      %y = transformer.map ins(%x : tensor<8xf32, #e>) -> tensor<8xf32, #e> {
      ^bb0(%a: f32):
        %c = arith.constant 2.0 : f32
        transformer.yield %a : f32
      }
      return
    }
  }
  module {
    func.func @microbatch() {
      %v = transformer.parameter "h.1.v" layer 1 init <constant, 1.0> : tensor<8xf32, #e>
      %w = transformer.parameter "h.2.w" layer 2 init <constant, 1.0> : tensor<8xf32, #e>
      return
    }
  }
  module {
    func.func @microbatch() {
      %v = transformer.parameter "h.3.v" layer 3 init <constant, 1.0> : tensor<8xf32, #e>
      %w = transformer.parameter "h.4.u" layer 4 init <constant, 1.0> : tensor<8xf32, #e>
      return
    }
  }
  module {
    func.func @microbatch() {
      %v = transformer.parameter "h.3.v" layer 3 init <constant, 1.0> : tensor<8xf32, #e>
      %w = transformer.parameter "h.4.w" layer 4 init <constant, 2.0> : tensor<8xf32, #e>
      return
    }
  }
  module {
    func.func @microbatch() {
      %v = transformer.parameter "h.6.v" layer 6 init <constant, 1.0> : tensor<8xf32, #e>
      %w = transformer.parameter "h.5.w" layer 5 init <constant, 1.0> : tensor<8xf32, #e>
      return
    }
  }
}
