// RUN: meshwork-opt %s -split-input-file -transformer-bind="batch=4 sequence=16" -verify-diagnostics

// expected-error@+1 {{dim 'embed' of 'tensor<?xf32, #transformer.dims<embed>>' is open; only `batch` and `sequence` may be}}
func.func @other(%x: tensor<?xf32, #transformer.dims<embed>>) {
  return
}

// -----

// More tokens than the model has positions.
func.func @positions(%p: tensor<8x2xf32, #transformer.dims<positions, embed>>) {
  // expected-error@+1 {{(C1) elements 0 to 16 of dim 'positions' do not exist, its size is 8}}
  %s = transformer.slice %p dim "positions" offset 0 : tensor<8x2xf32, #transformer.dims<positions, embed>>
      -> tensor<?x2xf32, #transformer.dims<sequence, embed>>
  return
}
