// Owners for oneDNN's C handles; the C++ interface throws.
#pragma once

#include <memory>
#include <type_traits>

#include <oneapi/dnnl/dnnl.h>

#include "absl/status/status.h"
#include "meshwork/Plan/Plan.h"

namespace meshwork::runtime::cpu::dnnl {

template <typename Handle, dnnl_status_t (*destroy)(Handle)> struct Deleter {
  using pointer = Handle;
  void operator()(Handle handle) const { destroy(handle); }
};
template <typename Handle, dnnl_status_t (*destroy)(Handle)>
using Owned =
    std::unique_ptr<std::remove_pointer_t<Handle>, Deleter<Handle, destroy>>;

using Attributes = Owned<dnnl_primitive_attr_t, dnnl_primitive_attr_destroy>;
using PostOps = Owned<dnnl_post_ops_t, dnnl_post_ops_destroy>;
using Descriptor = Owned<dnnl_primitive_desc_t, dnnl_primitive_desc_destroy>;
using Primitive = Owned<dnnl_primitive_t, dnnl_primitive_destroy>;
using Memory = Owned<dnnl_memory_t, dnnl_memory_destroy>;
using Stream = Owned<dnnl_stream_t, dnnl_stream_destroy>;

/// The CPU engine of the process; null when the library cannot make one.
dnnl_engine_t engine();

/// Keeps the library on the calling thread. Cheap after a thread's first call.
void useOneThread();

/// True when products of bf16 run on bf16 instructions here.
bool hasFastBf16();

dnnl_data_type_t typeOf(plan::DType type);

/// A row-major [rows, columns] matrix; `transposed` means stored the other way
/// round. `ld` is the distance of rows as stored.
dnnl_status_t describe(dnnl_memory_desc_t &desc, int64_t rows, int64_t columns,
                       plan::DType type, bool transposed, int64_t ld);

/// OK, or an error that repeats the failed call.
absl::Status check(dnnl_status_t status, const char *call);

} // namespace meshwork::runtime::cpu::dnnl
