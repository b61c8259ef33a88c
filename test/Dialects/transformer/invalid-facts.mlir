// RUN: meshwork-opt %s -split-input-file -verify-diagnostics
// What facts may be; the labels are those of the dialect.
#e = #transformer.dims<embed>
func.func @f(%x: tensor<4xf32, #e>) {
  // expected-error@+1 {{'transformer.activate' op (F1) has the attribute 'transformer.backward', which means nothing on it; expected one of transformer.pass, transformer.not_before, transformer.kept, transformer.of_step, transformer.constant, transformer.head, transformer.parameter, transformer.layer, transformer.stage}}
  %0 = transformer.activate relu %x {transformer.backward} : tensor<4xf32, #e>
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f(%x: tensor<4xf32, #e>) {
  // expected-error@+1 {{'transformer.activate' op (F1) has the attribute 'transformer.max_positions', which means nothing on it}}
  %0 = transformer.activate relu %x {transformer.max_positions = 8 : i64} : tensor<4xf32, #e>
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f(%x: tensor<4xf32, #e>) {
  // expected-error@+1 {{'transformer.activate' op (F2) 'transformer.pass' is "backward", expected #transformer.pass<backward> or #transformer.pass<recomputed>}}
  %0 = transformer.activate relu %x {transformer.pass = "backward"} : tensor<4xf32, #e>
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f(%x: tensor<4xf32, #e>) {
  // expected-error@+1 {{'transformer.activate' op (F2) 'transformer.pass' is #transformer.pass<forward>, expected}}
  %0 = transformer.activate relu %x {transformer.pass = #transformer.pass<forward>} : tensor<4xf32, #e>
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f(%x: tensor<4xf32, #e>) {
  // expected-error@+1 {{'transformer.activate' op (F3) 'transformer.not_before' is 1 : i64, expected no value}}
  %0 = transformer.activate relu %x {transformer.not_before = 1 : i64} : tensor<4xf32, #e>
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f(%x: tensor<4xf32, #e>) {
  // expected-error@+1 {{'transformer.activate' op (F11) 'transformer.kept' is 1 : i64, expected no value}}
  %0 = transformer.activate relu %x {transformer.kept = 1 : i64} : tensor<4xf32, #e>
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f(%x: tensor<4xf32, #e>) {
  // expected-error@+1 {{'transformer.activate' op (F12) 'transformer.of_step' is 1 : i64, expected no value}}
  %0 = transformer.activate relu %x {transformer.of_step = 1 : i64} : tensor<4xf32, #e>
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f(%x: tensor<4xf32, #e>) {
  // expected-error@+1 {{'transformer.activate' op (F13) 'transformer.constant' is 1 : i64, expected no value}}
  %0 = transformer.activate relu %x {transformer.constant = 1 : i64} : tensor<4xf32, #e>
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f(%x: tensor<4xf32, #e>) {
  // expected-error@+1 {{'transformer.activate' op (F7) 'transformer.head' is 1 : i64, expected no value}}
  %0 = transformer.activate relu %x {transformer.head = 1 : i64} : tensor<4xf32, #e>
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f(%x: tensor<4xf32, #e>) {
  // expected-error@+1 {{'transformer.activate' op (F4) 'transformer.parameter' is "", expected the name of a parameter}}
  %0 = transformer.activate relu %x {transformer.parameter = ""} : tensor<4xf32, #e>
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f(%x: tensor<4xf32, #e>) {
  // expected-error@+1 {{'transformer.activate' op (F5) 'transformer.layer' is 65536 : i64, expected an i64 from 0 to 65535}}
  %0 = transformer.activate relu %x {transformer.layer = 65536 : i64} : tensor<4xf32, #e>
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f(%x: tensor<4xf32, #e>) {
  // expected-error@+1 {{'transformer.activate' op (F9) 'transformer.stage' is 0 : i64, expected an i64 from 1 to 65535}}
  %0 = transformer.activate relu %x {transformer.stage = 0 : i64} : tensor<4xf32, #e>
  return
}

// -----
#e = #transformer.dims<embed>
func.func @f(%x: tensor<4xf32, #e>) {
  // expected-error@+1 {{'transformer.activate' op (F9) 'transformer.stage' is "last", expected an i64}}
  %0 = transformer.activate relu %x {transformer.stage = "last"} : tensor<4xf32, #e>
  return
}

// -----
// expected-error@+1 {{'builtin.module' op (F1) has the attribute 'transformer.pass', which means nothing on it; expected one of transformer.gradient_type, transformer.max_positions}}
module attributes {transformer.pass = #transformer.pass<backward>} {}

// -----
// expected-error@+1 {{'builtin.module' op (F6) 'transformer.gradient_type' is i32, expected f32 or bf16}}
module attributes {transformer.gradient_type = i32} {}

// -----
// expected-error@+1 {{'builtin.module' op (F6) 'transformer.max_positions' is 0 : i64, expected a positive i64}}
module attributes {transformer.max_positions = 0 : i64} {}

// -----
// expected-error@+1 {{'builtin.module' op (F8) 'transformer.config' is 1 : i64, expected the text of a config.json}}
module attributes {transformer.config = 1 : i64} {}

// -----
// expected-error@+1 {{'builtin.module' op (F6) 'transformer.model_flops' is 1.000000e+00 : f32, expected an f64}}
module attributes {transformer.model_flops = 1.0 : f32} {}

// -----
// expected-error@+1 {{'builtin.module' op (F6) 'transformer.palm_attention_flops' is "many", expected an f64}}
module attributes {transformer.palm_attention_flops = "many"} {}

// -----
// expected-error@+1 {{'func.func' op (F1) an argument or result has the attribute 'transformer.pass', which means nothing there}}
func.func @f(%x: i32 {transformer.pass = #transformer.pass<backward>}) { return }

// -----
// expected-error@+1 {{'func.func' op (F1) an argument or result has the attribute 'transformer.pass', which means nothing there}}
func.func @f(%x: i32) -> (i32 {transformer.pass = #transformer.pass<backward>}) { return %x : i32 }

// -----
// expected-error@+1 {{'func.func' op (F10) 'transformer.input' is "tokens", expected one of documents, document_positions, inner_targets, target_counts}}
func.func @f(%x: i32 {transformer.input = "tokens"}) { return }

// -----
// expected-error@+1 {{'func.func' op (F10) 'transformer.input' is 3 : i64, expected one of documents}}
func.func @f(%x: i32 {transformer.input = 3}) { return }
