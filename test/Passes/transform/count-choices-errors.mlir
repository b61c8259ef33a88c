// RUN: meshwork-opt %s -transformer-count-choices=bias-rate=0.5 -split-input-file -verify-diagnostics

// expected-error@+1 {{expected functions @microbatch and @update; run -transformer-build-update first}}
module {
}

// -----

// expected-error@+1 {{the model has no bias by which experts are chosen; leave the line out}}
module {
  func.func @microbatch() {
    return
  }
  func.func @update() {
    return
  }
}
