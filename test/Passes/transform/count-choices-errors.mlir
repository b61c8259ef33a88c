// RUN: meshwork-opt %s -transformer-count-choices -verify-diagnostics

// expected-error@+1 {{expected functions @microbatch and @update; run -transformer-build-update first}}
module {
}
