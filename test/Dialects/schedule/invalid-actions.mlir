// RUN: meshwork-opt %s -split-input-file -verify-diagnostics

schedule.program @twice {
  schedule.list forward {
  }
  // expected-error @+1 {{'schedule.list' op (C1) is the second of kind 'forward' and stage 0}}
  schedule.list forward {
  }
}

// -----

// expected-error @+1 {{'schedule.program' op (C1) has 2 tables of actions}}
schedule.program @tables {
  schedule.list update {
  }
  schedule.actions [update]
  schedule.actions [update]
}

// -----

schedule.program @order {
  schedule.list forward {
  }
  schedule.list backward {
  }
  // expected-error @+1 {{'schedule.actions' op (C1) action 0 runs backward of microbatch 0, expected forward next}}
  schedule.actions [0B0, 0F0]
}

// -----

schedule.program @count {
  schedule.list forward {
  }
  schedule.list update {
  }
  // expected-error @+1 {{'schedule.actions' op (C1) there are 1 actions, expected 2: 1 microbatches of 1 lists, and 1 lists that run once a step}}
  schedule.actions [0F0]
}

// -----

schedule.program @kind {
  schedule.list update stage 1 {
  }
  // expected-error @+1 {{'schedule.actions' op (C1) list 0 is update of stage 1, which this version does not run}}
  schedule.actions []
}

// -----

schedule.program @text {
  // expected-error @+1 {{unknown action '0Q1', expected one like 0F3, 0B3, step or update}}
  schedule.actions [0Q1]
}
