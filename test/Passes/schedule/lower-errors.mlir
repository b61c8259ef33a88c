// RUN: meshwork-opt %s -split-input-file -schedule-lower -verify-diagnostics

// expected-error@+1 {{expected functions @microbatch of tokens, targets and what else the launcher gives, and @update}}
module {
}
