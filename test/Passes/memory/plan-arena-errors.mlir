// RUN: meshwork-opt %s -split-input-file -memory-plan-arena -verify-diagnostics

// expected-error @+1 {{has no schedule.actions, which say when lists run}}
schedule.program @nothing {
}
