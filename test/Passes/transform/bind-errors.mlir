// RUN: meshwork-opt %s -split-input-file -transformer-bind="batch=4 sequence=16" -verify-diagnostics

// expected-error@+1 {{dim 'embed' of 'tensor<?xf32, #transformer.dims<embed>>' is open; only `batch` and `sequence` may be}}
func.func @other(%x: tensor<?xf32, #transformer.dims<embed>>) {
  return
}

// -----

// A model without a table of positions may still be made for fewer.
// expected-warning@+1 {{found 16, but the model is made for at most 8 positions (max_position_embeddings)}}
module attributes {transformer.max_positions = 8 : i64} {
}

// -----

// More tokens than the model has positions.
func.func @positions(%p: tensor<8x2xf32, #transformer.dims<positions, embed>>) {
  // expected-error@+1 {{found 16, but the model has 8 positions; expected at most 8}}
  %s = transformer.slice %p dim "positions" offset 0 : tensor<8x2xf32, #transformer.dims<positions, embed>>
      -> tensor<?x2xf32, #transformer.dims<sequence, embed>>
  return
}
