// Writes a plan.
#include "lib/Target/PlanWriter.h"

#include "lib/Target/CpuObject.h"
#include "lib/Target/ProgramTables.h"
#include "dialects/mesh/Mesh.h"
#include "meshwork/Plan/Frame.h"
#include "passes/codegen/KernelSpecs.h"
#include "runtime/device/cpu/Prepare.h"

using namespace mlir;

namespace meshwork::target {
namespace {

constexpr StringRef producer = "meshwork 0.1.0";

/// Fills in what the libraries need, which shows only in a finished plan.
LogicalResult addWorkspaces(ModuleOp module, plan::PlanT &plan) {
  flatbuffers::FlatBufferBuilder builder(1 << 20);
  for (auto &program : plan.programs) {
    builder.Clear();
    builder.Finish(plan::Program::Pack(builder, program.get()));
    absl::StatusOr<uint64_t> bytes = runtime::workspaceBytesPerThread(*flatbuffers::GetRoot<plan::Program>(builder.GetBufferPointer()));
    if (!bytes.ok())
      return module.emitError() << std::string(bytes.status().message());
    program->workspace_bytes_per_thread = *bytes;
  }
  return success();
}

class Writer {
public:
  Writer(ModuleOp module, const spec::Spec &spec, const CpuTarget &target, const PlanSource &source)
      : module(module), spec(spec), target(target), source(source) {}

  FailureOr<std::vector<char>> run() {
    addMesh();
    if (failed(addKernels()) || failed(addPrograms()))
      return failure();
    describe();
    return pack();
  }

private:
  LogicalResult addKernels() {
    codegen::loadKernelDialects(*module.getContext());
    OwningOpRef<ModuleOp> code(ModuleOp::create(module.getLoc()));
    for (const codegen::KernelSpec &kernel : codegen::kernelSpecsOf(module)) {
      if (failed(codegen::emitKernel(kernel, *code, target)))
        return failure();
      auto entry = std::make_unique<plan::KernelT>();
      entry->symbol = kernel.symbol;
      entry->num_args = kernel.inputs.size() + kernel.results.size();
      kernels[kernel.symbol] = plan.kernels.size();
      plan.kernels.push_back(std::move(entry));
    }
    FailureOr<std::vector<char>> object = compileToSharedObject(*code, target);
    if (failed(object))
      return failure();
    plan.code.assign(object->begin(), object->end());
    return success();
  }

  void addMesh() {
    mesh::MeshAttr mesh = mesh::meshOf(module);
    for (auto [i, name, size] : llvm::enumerate(mesh.getNames(), mesh.getSizes())) {
      axes[name.getValue()] = i;
      auto entry = std::make_unique<plan::AxisT>();
      entry->name = name.str();
      entry->size = size;
      plan.mesh.push_back(std::move(entry));
    }
  }

  LogicalResult addPrograms() {
    for (auto program : module.getOps<schedule::ProgramOp>()) {
      if (!program.getArenaBytes())
        return program.emitOpError("has no arena; run -memory-plan-arena");
      plan.programs.push_back(ProgramTables(program, kernels, axes).build());
    }
    plan.program_of_rank.push_back(0);
    return success();
  }

  void describe() {
    plan.producer = producer;
    plan.device = plan::Device::cpu;
    plan.arch = target.arch;
    plan.cpu_features = target.requiredFeatures;
    plan.global_batch = spec.batch.global;
    plan.micro_batch = spec.batch.micro;
    plan.sequence = spec.batch.sequence;
    plan.microbatches = spec.microbatches();
    for (const spec::ShardRule &rule : spec.shard)
      if (rule.dim == "batch")
        for (const std::string &axis : rule.axes)
          for (auto [i, part] : llvm::enumerate(mesh::meshOf(module).getNames()))
            if (mesh::wholeAxis(part.getValue()) == axis)
              plan.batch_axes.push_back(i);
    plan.vocabulary = source.vocabulary;
    plan.compute = spec.compute == spec::Type::bf16 ? plan::DType::bf16 : plan::DType::f32;
    plan.beta1 = static_cast<float>(spec.optimizer.beta1);
    plan.beta2 = static_cast<float>(spec.optimizer.beta2);
    if (auto flops = module->getAttrOfType<FloatAttr>("transformer.model_flops"))
      plan.model_flops_per_step = flops.getValueAsDouble() * spec.microbatches();
    for (auto &parameter : plan.programs[0]->parameters) {
      uint64_t elements = 1;
      for (int64_t size : parameter->file_shape)
        elements *= size;
      plan.parameter_count += elements;
    }
    plan.source_name = source.name;
    plan.source_ir = source.ir;
    plan.spec = spec::print(spec);
    plan.provenance = provenanceTables(mesh::provenanceOf(module), spec, source.origins);
    std::string both = plan.source_ir + plan.spec;
    XXH128_canonical_t digest;
    XXH128_canonicalFromHash(&digest, XXH3_128bits(both.data(), both.size()));
    plan.source_hash = llvm::toHex(ArrayRef<uint8_t>(digest.digest), /*LowerCase=*/true);
  }

  FailureOr<std::vector<char>> pack() {
    if (failed(addWorkspaces(module, plan)))
      return failure();
    flatbuffers::FlatBufferBuilder builder(1 << 20);
    builder.Finish(plan::Plan::Pack(builder, &plan), plan::PlanIdentifier());
    if (builder.GetSize() > plan::maxPayloadBytes)
      return module.emitError() << "the plan has " << builder.GetSize() << " bytes, at most " << plan::maxPayloadBytes << " are possible";
    std::vector<char> file(plan::frameBytes + builder.GetSize());
    plan::writeFrame(builder.GetBufferPointer(), builder.GetSize(), reinterpret_cast<unsigned char *>(file.data()));
    std::memcpy(file.data() + plan::frameBytes, builder.GetBufferPointer(), builder.GetSize());
    return file;
  }

  ModuleOp module;
  const spec::Spec &spec;
  const CpuTarget &target;
  const PlanSource &source;
  plan::PlanT plan;
  llvm::StringMap<uint32_t> kernels, axes;
};

/// The programs alone, to be measured.
FailureOr<plan::PlanT> programsOf(ModuleOp module) {
  llvm::StringMap<uint32_t> kernels, axes;
  for (const codegen::KernelSpec &kernel : codegen::kernelSpecsOf(module))
    kernels[kernel.symbol] = kernels.size();
  for (auto [i, name] : llvm::enumerate(mesh::meshOf(module).getNames()))
    axes[name.getValue()] = i;
  plan::PlanT plan;
  for (auto program : module.getOps<schedule::ProgramOp>())
    plan.programs.push_back(ProgramTables(program, kernels, axes).build());
  if (failed(addWorkspaces(module, plan)))
    return failure();
  return plan;
}
} // namespace

FailureOr<uint64_t> peakBytes(ModuleOp module) {
  FailureOr<plan::PlanT> plan = programsOf(module);
  if (failed(plan))
    return failure();
  uint64_t most = 0;
  for (auto &program : plan->programs)
    most = std::max(most, program->arena_bytes + program->workspace_bytes_per_thread);
  return most;
}

FailureOr<std::vector<char>> writePlan(ModuleOp module, const spec::Spec &spec, const CpuTarget &target, const PlanSource &source) {
  return Writer(module, spec, target, source).run();
}

} // namespace meshwork::target
