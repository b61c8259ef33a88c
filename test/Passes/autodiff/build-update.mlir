// RUN: meshwork-opt %s -transformer-build-update="compute=bf16 settings=weight_decay=0.5" | FileCheck %s
// RUN: meshwork-opt %s -transformer-build-update | FileCheck %s --check-prefix=F32
// RUN: meshwork-opt %s -transformer-build-update="compute=bf16 rounding=stochastic" | FileCheck %s --check-prefix=RANDOM
// RUN: not meshwork-opt %s -transformer-build-update="rounding=up" 2>&1 | FileCheck %s --check-prefix=UP
// RUN: meshwork-opt %s -transformer-build-update="rounding=stochastic" | FileCheck %s --check-prefix=F32
// RUN: meshwork-opt %s -transformer-build-update="kind=sgd" | FileCheck %s --check-prefix=PLAIN
// RUN: meshwork-opt %s -transformer-build-update="kind=sgd settings=momentum=0.5 compute=bf16" | FileCheck %s --check-prefix=SGD
// RUN: meshwork-opt %s -transformer-build-update="kind=sgd settings=momentum=0.5,nesterov=1" | FileCheck %s --check-prefix=NESTEROV
// RUN: not meshwork-opt %s -transformer-build-update="kind=sgd settings=nesterov=1" 2>&1 | FileCheck %s --check-prefix=LACKING
// RUN: meshwork-opt %s -transformer-build-update="kind=lion" | FileCheck %s --check-prefix=LION
// RUN: not meshwork-opt %s -transformer-build-update="kind=adam" 2>&1 | FileCheck %s --check-prefix=KIND
// RUN: not meshwork-opt %s -transformer-build-update="kind=sgd settings=beta1=0.5" 2>&1 | FileCheck %s --check-prefix=SETTING
// RUN: not meshwork-opt %s -transformer-build-update="settings=beta1" 2>&1 | FileCheck %s --check-prefix=FORM
// RUN: not meshwork-opt %s -transformer-build-update="settings=beta1=1" 2>&1 | FileCheck %s --check-prefix=RANGE
// RUN: meshwork-opt %s -transformer-build-update="settings=weight_decay=0.5 groups={w* 0.25 0.5},{* 7 7}" | FileCheck %s --check-prefix=GROUPS
// RUN: not meshwork-opt %s -transformer-build-update="groups={x 3 1}" 2>&1 | FileCheck %s --check-prefix=UNUSED
// RUN: not meshwork-opt %s -transformer-build-update="groups={x 3}" 2>&1 | FileCheck %s --check-prefix=NUMBERS

func.func @microbatch() {
  %w = transformer.parameter "w" init <constant, 1.0> : tensor<4x8xf32, #transformer.dims<a, b>>
  return
}

// CHECK-LABEL: func.func @update
// CHECK: %[[G:.*]] = transformer.state{{ +}}gradient "w"
// CHECK: transformer.assign{{ +}}grad_norm "", %[[NORM:.*]] : tensor<f32>
// CHECK: arith.minimumf
// CHECK: %[[NEW:.*]]:4 = transformer.map ins(%[[G]],
// CHECK-SAME: tensor<4x8xbf16
// CHECK: transformer.assign{{ +}}master "w", %[[NEW]]#0
// CHECK: transformer.assign{{ +}}optimizer "w" slot "first_moment", %[[NEW]]#1
// CHECK: transformer.assign{{ +}}optimizer "w" slot "second_moment", %[[NEW]]#2
// CHECK: transformer.assign{{ +}}weight "w", %[[NEW]]#3
// In f32 the weight is the master weight.
// F32: %[[NEW:.*]]:3 = transformer.map
// F32: transformer.assign{{ +}}optimizer "w" slot "second_moment"
// F32: transformer.assign{{ +}}weight "w", %[[NEW]]#0
// What is stored as the master is not rounded.
// RANDOM: transformer.step_input seed
// RANDOM: transformer.step_input step
// RANDOM: transformer.map ins(
// RANDOM: %[[R:.*]] = transformer.stochastic_round %[[W:[0-9]+]] by %{{.*}} stream
// RANDOM-NEXT: transformer.yield %[[W]], %{{.*}}, %{{.*}}, %[[R]] : f32, f32, f32, f32
// UP: rounding option: found 'up', expected nearest or stochastic
// Nothing is kept but the weight.
// PLAIN-NOT: slot
// PLAIN-NOT: bias_correction
// PLAIN: %[[NEW:.*]] = transformer.map ins(%{{.*}}, %{{.*}}, %{{.*}}, %
// PLAIN: transformer.assign{{ +}}master "w", %[[NEW]] :
// PLAIN: transformer.assign{{ +}}weight "w", %[[NEW]] :
// SGD: %[[NEW:.*]]:3 = transformer.map
// SGD: transformer.assign{{ +}}optimizer "w" slot "momentum", %[[NEW]]#1
// SGD: transformer.assign{{ +}}weight "w", %[[NEW]]#2 : tensor<4x8xbf16
// The decayed gradient and the new momentum, which goes in once more.
// NESTEROV: transformer.map ins(%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %
// NESTEROV: ^bb0(%[[X:.*]]: f32, %{{.*}}: f32, %[[KEPT:.*]]: f32, %[[CLIP:.*]]: f32, %{{.*}}: f32):
// NESTEROV-NEXT: %[[G:.*]] = arith.mulf %[[X]], %[[CLIP]]
// NESTEROV: %[[OLD:.*]] = arith.mulf %[[KEPT]],
// NESTEROV: %[[M:.*]] = arith.addf %[[OLD]], %[[G]] : f32
// NESTEROV: %[[AHEAD:.*]] = arith.mulf %[[M]],
// NESTEROV: %[[STEP:.*]] = arith.addf %[[G]], %[[AHEAD]] : f32
// NESTEROV: arith.mulf %{{.*}}, %[[STEP]] : f32
// NESTEROV: transformer.yield %{{.*}}, %[[M]] :
// LACKING: setting 'nesterov' of optimizer 'sgd' needs 'momentum', which is 0
// LION-NOT: bias_correction
// LION: %[[NEW:.*]]:2 = transformer.map
// LION: arith.cmpf ogt
// LION: transformer.assign{{ +}}optimizer "w" slot "momentum", %[[NEW]]#1
// KIND: there is no optimizer 'adam'
// SETTING: 'beta1=5.000000e-01' is no setting of optimizer 'sgd'
// FORM: settings option: found 'beta1', expected a name and a number, like beta1=0.8
// RANGE: 'beta1=1.000000e+00' is no setting of optimizer 'adamw', expected a number from 0 to below 1
// The first that matches: a quarter of the rate, half of the decay.
// GROUPS: %[[G:.*]] = transformer.state{{ +}}gradient "w"
// GROUPS: transformer.map ins(%[[G]],
// GROUPS: arith.constant 2.500000e-01
// GROUPS: arith.mulf
// GROUPS-NOT: 7.000000e+00
// UNUSED: 'x' matches no parameter that is trained; names are those in files, like 'w'
// NUMBERS: groups option: found 'x 3', expected a glob and two numbers, like *.bias 0.1 0
