// RUN: meshwork-opt %s -split-input-file -verify-diagnostics

schedule.program @rank {
  %w = schedule.buffer "w" weights persistent : memref<256xi8>
  %v = schedule.view %w at 0 : memref<256xi8> to memref<8x8xf32, strided<[8, 1]>>
  // expected-error@+1 {{'schedule.parameter' op (C1) has 2 states and 1 views}}
  schedule.parameter "w" [64] of [8, 8] #transformer.init<constant, 1.0>
    [#schedule.state<"weight", weight>, #schedule.state<"momentum", optimizer>] (%v) : memref<8x8xf32, strided<[8, 1]>>
}

// -----
schedule.program @rank {
  %w = schedule.buffer "w" weights persistent : memref<256xi8>
  %v = schedule.view %w at 0 : memref<256xi8> to memref<8x8xf32, strided<[8, 1]>>
  // expected-error@+1 {{'schedule.parameter' op (C1) found #schedule.state<"weight", master>, expected a #schedule.state of another name}}
  schedule.parameter "w" [64] of [8, 8] #transformer.init<constant, 1.0>
    [#schedule.state<"weight", weight>, #schedule.state<"weight", master>] (%v, %v) : memref<8x8xf32, strided<[8, 1]>>, memref<8x8xf32, strided<[8, 1]>>
}

// -----
schedule.program @rank {
  %w = schedule.buffer "w" weights persistent : memref<256xi8>
  %v = schedule.view %w at 0 : memref<256xi8> to memref<8x8xf32, strided<[8, 1]>>
  // expected-error@+1 {{'schedule.parameter' op (C1) has 0 states of role weight, expected 1}}
  schedule.parameter "w" [64] of [8, 8] #transformer.init<constant, 1.0> [#schedule.state<"master", master>] (%v) : memref<8x8xf32, strided<[8, 1]>>
}
