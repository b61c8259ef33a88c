// Kernels of Cases.h as a plan has them: the library's functions with
// literal sizes. For each case: forward_<name>, row_sums_<name>,
// grad_keys_<name> and grad_queries_<name>; arguments in the order of
// Operands.h, then "adds" and the workspace.
#include "passes/codegen/gpu/library/Attention.h"
#include "test/Emulator/attention/Cases.h"

namespace meshwork::attention {

#define DECLARE_CLASS(d)                                                       \
  DEVICE_FUNCTION void meshwork_attention_bf16_##d(                            \
      ATTENTION_FORWARD_PARAMETERS(Bf16));                                     \
  DEVICE_FUNCTION void meshwork_attention_grad_keys_bf16_##d(                  \
      ATTENTION_GRAD_PARAMETERS(Bf16));                                        \
  DEVICE_FUNCTION void meshwork_attention_grad_queries_bf16_##d(               \
      ATTENTION_GRAD_PARAMETERS(Bf16));                                        \
  DEVICE_FUNCTION void meshwork_attention_f32_##d(                             \
      ATTENTION_FORWARD_PARAMETERS(float));                                    \
  DEVICE_FUNCTION void meshwork_attention_grad_keys_f32_##d(                   \
      ATTENTION_GRAD_PARAMETERS(float));                                       \
  DEVICE_FUNCTION void meshwork_attention_grad_queries_f32_##d(                \
      ATTENTION_GRAD_PARAMETERS(float));
ATTENTION_CLASSES(DECLARE_CLASS)
DEVICE_FUNCTION void
    meshwork_attention_row_sums_bf16(ATTENTION_GRAD_PARAMETERS(Bf16));
DEVICE_FUNCTION void
    meshwork_attention_row_sums_f32(ATTENTION_GRAD_PARAMETERS(float));

namespace test {

template <bool bf16> struct ElementOf {
  using Type = Bf16;
};
template <> struct ElementOf<false> {
  using Type = float;
};

#define KERNEL(threads)                                                        \
  extern "C" __attribute__((global))                                           \
  __attribute__((launch_bounds(threads, 1))) void
#define SIZES c.rows(), c.columns(), c.sequence, c.heads, c.kvHeads, c.d
#define QUERIES                                                                \
  c.sampleStride(c.heads, c.rows()), c.positionStride(c.heads), c.headStride()
#define KEYS                                                                   \
  c.sampleStride(c.kvHeads, c.columns()), c.positionStride(c.kvHeads),         \
      c.headStride()
#define RULES                                                                  \
  c.heads *c.rows(), c.rows(), c.aligned(), c.wideResults, c.causal, c.window, \
      c.documents, c.parts > 1, c.hasKeys(), c.rate > 0, dropoutStream,        \
      c.threshold(), c.globalHeads(), c.scale, c.keepScale(), c.cap
// What a plan's kernel is not given is null.
#define GIVEN                                                                  \
  c.documents ? documents : nullptr, c.parts > 1 ? positions : nullptr,        \
      c.hasKeys() ? keys : nullptr, c.rate > 0 ? random : nullptr,             \
      c.someHeads ? firstHead : nullptr

#define FORWARD(name, type, padded)                                            \
  KERNEL(forwardTile(name##Case.bf16, padded).threads)                         \
  forward_##name(const T_##name *q, const T_##name *k, const T_##name *v,      \
                 ATTENTION_TABLE_PARAMETERS, void *out, float *lse, i32,       \
                 void *) {                                                     \
    constexpr Case c = name##Case;                                             \
    meshwork_attention_##type##_##padded(q, k, v, GIVEN, out, lse, SIZES,      \
                                         QUERIES, KEYS, KEYS, QUERIES, RULES); \
  }
#define GRAD(kernel, name, function, threads)                                  \
  KERNEL(threads)                                                              \
  kernel##_##name(const T_##name *q, const T_##name *k, const T_##name *v,     \
                  const T_##name *out, const float *lse, const T_##name *dout, \
                  ATTENTION_TABLE_PARAMETERS, void *dq, void *dk, void *dv,    \
                  i32, RowValues *workspace) {                                 \
    constexpr Case c = name##Case;                                             \
    meshwork_attention_##function(                                             \
        q, k, v, out, lse, dout, GIVEN, dq, dk, dv, workspace, SIZES, QUERIES, \
        KEYS, KEYS, QUERIES, QUERIES, QUERIES, KEYS, KEYS, RULES);             \
  }
#define ALL(name, type, padded, shape)                                         \
  using T_##name = ElementOf<name##Case.bf16>::Type;                           \
  FORWARD(name, type, padded)                                                  \
  GRAD(row_sums, name, row_sums_##type, rowSumThreads)                         \
  GRAD(grad_keys, name, grad_keys_##type##_##padded,                           \
       keyGradTile(name##Case.bf16, padded).threads)                           \
  GRAD(grad_queries, name, grad_queries_##type##_##padded,                     \
       queryGradTile(name##Case.bf16, padded).threads)
ATTENTION_TEST_CASES(ALL)

} // namespace test
} // namespace meshwork::attention
