#include "runtime/device/cpu/Gemm.h"

#include <vector>

#include "runtime/device/cpu/ConvertingGemm.h"
#include "runtime/device/cpu/Dnnl.h"
#include "runtime/device/cpu/F32Gemm.h"
#include "runtime/device/cpu/Operation.h"
#include "runtime/device/cpu/TileGemm.h"

namespace meshwork::runtime::cpu {
namespace {

using namespace dnnl;

/// Argument lists are built once per thread; a run only sets pointers, which
/// is what makes blocks of a few microseconds worth their call.
struct ThreadArguments {
  Stream stream;
  Memory lhs, rhs, dst, bias, scratch;
  Memory plainRhs, packScratch; // for pack() alone

  void set(const Memory &memory, const std::byte *data) const {
    if (memory)
      dnnl_memory_set_data_handle(memory.get(), const_cast<std::byte *>(data));
  }
};

class DnnlGemm final : public Gemm {
public:
  absl::Status describe(const GemmSpec &spec, const DnnlGemm *sameRhsAs);
  uint64_t scratchBytes() const override { return scratchSize; }
  uint64_t packedBytes() const override {
    return packed ? dnnl_memory_desc_get_size(&rhsDesc) : 0;
  }
  absl::Status generate(int threads) override;
  void pack(int thread, const std::byte *rhs, std::byte *packedRhs,
            std::byte *scratch) override;
  void run(int thread, const std::byte *lhs, const std::byte *rhs,
           std::byte *dst, const std::byte *bias, std::byte *scratch,
           float scale) override;

private:
  absl::Status describeOperands(const GemmSpec &spec,
                                const DnnlGemm *sameRhsAs);
  absl::Status makeArguments(ThreadArguments &arguments) const;

  dnnl_memory_desc_t lhsDesc, rhsDesc, plainRhsDesc, dstDesc, biasDesc;
  dnnl_memory_desc_t scratchDesc, packScratchDesc;
  bool packed = false, hasBias = false;
  uint64_t scratchSize = 0;
  Descriptor productDescriptor, packDescriptor;
  Primitive product, packing;
  std::vector<ThreadArguments> arguments;
};

absl::Status makeAttributes(bool accumulate, Attributes &attributes) {
  dnnl_primitive_attr_t attr;
  MESHWORK_RETURN_IF_ERROR(
      check(dnnl_primitive_attr_create(&attr), "primitive_attr_create"));
  attributes.reset(attr);
  MESHWORK_RETURN_IF_ERROR(check(
      dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user),
      "set_scratchpad_mode"));
  if (!accumulate)
    return absl::OkStatus();
  dnnl_post_ops_t chain;
  MESHWORK_RETURN_IF_ERROR(
      check(dnnl_post_ops_create(&chain), "post_ops_create"));
  PostOps postOps(chain);
  MESHWORK_RETURN_IF_ERROR(
      check(dnnl_post_ops_append_sum(chain, 1.0f), "post_ops_append_sum"));
  return check(dnnl_primitive_attr_set_post_ops(attr, chain), "set_post_ops");
}

absl::Status DnnlGemm::describeOperands(const GemmSpec &spec,
                                        const DnnlGemm *sameRhsAs) {
  MESHWORK_RETURN_IF_ERROR(
      check(dnnl::describe(lhsDesc, spec.m, spec.k, spec.type,
                           spec.lhsTransposed, spec.lhsLd),
            "describing lhs"));
  MESHWORK_RETURN_IF_ERROR(
      check(dnnl::describe(plainRhsDesc, spec.k, spec.n, spec.type,
                           spec.rhsTransposed, spec.rhsLd),
            "describing rhs"));
  MESHWORK_RETURN_IF_ERROR(check(
      dnnl::describe(dstDesc, spec.m, spec.n, spec.dstType, false, spec.dstLd),
      "describing dst"));
  hasBias = spec.hasBias;
  if (hasBias)
    MESHWORK_RETURN_IF_ERROR(
        check(dnnl::describe(biasDesc, 1, spec.n, spec.biasType, false, spec.n),
              "describing bias"));
  packed = spec.packRhs;
  if (!packed) {
    rhsDesc = plainRhsDesc;
    return absl::OkStatus();
  }
  if (sameRhsAs) {
    rhsDesc = sameRhsAs->rhsDesc;
    return absl::OkStatus();
  }
  dnnl_dims_t dims = {spec.k, spec.n};
  return check(dnnl_memory_desc_init_by_tag(
                   &rhsDesc, 2, dims, typeOf(spec.type), dnnl_format_tag_any),
               "describing packed rhs");
}

absl::Status DnnlGemm::describe(const GemmSpec &spec,
                                const DnnlGemm *sameRhsAs) {
  MESHWORK_RETURN_IF_ERROR(describeOperands(spec, sameRhsAs));
  Attributes attributes;
  MESHWORK_RETURN_IF_ERROR(makeAttributes(spec.accumulate, attributes));
  dnnl_matmul_desc_t matmul;
  MESHWORK_RETURN_IF_ERROR(
      check(dnnl_matmul_desc_init(&matmul, &lhsDesc, &rhsDesc,
                                  hasBias ? &biasDesc : nullptr, &dstDesc),
            "matmul_desc_init"));
  dnnl_primitive_desc_t created;
  MESHWORK_RETURN_IF_ERROR(
      check(dnnl_primitive_desc_create(&created, &matmul, attributes.get(),
                                       engine(), nullptr),
            "choosing a matrix product"));
  productDescriptor.reset(created);
  rhsDesc = *dnnl_primitive_desc_query_md(created, dnnl_query_weights_md, 0);
  scratchDesc =
      *dnnl_primitive_desc_query_md(created, dnnl_query_scratchpad_md, 0);
  scratchSize = dnnl_memory_desc_get_size(&scratchDesc);
  if (!packed)
    return absl::OkStatus();
  MESHWORK_RETURN_IF_ERROR(makeAttributes(false, attributes));
  MESHWORK_RETURN_IF_ERROR(check(
      dnnl_reorder_primitive_desc_create(&created, &plainRhsDesc, engine(),
                                         &rhsDesc, engine(), attributes.get()),
      "choosing how to pack rhs"));
  packDescriptor.reset(created);
  packScratchDesc =
      *dnnl_primitive_desc_query_md(created, dnnl_query_scratchpad_md, 0);
  scratchSize = std::max<uint64_t>(scratchSize,
                                   dnnl_memory_desc_get_size(&packScratchDesc));
  return absl::OkStatus();
}

absl::Status DnnlGemm::makeArguments(ThreadArguments &args) const {
  dnnl_stream_t stream;
  MESHWORK_RETURN_IF_ERROR(
      check(dnnl_stream_create(&stream, engine(), dnnl_stream_default_flags),
            "stream_create"));
  args.stream.reset(stream);
  auto make = [](Memory &memory, const dnnl_memory_desc_t &desc) {
    dnnl_memory_t created;
    dnnl_status_t status =
        dnnl_memory_create(&created, &desc, engine(), DNNL_MEMORY_NONE);
    if (status == dnnl_success)
      memory.reset(created);
    return check(status, "memory_create");
  };
  MESHWORK_RETURN_IF_ERROR(make(args.lhs, lhsDesc));
  MESHWORK_RETURN_IF_ERROR(make(args.rhs, rhsDesc));
  MESHWORK_RETURN_IF_ERROR(make(args.dst, dstDesc));
  MESHWORK_RETURN_IF_ERROR(make(args.scratch, scratchDesc));
  if (hasBias)
    MESHWORK_RETURN_IF_ERROR(make(args.bias, biasDesc));
  if (!packed)
    return absl::OkStatus();
  MESHWORK_RETURN_IF_ERROR(make(args.plainRhs, plainRhsDesc));
  return make(args.packScratch, packScratchDesc);
}

absl::Status DnnlGemm::generate(int threads) {
  useOneThread();
  dnnl_primitive_t created;
  MESHWORK_RETURN_IF_ERROR(
      check(dnnl_primitive_create(&created, productDescriptor.get()),
            "generating a matrix product"));
  product.reset(created);
  if (packed) {
    MESHWORK_RETURN_IF_ERROR(
        check(dnnl_primitive_create(&created, packDescriptor.get()),
              "generating the packing of rhs"));
    packing.reset(created);
  }
  arguments.resize(threads);
  for (ThreadArguments &args : arguments)
    MESHWORK_RETURN_IF_ERROR(makeArguments(args));
  return absl::OkStatus();
}

void DnnlGemm::pack(int thread, const std::byte *rhs, std::byte *packedRhs,
                    std::byte *scratch) {
  useOneThread();
  const ThreadArguments &args = arguments[thread];
  args.set(args.plainRhs, rhs);
  args.set(args.rhs, packedRhs);
  args.set(args.packScratch, scratch);
  dnnl_exec_arg_t list[] = {{DNNL_ARG_FROM, args.plainRhs.get()},
                            {DNNL_ARG_TO, args.rhs.get()},
                            {DNNL_ARG_SCRATCHPAD, args.packScratch.get()}};
  dnnl_primitive_execute(packing.get(), args.stream.get(), 3, list);
}

void DnnlGemm::run(int thread, const std::byte *lhs, const std::byte *rhs,
                   std::byte *dst, const std::byte *bias, std::byte *scratch,
                   float) {
  useOneThread();
  const ThreadArguments &args = arguments[thread];
  args.set(args.lhs, lhs);
  args.set(args.rhs, rhs);
  args.set(args.dst, dst);
  args.set(args.bias, bias);
  args.set(args.scratch, scratch);
  dnnl_exec_arg_t list[] = {{DNNL_ARG_SRC, args.lhs.get()},
                            {DNNL_ARG_WEIGHTS, args.rhs.get()},
                            {DNNL_ARG_DST, args.dst.get()},
                            {DNNL_ARG_SCRATCHPAD, args.scratch.get()},
                            {DNNL_ARG_BIAS, args.bias.get()}};
  // With these arguments the CPU engine has nothing left that can fail.
  dnnl_primitive_execute(product.get(), args.stream.get(), hasBias ? 5 : 4,
                         list);
}

} // namespace

absl::StatusOr<std::unique_ptr<Gemm>> Gemm::create(const GemmSpec &spec,
                                                   const Gemm *sameRhsAs) {
  if (spec.inCache && spec.type == plan::DType::f32)
    return createF32Gemm(spec);
  useOneThread();
  if (!engine())
    return absl::InternalError("oneDNN: no CPU engine");
  if (hasTileGemm(spec.type))
    return createTileGemm(spec);
  if (plan::isFloat8(spec.type) ||
      (spec.type == plan::DType::bf16 && !hasFastBf16()))
    return createConvertingGemm(spec);
  auto gemm = std::make_unique<DnnlGemm>();
  MESHWORK_RETURN_IF_ERROR(
      gemm->describe(spec, static_cast<const DnnlGemm *>(sameRhsAs)));
  return gemm;
}

} // namespace meshwork::runtime::cpu
