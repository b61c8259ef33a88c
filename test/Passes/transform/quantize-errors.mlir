// RUN: meshwork-opt %s -transformer-quantize -verify-diagnostics

// expected-error@+1 {{expected a function @microbatch; run -transformer-autodiff first}}
module {
}
