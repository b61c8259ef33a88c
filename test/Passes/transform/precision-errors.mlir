// RUN: meshwork-opt %s -transformer-precision="compute=f16" -verify-diagnostics

// expected-error@+1 {{compute is 'f16', expected f32 or bf16}}
module {
}
