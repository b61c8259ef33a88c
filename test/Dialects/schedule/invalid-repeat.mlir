// What repeats and views that advance refuse.
// RUN: meshwork-opt %s -split-input-file -verify-diagnostics

schedule.program @rank {
  %b = schedule.buffer "x" activations : memref<64xi8>
  schedule.list forward {
    // expected-error@+1 {{'schedule.repeat' op (C1) runs 1 instructions 0 times, expected one or more of each}}
    schedule.repeat "x" flops 0 bytes 0 times 0 {
      %x = schedule.view %b at 0 : memref<64xi8> to memref<4xf32, strided<[1]>>
      schedule.fill "x" flops 0 bytes 16 0.0 to %x : memref<4xf32, strided<[1]>>
    }
  }
}

// -----
schedule.program @rank {
  schedule.list forward {
    // expected-error@+1 {{'schedule.repeat' op (C1) runs 0 instructions 2 times}}
    schedule.repeat "x" flops 0 bytes 0 times 2 {
    }
  }
}

// -----
schedule.program @rank {
  %b = schedule.buffer "x" activations : memref<64xi8>
  schedule.list update {
    // expected-error@+1 {{'schedule.repeat' op (C2) expected it in a list that runs for each microbatch, in at most 2 others}}
    schedule.repeat "x" flops 0 bytes 0 times 2 {
      %x = schedule.view %b at 0 : memref<64xi8> to memref<4xf32, strided<[1]>>
      schedule.fill "x" flops 0 bytes 16 0.0 to %x : memref<4xf32, strided<[1]>>
    }
  }
}

// -----
schedule.program @rank {
  %b = schedule.buffer "x" activations : memref<64xi8>
  schedule.list forward {
    schedule.repeat "x" flops 0 bytes 0 times 2 {
      schedule.repeat "x" flops 0 bytes 0 times 2 {
        schedule.repeat "x" flops 0 bytes 0 times 2 {
          // expected-error@+1 {{'schedule.repeat' op (C2) expected it in a list that runs for each microbatch, in at most 2 others}}
          schedule.repeat "x" flops 0 bytes 0 times 2 {
            %x = schedule.view %b at 0 : memref<64xi8> to memref<4xf32, strided<[1]>>
            schedule.fill "x" flops 0 bytes 16 0.0 to %x : memref<4xf32, strided<[1]>>
          }
        }
      }
    }
  }
}

// -----
schedule.program @rank {
  %b = schedule.buffer "x" activations : memref<64xi8>
  schedule.list forward {
    // expected-error@+1 {{'schedule.repeat' op (C3) schedule.wait waits inside a repeat, expected nothing to run beside it where one around it is not counted}}
    schedule.repeat "x" flops 0 bytes 0 times 2 {
      schedule.wait "x" flops 0 bytes 0 1 count 1
    }
  }
}

// -----
schedule.program @rank {
  %b = schedule.buffer "x" activations : memref<64xi8>
  schedule.list forward {
    // expected-error@+1 {{'schedule.repeat' op (C3) schedule.collective runs on channel 1 inside a repeat, expected channel 0 and every action}}
    schedule.repeat "x" flops 0 bytes 0 times 2 {
      %x = schedule.view %b at 0 : memref<64xi8> to memref<4xf32, strided<[1]>>
      schedule.collective "x" flops 0 bytes 0 all_reduce sum channel 1 over ["dp"] in forward cause "why" dims [0] to [0] sources [] (%x) to (%x) : memref<4xf32, strided<[1]>> to memref<4xf32, strided<[1]>>
    }
  }
}

// -----
schedule.program @rank {
  %b = schedule.buffer "x" activations : memref<64xi8>
  schedule.list forward {
    // expected-error@+1 {{'schedule.repeat' op (C3) schedule.matmul dst is set in the step's first action and added to later, inside a repeat; expected the one or the other}}
    schedule.repeat "x" flops 0 bytes 0 times 2 {
      %x = schedule.view %b at 0 : memref<64xi8> to memref<1x2x2xf32, strided<[4, 2, 1]>>
      schedule.matmul "x" flops 0 bytes 0 after_first %x, %x to %x : memref<1x2x2xf32, strided<[4, 2, 1]>>, memref<1x2x2xf32, strided<[4, 2, 1]>> to memref<1x2x2xf32, strided<[4, 2, 1]>>
    }
  }
}

// -----
schedule.program @rank {
  %b = schedule.buffer "x" activations : memref<64xi8>
  schedule.list forward {
    // expected-error@+1 {{'schedule.view' op (C3) advances in 1 repeats, but is used in 0}}
    %x = schedule.view %b at 0 advancing [16] : memref<64xi8> to memref<4xf32, strided<[1]>>
  }
}

// -----
schedule.program @rank {
  %b = schedule.buffer "x" activations : memref<64xi8>
  schedule.list forward {
    schedule.repeat "x" flops 0 bytes 0 times 2 {
      // expected-error@+1 {{'schedule.view' op (C3) it advances by 6 bytes, expected a multiple of its element}}
      %x = schedule.view %b at 0 advancing [6] : memref<64xi8> to memref<4xf32, strided<[1]>>
      schedule.fill "x" flops 0 bytes 16 0.0 to %x : memref<4xf32, strided<[1]>>
    }
  }
}

// -----
schedule.program @rank {
  %b = schedule.buffer "x" activations : memref<64xi8>
  schedule.list forward {
    schedule.repeat "x" flops 0 bytes 0 times 5 {
      // expected-error@+1 {{'schedule.view' op (C3) leaves buffer "x" of 64 bytes in its last turn: f32[4] at offset 0}}
      %x = schedule.view %b at 0 advancing [16] : memref<64xi8> to memref<4xf32, strided<[1]>>
      schedule.fill "x" flops 0 bytes 16 0.0 to %x : memref<4xf32, strided<[1]>>
    }
  }
}

// -----
schedule.program @rank {
  %b = schedule.buffer "x" activations : memref<64xi8>
  schedule.list forward {
    %n = schedule.view %b at 0 : memref<64xi8> to memref<1xi32, strided<[1]>>
    schedule.repeat "x" flops 0 bytes 0 times 2 counted %n : memref<1xi32, strided<[1]>> {
      // expected-error@+1 {{'schedule.repeat' op (C3) schedule.wait waits inside a repeat, expected nothing to run beside it where one around it is not counted}}
      schedule.repeat "x" flops 0 bytes 0 times 2 {
        schedule.wait "x" flops 0 bytes 0 1 count 1
      }
    }
  }
}

// -----
schedule.program @rank {
  %b = schedule.buffer "x" activations : memref<64xi8>
  schedule.list forward {
    %n = schedule.view %b at 0 : memref<64xi8> to memref<2xi32, strided<[1]>>
    // expected-error@+1 {{'schedule.repeat' op (C4) count is i32[2], expected one i32}}
    schedule.repeat "x" flops 0 bytes 0 times 2 counted %n : memref<2xi32, strided<[1]>> {
      %x = schedule.view %b at 0 : memref<64xi8> to memref<4xf32, strided<[1]>>
      schedule.fill "x" flops 0 bytes 16 0.0 to %x : memref<4xf32, strided<[1]>>
    }
  }
}
