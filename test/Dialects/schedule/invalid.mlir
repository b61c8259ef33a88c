// What buffers, views, launches, tables, fills and copies refuse.
// RUN: meshwork-opt %s -split-input-file -verify-diagnostics

schedule.program @rank {
  // expected-error@+1 {{'schedule.buffer' op (C1) is 'memref<4xf32>', expected a memref of bytes}}
  %b = schedule.buffer "b" activations : memref<4xf32>
}

// -----
schedule.program @rank {
  // expected-error@+1 {{'schedule.buffer' op (C1) is 'memref<?xi8>'}}
  %b = schedule.buffer "b" activations : memref<?xi8>
}

// -----
schedule.program @rank {

  // expected-error@+1 {{'schedule.buffer' op (C2) of 192 bytes has 2 copies, expected two or more, each of a multiple of 64 bytes}}
  %b = schedule.buffer "b" activations copies 2 : memref<192xi8>
}

// -----
schedule.program @rank {
  %b = schedule.buffer "b" activations : memref<128xi8>
  // expected-error@+1 {{'schedule.view' op (C1) f32[4,5] at offset 64 needs 80 bytes, buffer "b" has 128}}
  %v = schedule.view %b at 64 : memref<128xi8> to memref<4x5xf32, strided<[5, 1]>>
}

// -----
schedule.program @rank {
  %b = schedule.buffer "b" activations : memref<128xi8>
  // expected-error@+1 {{'schedule.view' op (C1) offset 2 is not a multiple of its element}}
  %v = schedule.view %b at 2 : memref<128xi8> to memref<4xf32, strided<[1]>>
}

// -----
schedule.program @rank {
  %b = schedule.buffer "b" activations : memref<128xi8>
  // expected-error@+1 {{'schedule.view' op (C1) expected positive static sizes and strides}}
  %v = schedule.view %b at 0 : memref<128xi8> to memref<?xf32, strided<[1]>>
}

// -----
schedule.program @rank {
  %b = schedule.buffer "b" activations : memref<128xi8>
  // expected-error@+1 {{'schedule.view' op (C1) its size in elements does not fit 64 bits}}
  %v = schedule.view %b at 0 : memref<128xi8> to memref<2x9223372036854775807xf32, strided<[9223372036854775807, 9223372036854775807]>>
}

// -----
schedule.program @rank {
  %b = schedule.buffer "b" activations : memref<128xi8>
  // expected-error@+1 {{'schedule.view' op (C2) is of 'f16', expected f32, bf16, i32, f8E4M3FN, f8E5M2 or i8}}
  %v = schedule.view %b at 0 : memref<128xi8> to memref<4xf16, strided<[1]>>
}

// -----
schedule.program @rank {
  %b = schedule.buffer "b" results : memref<8xi8>
  %v = schedule.view %b at 0 : memref<8xi8> to memref<2xf32, strided<[1]>>
  // expected-error@+1 {{'schedule.result' op (C1) loss is f32[2], expected one f32}}
  schedule.result loss %v : memref<2xf32, strided<[1]>>
}

// -----
schedule.program @rank {
  %b = schedule.buffer "b" results : memref<16xi8>
  %v = schedule.view %b at 0 : memref<16xi8> to memref<2xf32, strided<[2]>>
  // expected-error@+1 {{'schedule.result' op (C1) metric is f32[2]}}
  schedule.result metric "load" %v : memref<2xf32, strided<[2]>>
}

// -----
schedule.program @rank {
  %b = schedule.buffer "b" results : memref<4xi8>
  %v = schedule.view %b at 0 : memref<4xi8> to memref<f32, strided<[]>>
  // expected-error@+1 {{'schedule.result' op (C2) metric is called "Balance", expected at most 32 lower-case letters, digits and _, a letter first}}
  schedule.result metric "Balance" %v : memref<f32, strided<[]>>
}

// -----
schedule.program @rank {
  %b = schedule.buffer "b" results : memref<4xi8>
  %v = schedule.view %b at 0 : memref<4xi8> to memref<f32, strided<[]>>
  // expected-error@+1 {{'schedule.result' op (C2) loss is called "mine", expected no name}}
  schedule.result loss "mine" %v : memref<f32, strided<[]>>
}

// -----
schedule.program @rank {
  %b = schedule.buffer "b" activations : memref<4xi8>
  schedule.list update {
    // expected-error@+1 {{'schedule.fill' op operand #0 is no schedule.view of a buffer}}
    schedule.fill "x" flops 0 bytes 4 0.0 to %b : memref<4xi8>
  }
}

// -----
schedule.program @rank {
  %b_x = schedule.buffer "x" activations : memref<4096xi8>
  %x = schedule.view %b_x at 0 : memref<4096xi8> to memref<4xf32, strided<[1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.fill' op has fewer than 0 flops}}
    schedule.fill "x" flops -1 bytes 4 0.0 to %x : memref<4xf32, strided<[1]>>
  }
}

// -----
schedule.program @rank {
  %b_x = schedule.buffer "x" activations : memref<4096xi8>
  %b_y = schedule.buffer "y" activations : memref<4096xi8>
  %x = schedule.view %b_x at 0 : memref<4096xi8> to memref<4xf32, strided<[1]>>
  %y = schedule.view %b_y at 0 : memref<4096xi8> to memref<4xf32, strided<[1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.launch' op (C1) num_outputs is 3 of 2 args}}
    schedule.launch "x" flops 0 bytes 4 @k items 4 outputs 3 (%x, %y) : memref<4xf32, strided<[1]>>, memref<4xf32, strided<[1]>>
  }
}

// -----
schedule.program @rank {
  %b_x = schedule.buffer "x" activations : memref<4096xi8>
  %x = schedule.view %b_x at 0 : memref<4096xi8> to memref<4xf32, strided<[1]>>
  schedule.list update {
    // expected-error@+1 {{(C1) it has 0 work items, expected 1 to 2^63 - 1}}
    schedule.launch "x" flops 0 bytes 4 @k items 0 outputs 1 (%x) : memref<4xf32, strided<[1]>>
  }
}

// -----
schedule.program @rank {
  %b_table = schedule.buffer "table" activations : memref<4096xi8>
  %b_ids = schedule.buffer "ids" activations : memref<4096xi8>
  %b_rows = schedule.buffer "rows" activations : memref<4096xi8>
  %table = schedule.view %b_table at 0 : memref<4096xi8> to memref<16x8xf32, strided<[8, 1]>>
  %ids = schedule.view %b_ids at 0 : memref<4096xi8> to memref<4xf32, strided<[1]>>
  %rows = schedule.view %b_rows at 0 : memref<4096xi8> to memref<4x8xf32, strided<[8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.embedding' op (C1) ids are f32[4], expected i32}}
    schedule.embedding "x" flops 0 bytes 0 %table, %ids to %rows : memref<16x8xf32, strided<[8, 1]>>, memref<4xf32, strided<[1]>> to memref<4x8xf32, strided<[8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_table = schedule.buffer "table" activations : memref<4096xi8>
  %b_ids = schedule.buffer "ids" activations : memref<4096xi8>
  %b_rows = schedule.buffer "rows" activations : memref<4096xi8>
  %table = schedule.view %b_table at 0 : memref<4096xi8> to memref<16x8xf32, strided<[8, 1]>>
  %ids = schedule.view %b_ids at 0 : memref<4096xi8> to memref<4xi32, strided<[1]>>
  %rows = schedule.view %b_rows at 0 : memref<4096xi8> to memref<4x4xf32, strided<[4, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.embedding' op (C2) out is f32[4,4], expected f32[4,8]}}
    schedule.embedding "x" flops 0 bytes 0 %table, %ids to %rows : memref<16x8xf32, strided<[8, 1]>>, memref<4xi32, strided<[1]>> to memref<4x4xf32, strided<[4, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_table = schedule.buffer "table" activations : memref<4096xi8>
  %b_ids = schedule.buffer "ids" activations : memref<4096xi8>
  %b_rows = schedule.buffer "rows" activations : memref<4096xi8>
  %table = schedule.view %b_table at 0 : memref<4096xi8> to memref<16x8xi32, strided<[8, 1]>>
  %ids = schedule.view %b_ids at 0 : memref<4096xi8> to memref<4xi32, strided<[1]>>
  %rows = schedule.view %b_rows at 0 : memref<4096xi8> to memref<4x8xf32, strided<[8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.embedding' op (C2) the table is i32[16,8] and out f32[4,8], expected floats and a table of 2 dims or more}}
    schedule.embedding "x" flops 0 bytes 0 %table, %ids to %rows : memref<16x8xi32, strided<[8, 1]>>, memref<4xi32, strided<[1]>> to memref<4x8xf32, strided<[8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_table = schedule.buffer "table" activations : memref<4096xi8>
  %b_ids = schedule.buffer "ids" activations : memref<4096xi8>
  %b_rows = schedule.buffer "rows" activations : memref<4096xi8>
  %b_first = schedule.buffer "first" activations : memref<4096xi8>
  %table = schedule.view %b_table at 0 : memref<4096xi8> to memref<16x8xf32, strided<[8, 1]>>
  %ids = schedule.view %b_ids at 0 : memref<4096xi8> to memref<4xi32, strided<[1]>>
  %rows = schedule.view %b_rows at 0 : memref<4096xi8> to memref<4x8xf32, strided<[8, 1]>>
  %first = schedule.view %b_first at 0 : memref<4096xi8> to memref<2xi32, strided<[1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.embedding' op (C3) first_row is i32[2], expected one i32}}
    schedule.embedding "x" flops 0 bytes 0 %table, %ids from %first : memref<2xi32, strided<[1]>> to %rows : memref<16x8xf32, strided<[8, 1]>>, memref<4xi32, strided<[1]>> to memref<4x8xf32, strided<[8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_table = schedule.buffer "table" activations : memref<4096xi8>
  %b_ids = schedule.buffer "ids" activations : memref<4096xi8>
  %b_rows = schedule.buffer "rows" activations : memref<4096xi8>
  %table = schedule.view %b_table at 0 : memref<4096xi8> to memref<16x8xf32, strided<[8, 1]>>
  %ids = schedule.view %b_ids at 0 : memref<4096xi8> to memref<4xf32, strided<[1]>>
  %rows = schedule.view %b_rows at 0 : memref<4096xi8> to memref<4x8xf32, strided<[8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.embedding_grad' op (C1) ids are f32[4], expected i32}}
    schedule.embedding_grad "x" flops 0 bytes 0 no %ids, %rows to %table : memref<4xf32, strided<[1]>>, memref<4x8xf32, strided<[8, 1]>> to memref<16x8xf32, strided<[8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_table = schedule.buffer "table" activations : memref<4096xi8>
  %b_ids = schedule.buffer "ids" activations : memref<4096xi8>
  %b_rows = schedule.buffer "rows" activations : memref<4096xi8>
  %table = schedule.view %b_table at 0 : memref<4096xi8> to memref<16x8xf32, strided<[8, 1]>>
  %ids = schedule.view %b_ids at 0 : memref<4096xi8> to memref<4xi32, strided<[1]>>
  %rows = schedule.view %b_rows at 0 : memref<4096xi8> to memref<4x4xf32, strided<[4, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.embedding_grad' op (C2) dout is f32[4,4], expected f32[4,8]}}
    schedule.embedding_grad "x" flops 0 bytes 0 no %ids, %rows to %table : memref<4xi32, strided<[1]>>, memref<4x4xf32, strided<[4, 1]>> to memref<16x8xf32, strided<[8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_table = schedule.buffer "table" activations : memref<4096xi8>
  %b_ids = schedule.buffer "ids" activations : memref<4096xi8>
  %b_rows = schedule.buffer "rows" activations : memref<4096xi8>
  %table = schedule.view %b_table at 0 : memref<4096xi8> to memref<16x8xi32, strided<[8, 1]>>
  %ids = schedule.view %b_ids at 0 : memref<4096xi8> to memref<4xi32, strided<[1]>>
  %rows = schedule.view %b_rows at 0 : memref<4096xi8> to memref<4x8xf32, strided<[8, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.embedding_grad' op (C2) the table is i32[16,8] and dout f32[4,8], expected floats and a table of 2 dims or more}}
    schedule.embedding_grad "x" flops 0 bytes 0 no %ids, %rows to %table : memref<4xi32, strided<[1]>>, memref<4x8xf32, strided<[8, 1]>> to memref<16x8xi32, strided<[8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_table = schedule.buffer "table" activations : memref<4096xi8>
  %b_ids = schedule.buffer "ids" activations : memref<4096xi8>
  %b_rows = schedule.buffer "rows" activations : memref<4096xi8>
  %b_first = schedule.buffer "first" activations : memref<4096xi8>
  %table = schedule.view %b_table at 0 : memref<4096xi8> to memref<16x8xf32, strided<[8, 1]>>
  %ids = schedule.view %b_ids at 0 : memref<4096xi8> to memref<4xi32, strided<[1]>>
  %rows = schedule.view %b_rows at 0 : memref<4096xi8> to memref<4x8xf32, strided<[8, 1]>>
  %first = schedule.view %b_first at 0 : memref<4096xi8> to memref<2xi32, strided<[1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.embedding_grad' op (C3) first_row is i32[2], expected one i32}}
    schedule.embedding_grad "x" flops 0 bytes 0 no %ids, %rows from %first : memref<2xi32, strided<[1]>> to %table : memref<4xi32, strided<[1]>>, memref<4x8xf32, strided<[8, 1]>> to memref<16x8xf32, strided<[8, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_cos = schedule.buffer "cos" activations : memref<4096xi8>
  %b_sin = schedule.buffer "sin" activations : memref<4096xi8>
  %cos = schedule.view %b_cos at 0 : memref<4096xi8> to memref<8x4xf32, strided<[4, 1]>>
  %sin = schedule.view %b_sin at 0 : memref<4096xi8> to memref<8x2xf32, strided<[2, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.rotary_table' op (C1) sin is f32[8,2], expected f32[8,4]}}
    schedule.rotary_table "x" flops 0 bytes 0 [1.0, 0.5] scale 1.0 to %cos, %sin : memref<8x4xf32, strided<[4, 1]>>, memref<8x2xf32, strided<[2, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_cos = schedule.buffer "cos" activations : memref<4096xi8>
  %b_sin = schedule.buffer "sin" activations : memref<4096xi8>
  %cos = schedule.view %b_cos at 0 : memref<4096xi8> to memref<8x4xf32, strided<[4, 1]>>
  %sin = schedule.view %b_sin at 0 : memref<4096xi8> to memref<8x4xf32, strided<[4, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.rotary_table' op (C2) a frequency or the scale is not finite}}
    schedule.rotary_table "x" flops 0 bytes 0 [1.0, 0.5] scale 0x7F800000 to %cos, %sin : memref<8x4xf32, strided<[4, 1]>>, memref<8x4xf32, strided<[4, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_x = schedule.buffer "x" activations : memref<4096xi8>
  %x = schedule.view %b_x at 0 : memref<4096xi8> to memref<4xi32, strided<[1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.fill' op (C1) fills i32[4] with 0.5, expected a whole number of 32 bits}}
    schedule.fill "x" flops 0 bytes 4 0.5 to %x : memref<4xi32, strided<[1]>>
  }
}

// -----
schedule.program @rank {
  %b_x = schedule.buffer "x" activations : memref<4096xi8>
  %x = schedule.view %b_x at 0 : memref<4096xi8> to memref<16xf32, strided<[2]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.fill' op (C2) fills f32[16] with gaps, expected elements side by side, or rows of such}}
    schedule.fill "x" flops 0 bytes 64 0.5 to %x : memref<16xf32, strided<[2]>>
  }
}

// -----
schedule.program @rank {
  %b_src = schedule.buffer "src" activations : memref<4096xi8>
  %b_first = schedule.buffer "first" activations : memref<4096xi8>
  %b_dst = schedule.buffer "dst" activations : memref<4096xi8>
  %src = schedule.view %b_src at 0 : memref<4096xi8> to memref<6x4xf32, strided<[4, 1]>>
  %first = schedule.view %b_first at 0 : memref<4096xi8> to memref<i32, strided<[]>>
  %dst = schedule.view %b_dst at 0 : memref<4096xi8> to memref<2x3xf32, strided<[3, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.copy_block' op (C1) dst is f32[2,3], expected f32[2,4]}}
    schedule.copy_block "x" flops 0 bytes 0 dim 0 %src from %first to %dst : memref<6x4xf32, strided<[4, 1]>> from memref<i32, strided<[]>> to memref<2x3xf32, strided<[3, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_src = schedule.buffer "src" activations : memref<4096xi8>
  %b_first = schedule.buffer "first" activations : memref<4096xi8>
  %b_dst = schedule.buffer "dst" activations : memref<4096xi8>
  %src = schedule.view %b_src at 0 : memref<4096xi8> to memref<6x4xf32, strided<[4, 1]>>
  %first = schedule.view %b_first at 0 : memref<4096xi8> to memref<i32, strided<[]>>
  %dst = schedule.view %b_dst at 0 : memref<4096xi8> to memref<2x4xi32, strided<[4, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.copy_block' op (C1) dst is i32[2,4], expected f32[2,4]}}
    schedule.copy_block "x" flops 0 bytes 0 dim 0 %src from %first to %dst : memref<6x4xf32, strided<[4, 1]>> from memref<i32, strided<[]>> to memref<2x4xi32, strided<[4, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_src = schedule.buffer "src" activations : memref<4096xi8>
  %b_first = schedule.buffer "first" activations : memref<4096xi8>
  %b_dst = schedule.buffer "dst" activations : memref<4096xi8>
  %src = schedule.view %b_src at 0 : memref<4096xi8> to memref<6x4xf32, strided<[4, 1]>>
  %first = schedule.view %b_first at 0 : memref<4096xi8> to memref<i32, strided<[]>>
  %dst = schedule.view %b_dst at 0 : memref<4096xi8> to memref<2x4xf32, strided<[4, 1]>>
  schedule.list update {
    // expected-error@+1 {{(C1) copies}}
    schedule.copy_block "x" flops 0 bytes 0 dim 2 %src from %first to %dst : memref<6x4xf32, strided<[4, 1]>> from memref<i32, strided<[]>> to memref<2x4xf32, strided<[4, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_one = schedule.buffer "one" activations : memref<4096xi8>
  %b_first = schedule.buffer "first" activations : memref<4096xi8>
  %src = schedule.view %b_one at 0 : memref<4096xi8> to memref<6x4xf32, strided<[4, 1]>>
  %first = schedule.view %b_first at 0 : memref<4096xi8> to memref<i32, strided<[]>>
  %dst = schedule.view %b_one at 0 : memref<4096xi8> to memref<2x4xf32, strided<[4, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.copy_block' op (C2) src and dst share buffer "one"}}
    schedule.copy_block "x" flops 0 bytes 0 dim 0 %src from %first to %dst : memref<6x4xf32, strided<[4, 1]>> from memref<i32, strided<[]>> to memref<2x4xf32, strided<[4, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_src = schedule.buffer "src" activations : memref<4096xi8>
  %b_first = schedule.buffer "first" activations : memref<4096xi8>
  %b_dst = schedule.buffer "dst" activations : memref<4096xi8>
  %src = schedule.view %b_src at 0 : memref<4096xi8> to memref<6x4xf32, strided<[4, 1]>>
  %first = schedule.view %b_first at 0 : memref<4096xi8> to memref<f32, strided<[]>>
  %dst = schedule.view %b_dst at 0 : memref<4096xi8> to memref<2x4xf32, strided<[4, 1]>>
  schedule.list update {
    // expected-error@+1 {{'schedule.copy_block' op (C3) first is f32[], expected one i32}}
    schedule.copy_block "x" flops 0 bytes 0 dim 0 %src from %first to %dst : memref<6x4xf32, strided<[4, 1]>> from memref<f32, strided<[]>> to memref<2x4xf32, strided<[4, 1]>>
  }
}

// -----
schedule.program @rank {
  %b_c = schedule.buffer "c" constants : memref<128xi8>
  %b_s = schedule.buffer "s" constants : memref<128xi8>
  %b_p = schedule.buffer "p" input : memref<16xi8>
  %c = schedule.view %b_c at 0 : memref<128xi8> to memref<8x4xf32, strided<[4, 1]>>
  %s = schedule.view %b_s at 0 : memref<128xi8> to memref<8x4xf32, strided<[4, 1]>>
  %p = schedule.view %b_p at 0 : memref<16xi8> to memref<4xi32, strided<[1]>>
  schedule.list once {
    // expected-error@+1 {{'schedule.rotary_table' op (C3) positions is i32[4], expected i32[8]}}
    schedule.rotary_table "x" flops 0 bytes 256 [1.0, 0.5] scale 1.0 of %p : memref<4xi32, strided<[1]>> to %c, %s : memref<8x4xf32, strided<[4, 1]>>, memref<8x4xf32, strided<[4, 1]>>
  }
}
