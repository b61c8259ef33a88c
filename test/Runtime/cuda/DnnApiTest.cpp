// DnnApi.h against cudnn_graph.h, at compile time.
#include "runtime/device/cuda/DnnApi.h"
#include "test/Runtime/cuda/SameInterface.h"
#include <cudnn_graph.h>
#include <gtest/gtest.h>

namespace meshwork::runtime::cuda::dnn {
namespace {
#define MESHWORK_SAME(type, member, symbol, ...)                               \
  static_assert(                                                               \
      SameInterface<decltype(&::symbol), type (*)(__VA_ARGS__)>::value,        \
      #symbol);
MESHWORK_DNN_FUNCTIONS(MESHWORK_SAME)

static_assert(status::success == CUDNN_STATUS_SUCCESS);
static_assert(dataType::f32 == CUDNN_DATA_FLOAT);
static_assert(dataType::i32 == CUDNN_DATA_INT32);
static_assert(dataType::bf16 == CUDNN_DATA_BFLOAT16);
static_assert(dataType::boolean == CUDNN_DATA_BOOLEAN);
static_assert(pointwiseMode::add == CUDNN_POINTWISE_ADD);
static_assert(pointwiseMode::mul == CUDNN_POINTWISE_MUL);
static_assert(pointwiseMode::div == CUDNN_POINTWISE_DIV);
static_assert(pointwiseMode::sub == CUDNN_POINTWISE_SUB);
static_assert(pointwiseMode::exp == CUDNN_POINTWISE_EXP);
static_assert(pointwiseMode::log == CUDNN_POINTWISE_LOG);
static_assert(pointwiseMode::identity == CUDNN_POINTWISE_IDENTITY);
static_assert(pointwiseMode::greater == CUDNN_POINTWISE_CMP_GT);
static_assert(pointwiseMode::greaterOrEqual == CUDNN_POINTWISE_CMP_GE);
static_assert(pointwiseMode::index == CUDNN_POINTWISE_GEN_INDEX);
static_assert(pointwiseMode::select == CUDNN_POINTWISE_BINARY_SELECT);
static_assert(reductionOperator::sum == CUDNN_REDUCE_TENSOR_ADD);
static_assert(reductionOperator::max == CUDNN_REDUCE_TENSOR_MAX);
static_assert(heuristics::modeA == CUDNN_HEUR_MODE_A);

#define MESHWORK_KIND(ours, theirs)                                            \
  static_assert(descriptor::ours == CUDNN_BACKEND_##theirs##_DESCRIPTOR)
MESHWORK_KIND(pointwise, POINTWISE);
MESHWORK_KIND(engineConfig, ENGINECFG);
MESHWORK_KIND(heuristics, ENGINEHEUR);
MESHWORK_KIND(plan, EXECUTION_PLAN);
MESHWORK_KIND(pointwiseOperation, OPERATION_POINTWISE);
MESHWORK_KIND(graph, OPERATIONGRAPH);
MESHWORK_KIND(variantPack, VARIANT_PACK);
MESHWORK_KIND(tensor, TENSOR);
MESHWORK_KIND(matmul, MATMUL);
MESHWORK_KIND(matmulOperation, OPERATION_MATMUL);
MESHWORK_KIND(reduction, REDUCTION);
MESHWORK_KIND(reductionOperation, OPERATION_REDUCTION);
MESHWORK_KIND(reshapeOperation, OPERATION_RESHAPE);

#define MESHWORK_TYPE(ours, theirs)                                            \
  static_assert(type::ours == CUDNN_TYPE_##theirs)
MESHWORK_TYPE(handle, HANDLE);
MESHWORK_TYPE(dataType, DATA_TYPE);
MESHWORK_TYPE(boolean, BOOLEAN);
MESHWORK_TYPE(int64, INT64);
MESHWORK_TYPE(pointer, VOID_PTR);
MESHWORK_TYPE(heuristicsMode, HEUR_MODE);
MESHWORK_TYPE(pointwiseMode, POINTWISE_MODE);
MESHWORK_TYPE(descriptor, BACKEND_DESCRIPTOR);
MESHWORK_TYPE(reductionOperator, REDUCTION_OPERATOR_TYPE);
MESHWORK_TYPE(character, CHAR);

#define MESHWORK_ATTRIBUTE(ours, theirs)                                       \
  static_assert(attribute::ours == CUDNN_ATTR_##theirs)
MESHWORK_ATTRIBUTE(pointwiseMode, POINTWISE_MODE);
MESHWORK_ATTRIBUTE(pointwisePrecision, POINTWISE_MATH_PREC);
MESHWORK_ATTRIBUTE(pointwiseAxis, POINTWISE_AXIS);
MESHWORK_ATTRIBUTE(heuristicsMode, ENGINEHEUR_MODE);
MESHWORK_ATTRIBUTE(heuristicsGraph, ENGINEHEUR_OPERATION_GRAPH);
MESHWORK_ATTRIBUTE(heuristicsResults, ENGINEHEUR_RESULTS);
MESHWORK_ATTRIBUTE(planHandle, EXECUTION_PLAN_HANDLE);
MESHWORK_ATTRIBUTE(planConfig, EXECUTION_PLAN_ENGINE_CONFIG);
MESHWORK_ATTRIBUTE(planWorkspaceSize, EXECUTION_PLAN_WORKSPACE_SIZE);
MESHWORK_ATTRIBUTE(pointwiseDescriptor, OPERATION_POINTWISE_PW_DESCRIPTOR);
MESHWORK_ATTRIBUTE(pointwiseX, OPERATION_POINTWISE_XDESC);
MESHWORK_ATTRIBUTE(pointwiseB, OPERATION_POINTWISE_BDESC);
MESHWORK_ATTRIBUTE(pointwiseY, OPERATION_POINTWISE_YDESC);
MESHWORK_ATTRIBUTE(pointwiseT, OPERATION_POINTWISE_TDESC);
MESHWORK_ATTRIBUTE(graphHandle, OPERATIONGRAPH_HANDLE);
MESHWORK_ATTRIBUTE(graphOperations, OPERATIONGRAPH_OPS);
MESHWORK_ATTRIBUTE(tensorAlignment, TENSOR_BYTE_ALIGNMENT);
MESHWORK_ATTRIBUTE(tensorType, TENSOR_DATA_TYPE);
MESHWORK_ATTRIBUTE(tensorDimensions, TENSOR_DIMENSIONS);
MESHWORK_ATTRIBUTE(tensorStrides, TENSOR_STRIDES);
MESHWORK_ATTRIBUTE(tensorUid, TENSOR_UNIQUE_ID);
MESHWORK_ATTRIBUTE(tensorIsVirtual, TENSOR_IS_VIRTUAL);
MESHWORK_ATTRIBUTE(tensorIsByValue, TENSOR_IS_BY_VALUE);
MESHWORK_ATTRIBUTE(packUids, VARIANT_PACK_UNIQUE_IDS);
MESHWORK_ATTRIBUTE(packPointers, VARIANT_PACK_DATA_POINTERS);
MESHWORK_ATTRIBUTE(packWorkspace, VARIANT_PACK_WORKSPACE);
MESHWORK_ATTRIBUTE(matmulPrecision, MATMUL_COMP_TYPE);
MESHWORK_ATTRIBUTE(matmulA, OPERATION_MATMUL_ADESC);
MESHWORK_ATTRIBUTE(matmulB, OPERATION_MATMUL_BDESC);
MESHWORK_ATTRIBUTE(matmulC, OPERATION_MATMUL_CDESC);
MESHWORK_ATTRIBUTE(matmulDescriptor, OPERATION_MATMUL_DESC);
MESHWORK_ATTRIBUTE(reductionOperator, REDUCTION_OPERATOR);
MESHWORK_ATTRIBUTE(reductionPrecision, REDUCTION_COMP_TYPE);
MESHWORK_ATTRIBUTE(reductionX, OPERATION_REDUCTION_XDESC);
MESHWORK_ATTRIBUTE(reductionY, OPERATION_REDUCTION_YDESC);
MESHWORK_ATTRIBUTE(reductionDescriptor, OPERATION_REDUCTION_DESC);
MESHWORK_ATTRIBUTE(reshapeX, OPERATION_RESHAPE_XDESC);
MESHWORK_ATTRIBUTE(reshapeY, OPERATION_RESHAPE_YDESC);
#if CUDNN_VERSION >= 90800
MESHWORK_KIND(deviceProperties, DEVICEPROP);
MESHWORK_ATTRIBUTE(heuristicsDevice, ENGINEHEUR_DEVICEPROP);
MESHWORK_ATTRIBUTE(planDevice, EXECUTION_PLAN_DEVICEPROP);
MESHWORK_ATTRIBUTE(deviceJson, DEVICEPROP_JSON_REPRESENTATION);
#endif

TEST(DnnApi, IsThatOfTheHeader) {} // checked above

} // namespace
} // namespace meshwork::runtime::cuda::dnn
