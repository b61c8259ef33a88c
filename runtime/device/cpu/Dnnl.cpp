#include "runtime/device/cpu/Dnnl.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace meshwork::runtime::cpu::dnnl {

dnnl_engine_t engine() {
  // Immutable and never destroyed: primitives may outlive any static object.
  static dnnl_engine_t shared = [] {
    dnnl_engine_t created = nullptr;
    return dnnl_engine_create(&created, dnnl_cpu, 0) == dnnl_success ? created
                                                                     : nullptr;
  }();
  return shared;
}

void useOneThread() {
  // Whichever OpenMP the library came with; none at all is fine too. The
  // number of threads is a property of each calling thread.
  static auto *setThreads = reinterpret_cast<void (*)(int)>(
      dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  static thread_local bool done = false;
  if (done)
    return;
  if (setThreads)
    setThreads(1);
  done = true;
}

bool hasFastBf16() {
  constexpr int wanted = dnnl_cpu_isa_avx512_core_bf16;
  return (dnnl_get_effective_cpu_isa() & wanted) == wanted;
}

dnnl_data_type_t typeOf(plan::DType type) {
  switch (type) {
  case plan::DType::f32:
    return dnnl_f32;
  case plan::DType::bf16:
    return dnnl_bf16;
  case plan::DType::i32:
    return dnnl_s32;
  case plan::DType::e4m3:
  case plan::DType::e5m2: // Newer versions know these two.
  case plan::DType::i8:
    break;
  }
  return dnnl_data_type_undef;
}

dnnl_status_t describe(dnnl_memory_desc_t &desc, int64_t rows, int64_t columns,
                       plan::DType type, bool transposed, int64_t ld) {
  dnnl_dims_t dims = {rows, columns};
  dnnl_dims_t strides = {transposed ? 1 : ld, transposed ? ld : 1};
  return dnnl_memory_desc_init_by_strides(&desc, 2, dims, typeOf(type),
                                          strides);
}

absl::Status check(dnnl_status_t status, const char *call) {
  if (status == dnnl_success)
    return absl::OkStatus();
  std::string text = absl::StrCat("oneDNN: ", call, " failed with status ",
                                  static_cast<int>(status));
  return status == dnnl_unimplemented ? absl::UnimplementedError(text)
                                      : absl::InternalError(text);
}

} // namespace meshwork::runtime::cpu::dnnl
