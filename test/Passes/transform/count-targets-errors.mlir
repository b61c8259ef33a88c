// RUN: meshwork-opt %s -transformer-count-targets -verify-diagnostics

// expected-error@+1 {{expected a function @loss of tokens and targets}}
module {
}
