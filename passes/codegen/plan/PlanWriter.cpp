// Writes a plan.
#include "passes/codegen/plan/PlanWriter.h"

#include "dialects/mesh/Mesh.h"
#include "dialects/transformer/Dims.h"
#include "dialects/transformer/Facts.h"
#include "lib/Plan/PlanFile.h"
#include "lib/Plan/ShareTables.h"
#include "lib/Spec/FilePath.h"
#include "meshwork/Plan/Frame.h"
#include "passes/codegen/KernelSpecs.h"
#include "passes/codegen/gpu/DeviceCall.h"
#include "runtime/device/cpu/Prepare.h"
#include "llvm/Support/Format.h"

using namespace mlir;

namespace meshwork::codegen {
namespace {

constexpr StringRef producer = "meshwork 0.1.0";

/// So many digits that it reads back as the same number.
std::string textOfDouble(double number) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.17g", number);
  return text;
}

/// Fills in the scratch of a GPU's instructions.
LogicalResult addGpuWorkspaces(ModuleOp module, plan::PlanT &plan) {
  for (auto [op, program] :
       llvm::zip_equal(module.getOps<schedule::ProgramOp>(), plan.programs)) {
    FailureOr<uint64_t> bytes = codegen::gpuWorkspaceBytes(op);
    if (failed(bytes))
      return failure();
    program->workspace_bytes_per_thread = *bytes;
  }
  return success();
}

/// Fills in what libraries need; of the CPU's it shows only in a finished plan.
LogicalResult addWorkspaces(ModuleOp module, spec::Device device,
                            plan::PlanT &plan) {
  if (device == spec::Device::cuda)
    return addGpuWorkspaces(module, plan);
  flatbuffers::FlatBufferBuilder builder(1 << 20);
  for (auto &program : plan.programs) {
    builder.Clear();
    builder.Finish(plan::Program::Pack(builder, program.get()));
    absl::StatusOr<uint64_t> bytes = runtime::workspaceBytesPerThread(
        *flatbuffers::GetRoot<plan::Program>(builder.GetBufferPointer()));
    if (!bytes.ok())
      return module.emitError() << std::string(bytes.status().message());
    program->workspace_bytes_per_thread = *bytes;
  }
  return success();
}

class Writer {
public:
  Writer(ModuleOp module, const spec::Spec &spec, const PlanTarget &target,
         const PlanSource &source)
      : module(module), spec(spec), target(target), source(source) {}

  FailureOr<std::vector<char>> run() {
    addMesh();
    if (failed(addKernels()) || failed(addPrograms()))
      return failure();
    describe();
    addReasons();
    return checked(pack(/*shares=*/true));
  }

  FailureOr<std::vector<char>> runWithoutCode() {
    addMesh();
    addCpuEntries(module, plan, kernels);
    plan.code = {0}; // the check looks no further than that there is some
    if (failed(addPrograms()))
      return failure();
    describe();
    addReasons();
    return checked(pack());
  }

  FailureOr<std::vector<char>> runToEstimate() {
    addMesh();
    addCpuEntries(module, plan, kernels);
    if (failed(addPrograms()))
      return failure();
    describe();
    if (!source.choices.empty()) {
      plan.provenance = std::make_unique<plan::ProvenanceT>();
      addChoices();
    }
    return pack();
  }

private:
  LogicalResult addKernels() {
    if (target.device() == spec::Device::cpu)
      return addCpuCode(module, *target.cpu, plan, kernels);
    if (failed(addCudaCode(module, target.gpus, plan, kernels)))
      return failure();
    return target.cpu ? addComparableCpuCode(module, *target.cpu, plan, kernels)
                      : success();
  }

  void addMesh() {
    axes = schedule::axisNumbers(module);
    plan.mesh = schedule::meshTable(module);
  }

  LogicalResult addPrograms() {
    for (auto program : module.getOps<schedule::ProgramOp>()) {
      if (!program.getArenaBytes())
        return program.emitOpError("has no arena; run -memory-plan-arena");
      plan.programs.push_back(
          schedule::ProgramTables(program, kernels, axes).build());
      if (!program.getAxis())
        continue;
      plan.program_axes = {axes.at(*program.getAxis())};
      plan.program_numbers.push_back(plan.program_numbers.size());
    }
    return success();
  }

  /// Those that several programs have count once, and what is not trained not
  /// at all.
  uint64_t countParameters() const {
    llvm::StringMap<uint64_t> elements;
    for (const auto &program : plan.programs)
      for (const auto &parameter : program->parameters) {
        if (llvm::none_of(parameter->states, [](const auto &state) {
              return state->role == plan::StateRole::gradient;
            }))
          continue;
        uint64_t &count = elements[parameter->name] = 1;
        for (int64_t size : parameter->shape)
          count *= size;
      }
    uint64_t all = 0;
    for (const auto &one : elements)
      all += one.second;
    return all;
  }

  void describe() {
    plan.producer = producer;
    bool isCpu = target.device() == spec::Device::cpu;
    plan.device = isCpu ? plan::Device::cpu : plan::Device::cuda;
    plan.arch = isCpu ? target.cpu->arch : spec.arch;
    plan.global_batch = spec.batch.global;
    plan.micro_batch = spec.batch.micro;
    plan.sequence = spec.batch.sequence;
    plan.microbatches = spec.microbatches();
    for (const spec::ShardRule &rule : spec.shard)
      if (rule.dim == transformer::dims::samples)
        for (const std::string &axis : rule.axes)
          for (auto [i, part] :
               llvm::enumerate(mesh::meshOf(module).getNames()))
            if (mesh::wholeAxis(part.getValue()) == axis)
              plan.batch_axes.push_back(i);
    plan.vocabulary = source.vocabulary;
    plan.compute =
        spec.compute == spec::Type::bf16 ? plan::DType::bf16 : plan::DType::f32;
    if (auto flops =
            module->getAttrOfType<FloatAttr>(transformer::facts::modelFlops))
      plan.model_flops_per_step =
          flops.getValueAsDouble() * spec.microbatches();
    plan.parameter_count = countParameters();
    if (auto attention = module->getAttrOfType<FloatAttr>(
            transformer::facts::palmAttentionFlops))
      plan.palm_flops_per_step =
          6.0 * static_cast<double>(plan.parameter_count) * spec.batch.global *
              spec.batch.sequence +
          attention.getValueAsDouble() * spec.microbatches();
    plan.source_name = spec::nameOf(source.name);
    plan.source_ir = source.ir;
    plan.spec = spec::print(spec);
    std::string both = plan.source_ir + plan.spec;
    XXH128_canonical_t digest;
    XXH128_canonicalFromHash(&digest, XXH3_128bits(both.data(), both.size()));
    plan.source_hash =
        llvm::toHex(ArrayRef<uint8_t>(digest.digest), /*LowerCase=*/true);
  }

  /// What `explain` tells of values; an estimate has none.
  void addReasons() {
    plan.provenance =
        provenanceTables(mesh::provenanceOf(module), spec, source.origins);
    if (plan.provenance)
      addChoices();
  }

  void addChoices() {
    for (const Choice &choice : source.choices) {
      annotate(choice.key, choice.value, choice.why);
      for (const auto &[value, ms] : choice.stepMs)
        annotate(choice.key + ".tried", value, textOfDouble(ms));
    }
  }

  void annotate(std::string key, std::string value, std::string place) {
    auto &made = plan.provenance->annotations.emplace_back(
        std::make_unique<plan::AnnotationT>());
    made->key = std::move(key);
    made->value = std::move(value);
    made->place = std::move(place);
  }

  /// `shares` for a file: what stays in memory is sooner made than made small.
  FailureOr<std::vector<char>> pack(bool shares = false) {
    if (failed(addWorkspaces(module, spec.device, plan)))
      return failure();
    flatbuffers::FlatBufferBuilder builder(1 << 20);
    builder.Finish(plan::Plan::Pack(builder, &plan), plan::PlanIdentifier());
    ArrayRef<uint8_t> payload(builder.GetBufferPointer(), builder.GetSize());
    std::optional<std::vector<uint8_t>> shared;
    if (shares)
      shared = plan::shareTables(*plan::GetPlan(payload.data()));
    if (shared)
      payload = *shared;
    if (payload.size() > plan::maxPayloadBytes)
      return module.emitError()
             << "the plan has " << payload.size() << " bytes, at most "
             << plan::maxPayloadBytes << " are possible";
    std::vector<char> file(plan::frameBytes + payload.size());
    plan::writeFrame(payload.data(), payload.size(),
                     reinterpret_cast<unsigned char *>(file.data()));
    llvm::copy(payload, file.begin() + plan::frameBytes);
    return file;
  }

  /// A plan that the launcher would refuse is an error of this compiler.
  FailureOr<std::vector<char>> checked(FailureOr<std::vector<char>> file) {
    if (failed(file))
      return failure();
    auto loaded = plan::PlanFile::fromBytes(
        {reinterpret_cast<const unsigned char *>(file->data()), file->size()});
    if (loaded.ok())
      return file;
    return module.emitError() << "the launcher would refuse the plan: "
                              << std::string(loaded.status().message());
  }

  ModuleOp module;
  const spec::Spec &spec;
  const PlanTarget &target;
  const PlanSource &source;
  plan::PlanT plan;
  KernelNumbers kernels;
  llvm::StringMap<uint32_t> axes;
};

/// The programs alone, to be measured.
FailureOr<plan::PlanT> programsOf(ModuleOp module, spec::Device device) {
  KernelNumbers kernels;
  llvm::StringMap<uint32_t> axes = schedule::axisNumbers(module);
  for (auto [i, launch] :
       llvm::enumerate(codegen::kernelSpecsOf(module).launches))
    kernels.ofLaunch[launch.symbol] = i;
  plan::PlanT plan;
  for (auto program : module.getOps<schedule::ProgramOp>())
    plan.programs.push_back(
        schedule::ProgramTables(program, kernels, axes).build());
  if (failed(addWorkspaces(module, device, plan)))
    return failure();
  return plan;
}
} // namespace

FailureOr<PlanTarget>
resolveTarget(const spec::Spec &spec, StringRef withCpu,
              function_ref<InFlightDiagnostic()> emitError) {
  PlanTarget target;
  if (spec.device == spec::Device::cuda) {
    FailureOr<std::vector<CudaTarget>> gpus =
        resolveCudaTargets(spec.arch, spec.fp8, emitError);
    if (failed(gpus))
      return failure();
    target.gpus = std::move(*gpus);
    if (withCpu.empty())
      return target;
  }
  FailureOr<CpuTarget> cpu = resolveCpuTarget(
      withCpu.empty() ? StringRef(spec.arch) : withCpu, emitError);
  if (failed(cpu))
    return failure();
  target.cpu = std::move(*cpu);
  return target;
}

FailureOr<std::vector<uint64_t>> programBytes(ModuleOp module,
                                              spec::Device device) {
  FailureOr<plan::PlanT> plan = programsOf(module, device);
  if (failed(plan))
    return failure();
  std::vector<uint64_t> bytes;
  for (auto &program : plan->programs)
    bytes.push_back(program->arena_bytes + program->workspace_bytes_per_thread);
  return bytes;
}

FailureOr<std::vector<char>> writePlan(ModuleOp module, const spec::Spec &spec,
                                       const PlanTarget &target,
                                       const PlanSource &source) {
  return Writer(module, spec, target, source).run();
}

FailureOr<std::vector<char>> planWithoutCode(ModuleOp module,
                                             const spec::Spec &spec,
                                             const PlanSource &source) {
  PlanTarget target;
  target.cpu = CpuTarget();
  return Writer(module, spec, target, source).runWithoutCode();
}

FailureOr<std::vector<char>> planToEstimate(ModuleOp module,
                                            const spec::Spec &spec,
                                            std::vector<Choice> choices) {
  PlanTarget target;
  if (spec.device == spec::Device::cpu)
    target.cpu = CpuTarget();
  else
    target.gpus.emplace_back();
  PlanSource source;
  source.choices = std::move(choices);
  return Writer(module, spec, target, source).runToEstimate();
}

} // namespace meshwork::codegen
