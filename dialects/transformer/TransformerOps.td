// Every op of the transformer dialect, by family.
#ifndef MESHWORK_TRANSFORMER_OPS
#define MESHWORK_TRANSFORMER_OPS
include "dialects/transformer/TransformerModelOps.td"
include "dialects/transformer/TransformerPrimitiveOps.td"
include "dialects/transformer/TransformerExpertOps.td"
include "dialects/transformer/TransformerStepOps.td"
#endif // MESHWORK_TRANSFORMER_OPS
