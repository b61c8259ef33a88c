#include "runtime/device/cuda/Gpu.h"
#include "absl/strings/str_cat.h"
#include "lib/Plan/StatusMacros.h"
#include "lib/Plan/Views.h"
#include "meshwork/Plan/Frame.h"
#include <algorithm>

namespace meshwork::runtime::cuda {
namespace {
/// More needs the attribute that allows it (CUDA programming guide).
constexpr uint32_t sharedBytesByDefault = 48 << 10;
constexpr size_t logBytes = 4096;

std::string nameOf(const plan::Image &image) {
  return absl::StrCat(plan::quote(image.arch()), " (",
                      plan::EnumNameImageKind(image.kind()), ")");
}

std::string codeNameOf(const plan::Image &image) {
  uint64_t hash = XXH3_64bits(image.code()->data(), image.code()->size());
  return absl::StrCat(image.arch()->str(), " ",
                      absl::Hex(hash, absl::kZeroPad16));
}
} // namespace

bool runsOn(std::string_view arch, plan::ImageKind kind, int major, int minor) {
  if (arch.substr(0, 3) != "sm_")
    return false;
  arch.remove_prefix(3);
  bool exact = !arch.empty() && arch.back() == 'a';
  if (exact)
    arch.remove_suffix(1);
  int number = 0;
  for (char digit : arch) {
    if (digit < '0' || digit > '9' || number > 999)
      return false;
    number = number * 10 + (digit - '0');
  }
  int have = major * 10 + minor;
  if (exact || number == 0)
    return number == have;
  return number <= have &&
         (kind == plan::ImageKind::ptx || number / 10 == major);
}

absl::StatusOr<std::unique_ptr<Gpu>> Gpu::open(const Driver &driver,
                                               int ordinal) {
  std::unique_ptr<Gpu> gpu(new Gpu(driver, ordinal));
  MESHWORK_RETURN_IF_ERROR(gpu->start());
  return gpu;
}

absl::StatusOr<std::unique_ptr<Gpu>>
Gpu::open(const Driver &driver, int ordinal, const plan::Plan &plan) {
  std::unique_ptr<Gpu> gpu;
  MESHWORK_ASSIGN_OR_RETURN(gpu, open(driver, ordinal));
  MESHWORK_RETURN_IF_ERROR(gpu->loadCode(plan));
  MESHWORK_RETURN_IF_ERROR(gpu->findKernels(plan));
  return gpu;
}

Gpu::~Gpu() {
  if (!context)
    return;
  (void)api.contextSetCurrent(context);
  if (module)
    (void)api.moduleUnload(module);
  (void)api.primaryContextRelease(handle);
}

absl::StatusOr<int> Gpu::read(int attribute) const {
  int value = 0;
  MESHWORK_RETURN_IF_ERROR(
      api.check(api.deviceGetAttribute(&value, attribute, handle),
                "reading an attribute of the GPU"));
  return value;
}

absl::Status Gpu::start() {
  MESHWORK_RETURN_IF_ERROR(
      api.check(api.deviceGet(&handle, number), "finding the GPU"));
  char text[256] = "";
  MESHWORK_RETURN_IF_ERROR(api.check(
      api.deviceGetName(text, sizeof(text), handle), "reading its name"));
  name = text;
  absl::StatusOr<int> high = read(attribute::computeMajor);
  MESHWORK_RETURN_IF_ERROR(high.status());
  absl::StatusOr<int> low = read(attribute::computeMinor);
  MESHWORK_RETURN_IF_ERROR(low.status());
  major = *high;
  minor = *low;
  MESHWORK_RETURN_IF_ERROR(api.check(api.primaryContextRetain(&context, handle),
                                     "starting the GPU"));
  return makeCurrent();
}

absl::Status Gpu::makeCurrent() const {
  return api.check(api.contextSetCurrent(context), "choosing the GPU");
}

std::string Gpu::describe() const {
  return absl::StrCat(name, " (compute capability ", major, ".", minor, ")");
}

absl::StatusOr<uint64_t> Gpu::freeBytes() const {
  size_t free = 0, total = 0;
  MESHWORK_RETURN_IF_ERROR(makeCurrent());
  MESHWORK_RETURN_IF_ERROR(api.check(api.memoryGetInfo(&free, &total),
                                     "asking the GPU for its memory"));
  return free;
}

absl::Status Gpu::loadImage(const plan::Image &image) {
  std::string log(logBytes, '\0');
  int options[] = {jitOption::errorLogBuffer, jitOption::errorLogBufferBytes};
  void *values[] = {log.data(), reinterpret_cast<void *>(log.size())};
  Result result =
      api.moduleLoad(&module, image.code()->data(), 2, options, values);
  log.resize(log.find('\0') == std::string::npos ? log.size() : log.find('\0'));
  absl::Status status =
      api.check(result, absl::StrCat("loading the code for ", nameOf(image)));
  if (status.ok() || log.empty())
    return status;
  return absl::Status(status.code(), absl::StrCat(status.message(), ": ", log));
}

absl::Status Gpu::loadCode(const plan::Plan &plan) {
  const auto &images = plan::orEmpty(plan.images());
  std::string known, said;
  for (plan::ImageKind kind : {plan::ImageKind::cubin, plan::ImageKind::ptx})
    // The newest comes last, and is the fastest.
    for (uint32_t i = images.size(); i-- > 0;) {
      const plan::Image &image = *images.Get(i);
      if (image.kind() != kind)
        continue;
      absl::StrAppend(&known, known.empty() ? "" : ", ", nameOf(image));
      if (!runsOn(image.arch()->string_view(), kind, major, minor))
        continue;
      absl::Status loaded = loadImage(image);
      if (loaded.ok()) {
        code = codeNameOf(image);
        return loaded;
      }
      absl::StrAppend(&said, "; ", loaded.message());
    }
  return absl::FailedPreconditionError(absl::StrCat(
      "no code of the plan runs on GPU ", number, ", ", describe(), ": it has ",
      known.empty() ? "none" : known, said,
      ". Compile it with [target] arch = \"native\", or the arch of this GPU"));
}

absl::Status Gpu::findKernels(const plan::Plan &plan) {
  for (const plan::Kernel *kernel : plan::orEmpty(plan.kernels())) {
    Function function = nullptr;
    std::string what =
        absl::StrCat("finding kernel ", plan::quote(kernel->symbol()));
    MESHWORK_RETURN_IF_ERROR(api.check(
        api.moduleGetFunction(&function, module, kernel->symbol()->c_str()),
        what));
    if (kernel->shared_bytes() > sharedBytesByDefault)
      MESHWORK_RETURN_IF_ERROR(api.check(
          api.functionSetAttribute(function,
                                   functionAttribute::maxDynamicSharedBytes,
                                   static_cast<int>(kernel->shared_bytes())),
          absl::StrCat("giving ", kernel->shared_bytes(),
                       " bytes of shared memory to kernel ",
                       plan::quote(kernel->symbol()))));
    kernels.push_back(function);
  }
  return absl::OkStatus();
}

} // namespace meshwork::runtime::cuda
