// What ops of routing and of experts refuse.
// RUN: meshwork-opt %s -split-input-file -verify-diagnostics

#sr = #transformer.dims<sequence, routed>
#sk = #transformer.dims<sequence, choices>
func.func @f(%s: tensor<3x8xbf16, #sr>, %c: tensor<3x2xi32, #sk>) {
  // expected-error@+1 {{'transformer.pick' op (C1) expected f32 scores [row dims..., experts], choices [row dims..., another dim] and f32 with the dims of these, found 'tensor<3x8xbf16}}
  %0 = transformer.pick %s at %c : tensor<3x8xbf16, #sr>, tensor<3x2xi32, #sk> -> tensor<3x2xf32, #sk>
  return
}

// -----
func.func @f(%c: tensor<3xi32, #transformer.dims<choices>>) {
  // expected-error@+1 {{'transformer.limit_choices' op (C1) expected choices [first dim, other token dims..., choices], found 'tensor<3xi32}}
  %0 = transformer.limit_choices %c experts 4 most 1 : tensor<3xi32, #transformer.dims<choices>>
  return
}

// -----
func.func @f(%c: tensor<3x2xi32, #transformer.dims<sequence, choices>>) {
  // expected-error@+1 {{'transformer.limit_choices' op (C2) leaves 1 choices of each of 4 experts in groups of 2, expected 1 or more of each, and a divisor of 3}}
  %0 = transformer.limit_choices %c experts 4 most 1 group 2 : tensor<3x2xi32, #transformer.dims<sequence, choices>>
  return
}

// -----
func.func @f(%c: tensor<3x2xi32, #transformer.dims<sequence, choices>>) {
  // expected-error@+1 {{'transformer.limit_choices' op (C2) leaves -1 choices of each of 0 experts}}
  %0 = transformer.limit_choices %c experts 0 most -1 : tensor<3x2xi32, #transformer.dims<sequence, choices>>
  return
}

// -----
#sr = #transformer.dims<sequence, routed>
#sk = #transformer.dims<sequence, choices>
func.func @f(%s: tensor<4x8xf32, #sr>, %c: tensor<3x2xi32, #sk>) {
  // expected-error@+1 {{'transformer.pick' op (C1)}}
  %0 = transformer.pick %s at %c : tensor<4x8xf32, #sr>, tensor<3x2xi32, #sk> -> tensor<3x2xf32, #sk>
  return
}

// -----
#sr = #transformer.dims<sequence, routed>
#sk = #transformer.dims<sequence, choices>
func.func @f(%s: tensor<3x2xf32, #sk>, %c: tensor<3x2xi32, #sk>) {
  // expected-error@+1 {{'transformer.pick_grad' op (C1)}}
  %0 = transformer.pick_grad %s at %c : tensor<3x2xf32, #sk>, tensor<3x2xi32, #sk> -> tensor<3x2xf32, #sk>
  return
}

// -----
func.func @f(%x: tensor<3xbf16, #transformer.dims<routed>>) {
  // expected-error@+1 {{'transformer.softmax' op (C1) is of 'tensor<3xbf16, #transformer.dims<routed>>', expected f32 with a dim or more}}
  %0 = transformer.softmax %x : tensor<3xbf16, #transformer.dims<routed>>
  return
}

// -----
!x = tensor<3x4xf32, #transformer.dims<sequence, embed>>
!c = tensor<4x2xi32, #transformer.dims<sequence, choices>>
!p = tensor<4x2xf32, #transformer.dims<sequence, choices>>
!up = tensor<5x6x4xf32, #transformer.dims<experts, expert_ffn, embed>>
!down = tensor<5x4x6xf32, #transformer.dims<experts, embed, expert_ffn>>
func.func @f(%x: !x, %c: !c, %p: !p, %u: !up, %d: !down) {
  // expected-error@+1 {{'transformer.experts' op (C1) expected [token dims..., embed], choices [token dims..., another dim] and f32 weights with the dims of these}}
  %0 = transformer.experts silu %x, %c, %p gate %u up %u down %d : !x, !c, !p, !up, !down
  return
}

// -----
!x = tensor<3x4xf32, #transformer.dims<sequence, embed>>
!c = tensor<3x2xi32, #transformer.dims<sequence, choices>>
!p = tensor<3x2xf32, #transformer.dims<sequence, choices>>
!up = tensor<5x6x4xf32, #transformer.dims<experts, expert_ffn, embed>>
!down = tensor<5x6x4xf32, #transformer.dims<experts, embed, expert_ffn>>
func.func @f(%x: !x, %c: !c, %p: !p, %u: !up, %d: !down) {
  // expected-error@+1 {{'transformer.experts' op (C2) expected gate and up [experts, expert_ffn, embed] and down [experts, embed, expert_ffn] for}}
  %0 = transformer.experts silu %x, %c, %p gate %u up %u down %d : !x, !c, !p, !up, !down
  return
}

// -----
!x = tensor<3x4xf32, #transformer.dims<experts, embed>>
!c = tensor<3x2xi32, #transformer.dims<experts, choices>>
!p = tensor<3x2xf32, #transformer.dims<experts, choices>>
!up = tensor<5x6x4xf32, #transformer.dims<experts, expert_ffn, embed>>
!down = tensor<5x4x6xf32, #transformer.dims<experts, embed, expert_ffn>>
func.func @f(%x: !x, %c: !c, %p: !p, %u: !up, %d: !down) {
  // expected-error@+1 {{'transformer.experts_grad' op (C2)}}
  %0:5 = transformer.experts_grad silu %x, %c, %p gate %u up %u down %d of %x : !x, !c, !p, !up, !down
  return
}

// -----
!x = tensor<3x4xf32, #transformer.dims<sequence, embed>>
!c = tensor<3x2xi32, #transformer.dims<sequence, choices>>
!p = tensor<3x2xf32, #transformer.dims<sequence, choices>>
!up = tensor<5x6x4xf32, #transformer.dims<experts, expert_ffn, embed>>
!down = tensor<5x4x6xf32, #transformer.dims<experts, embed, expert_ffn>>
func.func @f(%x: !x, %c: !c, %p: !p, %u: !up, %d: !down) {
  // expected-error@+1 {{'transformer.experts' op (C3) first_expert is 'tensor<3x2xi32, #transformer.dims<sequence, choices>>', expected tensor<i32>}}
  %0 = transformer.experts silu %x, %c, %p gate %u up %u down %d from %c : !c of 5 : !x, !c, !p, !up, !down
  return
}

// -----
!c = tensor<3x2xi32, #transformer.dims<sequence, choices>>
func.func @f(%c: !c) {
  // expected-error@+1 {{'transformer.sort_rows' op (C2) has 5 rows, expected 6 or more}}
  %0:4 = transformer.sort_rows %c : !c -> tensor<5xi32, #transformer.dims<rows>>, tensor<9xi32, #transformer.dims<begins>>
  return
}

// -----
!c = tensor<3x2xi32, #transformer.dims<sequence, choices>>
func.func @f(%c: !c) {
  // expected-error@+1 {{'transformer.sort_rows' op (C2) has rows for at most -1 choices, expected 1 or more}}
  %0:4 = transformer.sort_rows %c most -1 : !c -> tensor<5xi32, #transformer.dims<rows>>, tensor<9xi32, #transformer.dims<begins>>
  return
}

// -----
!c = tensor<3x2xi32, #transformer.dims<sequence, choices>>
func.func @f(%c: !c) {
  // expected-error@+1 {{'transformer.sort_rows' op (C1) expected choices [token dims..., choices], [rows] and [experts + 1]}}
  %0:4 = transformer.sort_rows %c : !c -> tensor<6xi32, #transformer.dims<rows>>, tensor<1xi32, #transformer.dims<begins>>
  return
}

// -----
!x = tensor<3x4xf32, #transformer.dims<sequence, embed>>
!r = tensor<6xi32, #transformer.dims<rows>>
func.func @f(%x: !x, %r: !r) {
  // expected-error@+1 {{'transformer.take_rows' op (C1) expected [dims of 'tensor<6xi32}}
  %0 = transformer.take_rows %x at %r : !x, !r -> tensor<6x5xf32, #transformer.dims<rows, embed>>
  return
}

// -----
!s = tensor<6x4xf32, #transformer.dims<rows, embed>>
!c = tensor<3x2xi32, #transformer.dims<sequence, choices>>
func.func @f(%s: !s, %c: !c) {
  // expected-error@+1 {{'transformer.combine_rows' op (C1) expected [row dims..., embed], places [token dims..., choices] and [token dims..., embed]}}
  %0 = transformer.combine_rows %s at %c of %c : !s, !c -> tensor<3x5xf32, #transformer.dims<sequence, embed>>
  return
}

// -----
!s = tensor<6x4xf32, #transformer.dims<rows, embed>>
!w = tensor<5x7x3xf32, #transformer.dims<experts, expert_ffn, embed>>
!b = tensor<6xi32, #transformer.dims<begins>>
func.func @f(%s: !s, %w: !w, %b: !b) {
  // expected-error@+1 {{'transformer.grouped_product' op (C1) expected [rows, a], [experts, a and b] and [rows, b]}}
  %0 = transformer.grouped_product %s, %w by %b : !s, !w, !b -> tensor<6x7xf32, #transformer.dims<rows, expert_ffn>>
  return
}

// -----
!s = tensor<6x4xf32, #transformer.dims<rows, embed>>
!w = tensor<5x7x4xf32, #transformer.dims<experts, expert_ffn, embed>>
!b = tensor<5xi32, #transformer.dims<begins>>
func.func @f(%s: !s, %w: !w, %b: !b) {
  // expected-error@+1 {{'transformer.grouped_product' op (C2) begins is 'tensor<5xi32, #transformer.dims<begins>>', expected 6 of 5 experts}}
  %0 = transformer.grouped_product %s, %w by %b : !s, !w, !b -> tensor<6x7xf32, #transformer.dims<rows, expert_ffn>>
  return
}

// -----
!s = tensor<6x4xf32, #transformer.dims<rows, embed>>
!t = tensor<7x4xf32, #transformer.dims<rows, expert_ffn>>
!b = tensor<6xi32, #transformer.dims<begins>>
func.func @f(%s: !s, %t: !t, %b: !b) {
  // expected-error@+1 {{'transformer.grouped_gradient' op (C1) expected [rows, a], [rows, b] and [experts, a, b]}}
  %0 = transformer.grouped_gradient %s, %t by %b : !s, !t, !b -> tensor<5x4x4xf32, #transformer.dims<experts, embed, expert_ffn>>
  return
}

// -----
!x = tensor<3x4xf32, #transformer.dims<sequence, embed>>
!c = tensor<3x2xi32, #transformer.dims<sequence, choices>>
!p = tensor<3x2xbf16, #transformer.dims<sequence, choices>>
!up = tensor<5x6x4xf32, #transformer.dims<experts, expert_ffn, embed>>
!down = tensor<5x4x6xf32, #transformer.dims<experts, embed, expert_ffn>>
func.func @f(%x: !x, %c: !c, %p: !p, %u: !up, %d: !down) {
  // expected-error@+1 {{'transformer.experts_grad' op (C1) expected [token dims..., embed], choices [token dims..., another dim] and f32 weights}}
  %0:5 = transformer.experts_grad silu %x, %c, %p gate %u up %u down %d of %x : !x, !c, !p, !up, !down
  return
}

// -----
!x = tensor<3x4xf32, #transformer.dims<sequence, embed>>
!c = tensor<3x2xi32, #transformer.dims<sequence, choices>>
!p = tensor<3x2xf32, #transformer.dims<sequence, choices>>
!up = tensor<5x6x4xf32, #transformer.dims<experts, expert_ffn, embed>>
!down = tensor<5x4x6xf32, #transformer.dims<experts, embed, expert_ffn>>
func.func @f(%x: !x, %c: !c, %p: !p, %u: !up, %d: !down) {
  // expected-error@+1 {{'transformer.experts_grad' op (C3) first_expert is}}
  %0:5 = transformer.experts_grad silu %x, %c, %p gate %u up %u down %d of %x from %c : !c of 5 : !x, !c, !p, !up, !down
  return
}

// -----
!c = tensor<3x2xi32, #transformer.dims<sequence, choices>>
func.func @f(%c: !c) {
  // expected-error@+1 {{'transformer.sort_rows' op (C3) first_expert is}}
  %0:4 = transformer.sort_rows %c from %c : !c : !c -> tensor<6xi32, #transformer.dims<rows>>, tensor<9xi32, #transformer.dims<begins>>
  return
}

// -----
!s = tensor<6x4xf32, #transformer.dims<rows, embed>>
!t = tensor<6x7xf32, #transformer.dims<rows, expert_ffn>>
!b = tensor<5xi32, #transformer.dims<begins>>
func.func @f(%s: !s, %t: !t, %b: !b) {
  // expected-error@+1 {{'transformer.grouped_gradient' op (C2) begins is 'tensor<5xi32, #transformer.dims<begins>>', expected 6 of 5 experts}}
  %0 = transformer.grouped_gradient %s, %t by %b : !s, !t, !b -> tensor<5x4x7xf32, #transformer.dims<experts, embed, expert_ffn>>
  return
}

// -----
!x = tensor<3x4xf32, #transformer.dims<sequence, embed>>
!c = tensor<3x2xi32, #transformer.dims<sequence, choices>>
!p = tensor<3x2xf32, #transformer.dims<sequence, choices>>
!up = tensor<5x6x4xf32, #transformer.dims<experts, expert_ffn, embed>>
!down = tensor<5x4x6xf32, #transformer.dims<experts, embed, expert_ffn>>
func.func @f(%x: !x, %c: !c, %p: !p, %u: !up, %d: !down, %first: tensor<i32>) {
  // expected-error@+1 {{'transformer.experts' op (C3) has 5 of 4 experts, and a first one}}
  %0 = transformer.experts silu %x, %c, %p gate %u up %u down %d from %first : tensor<i32> of 4 : !x, !c, !p, !up, !down
  return
}

// -----
!x = tensor<3x4xf32, #transformer.dims<sequence, embed>>
!c = tensor<3x2xi32, #transformer.dims<sequence, choices>>
!p = tensor<3x2xf32, #transformer.dims<sequence, choices>>
!up = tensor<5x6x4xf32, #transformer.dims<experts, expert_ffn, embed>>
!down = tensor<5x4x6xf32, #transformer.dims<experts, embed, expert_ffn>>
func.func @f(%x: !x, %c: !c, %p: !p, %u: !up, %d: !down) {
  // expected-error@+1 {{'transformer.experts' op (C4) exchanges with 5.000000e-01 : f64, expected a number from 1 on}}
  %0 = transformer.experts silu %x, %c, %p gate %u up %u down %d exchanged 0.5 : !x, !c, !p, !up, !down
  return
}

// -----
!x = tensor<3x4xf32, #transformer.dims<sequence, embed>>
!c = tensor<3x2xi32, #transformer.dims<sequence, choices>>
!p = tensor<3x2xf32, #transformer.dims<sequence, choices>>
!up = tensor<5x6x4xf32, #transformer.dims<experts, expert_ffn, embed>>
!down = tensor<5x4x6xf32, #transformer.dims<experts, embed, expert_ffn>>
func.func @f(%x: !x, %c: !c, %p: !p, %u: !up, %d: !down) {
  // expected-error@+1 {{'transformer.experts_grad' op (C4) exchanges with 0x7FF8000000000000 : f64, expected a number from 1 on}}
  %0:5 = transformer.experts_grad silu %x, %c, %p gate %u up %u down %d of %x exchanged 0x7FF8000000000000 : !x, !c, !p, !up, !down
  return
}

// -----
!x = tensor<3x4xf32, #transformer.dims<sequence, embed>>
!c = tensor<3x2xi32, #transformer.dims<sequence, choices>>
!p = tensor<3x2xf32, #transformer.dims<sequence, choices>>
!up = tensor<5x6x4xf32, #transformer.dims<experts, expert_ffn, embed>>
!down = tensor<5x4x6xf32, #transformer.dims<experts, embed, expert_ffn>>
func.func @f(%x: !x, %c: !c, %p: !p, %u: !up, %d: !down) {
  // expected-error@+1 {{'transformer.experts' op (C5) has a capacity of 0 in groups of 1, expected 1 or more of both}}
  %0 = transformer.experts silu %x, %c, %p gate %u up %u down %d capacity 0 group 1 : !x, !c, !p, !up, !down
  return
}

// -----
!x = tensor<3x4xf32, #transformer.dims<sequence, embed>>
!c = tensor<3x2xi32, #transformer.dims<sequence, choices>>
!p = tensor<3x2xf32, #transformer.dims<sequence, choices>>
!up = tensor<5x6x4xf32, #transformer.dims<experts, expert_ffn, embed>>
!down = tensor<5x4x6xf32, #transformer.dims<experts, embed, expert_ffn>>
func.func @f(%x: !x, %c: !c, %p: !p, %u: !up, %d: !down) {
  // expected-error@+1 {{'transformer.experts_grad' op (C5) has a capacity of 2 in groups of 0, expected 1 or more of both}}
  %0:5 = transformer.experts_grad silu %x, %c, %p gate %u up %u down %d of %x capacity 2 group 0 : !x, !c, !p, !up, !down
  return
}

// -----
!c = tensor<3x2xi32, #transformer.dims<sequence, choices>>
func.func @f(%c: !c) {
  // expected-error@+1 {{'transformer.assign_slots' op (C1) expected choices [token dims..., choices], slots [ranks of all rounds, slots], ranks with the dims of choices, places with these for each round, and tensor<i32>}}
  %0:4 = transformer.assign_slots %c experts 2 most 4 : !c -> tensor<4x2xi32, #transformer.dims<sequence, slots>>, !c, tensor<5x2xi32, #transformer.dims<sequence, choices>>, tensor<i32>
  return
}

// -----
!c = tensor<3x2xi32, #transformer.dims<sequence, choices>>
func.func @f(%c: !c) {
  // expected-error@+1 {{'transformer.assign_slots' op (C1)}}
  %0:4 = transformer.assign_slots %c experts 0 most 4 : !c -> tensor<4x2xi32, #transformer.dims<sequence, slots>>, !c, tensor<6x2xi32, #transformer.dims<sequence, choices>>, tensor<i32>
  return
}

// -----
!c = tensor<3x2xi32, #transformer.dims<sequence, choices>>
func.func @f(%c: !c) {
  // expected-error@+1 {{'transformer.assign_slots' op (C2) has 2 rounds of 1 slots and 4 choices for 3 tokens with 2 on a rank, and room for 2 of 2 ranks}}
  %0:4 = transformer.assign_slots %c experts 2 most 4 : !c -> tensor<4x1xi32, #transformer.dims<sequence, slots>>, !c, tensor<6x2xi32, #transformer.dims<sequence, choices>>, tensor<i32>
  return
}

// -----
!c = tensor<3x2xi32, #transformer.dims<sequence, choices>>
func.func @f(%c: !c) {
  // expected-error@+1 {{'transformer.assign_slots' op (C2) has 2 rounds of 2 slots and 2 choices for 3 tokens with 2 on a rank}}
  %0:4 = transformer.assign_slots %c experts 2 most 2 : !c -> tensor<4x2xi32, #transformer.dims<sequence, slots>>, !c, tensor<6x2xi32, #transformer.dims<sequence, choices>>, tensor<i32>
  return
}

// -----
!x = tensor<3x4xf32, #transformer.dims<sequence, embed>>
!c = tensor<3x2xi32, #transformer.dims<sequence, choices>>
!p = tensor<3x2xf32, #transformer.dims<sequence, choices>>
!up = tensor<2x6x4xf32, #transformer.dims<experts, expert_ffn, embed>>
!down = tensor<2x4x6xf32, #transformer.dims<experts, embed, expert_ffn>>
!slots = tensor<4x2xi32, #transformer.dims<sequence, slots>>
!places = tensor<6x2xi32, #transformer.dims<sequence, choices>>
func.func @f(%x: !x, %c: !c, %p: !p, %u: !up, %d: !down, %n: tensor<i32>, %s: !slots, %pl: !places) {
  // expected-error@+1 {{'transformer.expert_rounds' op (C1) has 2 sums and 2 results, expected 1 and 0 magnitudes, and results of their types}}
  %0:2 = transformer.expert_rounds silu %x, %c, %p gate %u up %u down %d from %n of 4 rows 8 slots %s, %pl of %c last %n over ["ep"] to %x, %x : !x, !c, !p, !up, !down, tensor<i32>, !slots, !places, !c, tensor<i32> to !x, !x -> !x, !x
  return
}

// -----
!x = tensor<3x4xf32, #transformer.dims<sequence, embed>>
!c = tensor<3x2xi32, #transformer.dims<sequence, choices>>
!p = tensor<3x2xf32, #transformer.dims<sequence, choices>>
!up = tensor<2x6x4xf32, #transformer.dims<experts, expert_ffn, embed>>
!down = tensor<2x4x6xf32, #transformer.dims<experts, embed, expert_ffn>>
!slots = tensor<4x2xi32, #transformer.dims<sequence, slots>>
!places = tensor<6x2xi32, #transformer.dims<sequence, choices>>
func.func @f(%x: !x, %c: !c, %p: !p, %u: !up, %d: !down, %n: tensor<i32>, %s: !slots, %pl: !places) {
  // expected-error@+1 {{'transformer.expert_rounds' op (C1) has no gradient of weights that could be apart}}
  %0 = transformer.expert_rounds silu %x, %c, %p gate %u up %u down %d from %n of 4 rows 8 slots %s, %pl of %c last %n over ["ep"] apart to %x : !x, !c, !p, !up, !down, tensor<i32>, !slots, !places, !c, tensor<i32> to !x -> !x
  return
}

// -----
!x = tensor<3x4xf32, #transformer.dims<sequence, embed>>
!c = tensor<3x2xi32, #transformer.dims<sequence, choices>>
!p = tensor<3x2xf32, #transformer.dims<sequence, choices>>
!up = tensor<2x6x4xf32, #transformer.dims<experts, expert_ffn, embed>>
!down = tensor<2x4x6xf32, #transformer.dims<experts, embed, expert_ffn>>
!slots = tensor<4x2xi32, #transformer.dims<sequence, slots>>
!places = tensor<6x2xi32, #transformer.dims<sequence, choices>>
func.func @f(%x: !x, %c: !c, %p: !p, %u: !up, %d: !down, %n: tensor<i32>, %s: !slots, %pl: !places) {
  // expected-error@+1 {{'transformer.expert_rounds' op (C1) has 5 sums and 5 results, expected 2 and 0 magnitudes, and results of their types}}
  %0:5 = transformer.expert_rounds silu %x, %c, %p gate %u up %u down %d from %n of 4 rows 8 slots %s, %pl of %c last %n over ["ep"] of %x : !x apart to %x, %p, %u, %u, %d : !x, !c, !p, !up, !down, tensor<i32>, !slots, !places, !c, tensor<i32> to !x, !p, !up, !up, !down -> !x, !p, !up, !up, !down
  return
}

// -----
!x = tensor<3x4xf32, #transformer.dims<sequence, embed>>
!c = tensor<3x2xi32, #transformer.dims<sequence, choices>>
!p = tensor<3x2xf32, #transformer.dims<sequence, choices>>
!up = tensor<2x6x4xf32, #transformer.dims<experts, expert_ffn, embed>>
!down = tensor<2x4x6xf32, #transformer.dims<experts, embed, expert_ffn>>
!slots = tensor<4x2xi32, #transformer.dims<sequence, slots>>
!places = tensor<3x2xi32, #transformer.dims<sequence, choices>>
func.func @f(%x: !x, %c: !c, %p: !p, %u: !up, %d: !down, %n: tensor<i32>, %s: !slots, %pl: !places) {
  // expected-error@+1 {{'transformer.expert_rounds' op (C2) has slots}}
  %0 = transformer.expert_rounds silu %x, %c, %p gate %u up %u down %d from %n of 4 rows 8 slots %s, %pl of %c last %n over ["ep"] to %x : !x, !c, !p, !up, !down, tensor<i32>, !slots, !places, !c, tensor<i32> to !x -> !x
  return
}

// -----
!x = tensor<3x4xf32, #transformer.dims<sequence, embed>>
!c = tensor<3x2xi32, #transformer.dims<sequence, choices>>
!p = tensor<3x2xf32, #transformer.dims<sequence, choices>>
!up = tensor<5x6x4xf32, #transformer.dims<experts, expert_ffn, embed>>
!down = tensor<5x4x6xf32, #transformer.dims<experts, embed, expert_ffn>>
func.func @f(%x: !x, %c: !c, %p: !p, %u: !up, %d: !down, %s: tensor<f32>) {
  // expected-error@+1 {{'transformer.experts' op (C6) has 1 scales and 2 magnitudes of rows, expected 1 and 1 of tensor<f32>, or none}}
  %0:3 = transformer.experts silu %x, %c, %p gate %u up %u down %d rounded %s : tensor<f32> -> tensor<f32>, tensor<f32> : !x, !c, !p, !up, !down
  return
}

// -----
!x = tensor<3x4xf32, #transformer.dims<sequence, embed>>
!c = tensor<3x2xi32, #transformer.dims<sequence, choices>>
!p = tensor<3x2xf32, #transformer.dims<sequence, choices>>
!up = tensor<5x6x4xf32, #transformer.dims<experts, expert_ffn, embed>>
!down = tensor<5x4x6xf32, #transformer.dims<experts, embed, expert_ffn>>
func.func @f(%x: !x, %c: !c, %p: !p, %u: !up, %d: !down, %s: tensor<f32>) {
  // expected-error@+1 {{'transformer.experts' op (C6)}}
  %0:2 = transformer.experts silu %x, %c, %p gate %u up %u down %d rounded %x : !x -> !x : !x, !c, !p, !up, !down
  return
}

// -----
!x = tensor<3x4xf32, #transformer.dims<sequence, embed>>
!c = tensor<3x2xi32, #transformer.dims<sequence, choices>>
!p = tensor<3x2xf32, #transformer.dims<sequence, choices>>
!up = tensor<5x6x4xf32, #transformer.dims<experts, expert_ffn, embed>>
!down = tensor<5x4x6xf32, #transformer.dims<experts, embed, expert_ffn>>
func.func @f(%x: !x, %c: !c, %p: !p, %u: !up, %d: !down, %s: tensor<f32>) {
  // expected-error@+1 {{'transformer.experts_grad' op (C6) has 1 scales and 2 magnitudes of rows, expected 3 and 2 of tensor<f32>, or none}}
  %0:7 = transformer.experts_grad silu %x, %c, %p gate %u up %u down %d of %x rounded %s : tensor<f32> -> tensor<f32>, tensor<f32> : !x, !c, !p, !up, !down
  return
}
