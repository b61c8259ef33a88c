// RUN: meshwork-opt %s -split-input-file -verify-diagnostics

schedule.program @parts {
  schedule.list send {
    // expected-error @+1 {{'schedule.send' op (C1) it has no part}}
    "schedule.send"() {source = "x", flops = 0 : i64, bytes = 0 : i64, axis_name = "pp", peer = 1 : i64} : () -> ()
  }
}

// -----

schedule.program @peer {
  %b = schedule.buffer "b" activations : memref<64xi8>
  %x = schedule.view %b at 0 : memref<64xi8> to memref<16xf32, strided<[1]>>
  schedule.list recv {
    // expected-error @+1 {{'schedule.receive' op (C1) has the peer -1, expected a number from 0}}
    schedule.receive "x" flops 0 bytes 64 (%x) along "pp" peer -1 : memref<16xf32, strided<[1]>>
  }
}

// -----

schedule.program @direction {
  %b = schedule.buffer "b" activations : memref<64xi8>
  %x = schedule.view %b at 0 : memref<64xi8> to memref<16xf32, strided<[1]>>
  schedule.list recv_grad {
    // expected-error @+1 {{'schedule.send' op (C2) is Send, expected a receive in such a list}}
    schedule.send "x" flops 0 bytes 64 (%x) along "pp" peer 1 : memref<16xf32, strided<[1]>>
  }
}

// -----

schedule.program @alone {
  %b = schedule.buffer "b" activations : memref<64xi8>
  %x = schedule.view %b at 0 : memref<64xi8> to memref<16xf32, strided<[1]>>
  schedule.list recv {
    // expected-error @+1 {{'schedule.receive' op (C2) recv has 2 instructions, expected one receive}}
    schedule.receive "x" flops 0 bytes 64 (%x) along "pp" peer 1 : memref<16xf32, strided<[1]>>
    schedule.fill "y" flops 0 bytes 64 0.0 to %x : memref<16xf32, strided<[1]>>
  }
}

// -----

schedule.program @weights_first {
  schedule.list input_grad {
  }
  schedule.list weight_grad {
  }
  // expected-error @+1 {{'schedule.actions' op (C1) action 0 runs weight_grad of microbatch 0, expected input_grad next}}
  schedule.actions [0W0, 0I0]
}

// -----

schedule.program @weights_twice {
  schedule.list input_grad {
  }
  schedule.list weight_grad {
  }
  schedule.list forward {
  }
  // expected-error @+1 {{'schedule.actions' op (C1) action 2 runs weight_grad of microbatch 0 again}}
  schedule.actions [0I0, 0W0, 0W0]
}
