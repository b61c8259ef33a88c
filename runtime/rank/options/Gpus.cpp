#include "runtime/rank/options/Groups.h"

namespace meshwork::runtime {
namespace {
const OptionRow gpuRows[] = {
    {.name = "--share-gpu",
     .valueName = "",
     .help = "Run all ranks on one GPU: slow, to check a plan",
     .field = MESHWORK_FIELD(shareGpu),
     .isShared = true},
    {.name = "--tune-matmuls",
     .valueName = "",
     .help =
         "Time each product's algorithms, and who runs attention, on a "
         "GPU and keep the fastest, for later runs too: faster, but bits may "
         "differ from run to run",
     .field = MESHWORK_FIELD(tuneMatmuls),
     .isShared = true,
     .decidesNumbers = true},
    {.name = "--cudnn-attention",
     .valueName = "",
     .help = "Run attention by cuDNN (9.11 or newer) where it can: the last "
             "bits of gradients differ from run to run",
     .field = MESHWORK_FIELD(cudnnAttention),
     .isShared = true,
     .decidesNumbers = true},
    {.name = "--wgmma-attention",
     .valueName = "",
     .help = "End the run where a GPU cannot use the kernels for compute "
             "capability 9.0 (wgmma, TMA), which run bf16 attention there by "
             "default",
     .field = MESHWORK_FIELD(wgmmaAttention),
     .isShared = true,
     .decidesNumbers = true},
    {.name = "--no-wgmma-attention",
     .valueName = "",
     .help = "Run bf16 attention by the plan's kernels on GPUs of compute "
             "capability 9.0 too",
     .field = MESHWORK_FIELD(noWgmmaAttention),
     .excludes = "--wgmma-attention",
     .isShared = true,
     .decidesNumbers = true},
    {.name = "--nccl-max-ctas",
     .valueName = "N",
     .help = "Limit each collective beside the computation to N thread blocks; "
             "products beside it leave as many multiprocessors free. Default: "
             "NCCL decides, and products count on all",
     .field = MESHWORK_FIELD(ncclMaxCtas),
     .least = 1,
     .most = 64,
     .isShared = true,
     .decidesNumbers = true},
    {.name = "--nccl-register",
     .valueName = "",
     .help = "Register the plan's memory with NCCL (2.19 or newer), which then "
             "reads and writes it in place and may use NVLink SHARP; takes up "
             "to 512 MiB more for each piece of memory",
     .field = MESHWORK_FIELD(ncclRegister),
     .isShared = true},
    {.name = "--compare-cpu",
     .valueName = "",
     .help = "Run each instruction on the GPU and on the CPU from the same "
             "inputs, and compare; for plans made --with-cpu-code",
     .field = MESHWORK_FIELD(compareCpu),
     .isShared = true},
    {.name = "--synchronous",
     .valueName = "",
     .help = "Wait after each instruction on a GPU: slow, names the one that "
             "fails",
     .field = MESHWORK_FIELD(synchronous),
     .isShared = true},
};
} // namespace

OptionGroup gpuOptions() { return {"GPUs", gpuRows}; }

} // namespace meshwork::runtime
