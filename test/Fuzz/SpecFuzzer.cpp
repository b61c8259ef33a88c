// A spec; its first line is an override, as `--set` takes it.
#include "lib/Spec/Spec.h"
#include "test/Fuzz/Fuzz.h"

namespace meshwork::fuzz {

bool accept(std::string_view input) {
  size_t end = std::min(input.find('\n'), input.size());
  std::string first(input.substr(0, end));
  spec::Result result =
      spec::parse(std::string(input.substr(end)), "spec.toml",
                  first.empty() ? std::vector<std::string>{}
                                : std::vector<std::string>{first});
  textOf(result.diagnostics);
  return result.spec.has_value();
}

const std::vector<std::string> &seeds() {
  static const std::vector<std::string> all = {
      R"(batch.micro=4
[mesh]
axes = ["dp=2", "tp=2"]
[batch]
global = 8
micro = 2
sequence = 64
[shard]
heads = ["tp"]
residual_sequence = ["tp"]
[zero]
stage = 3
axes = ["dp"]
[precision]
compute = "bf16"
master = "f32"
[optimizer]
kind = "adamw"
beta1 = 0.9
clip_grad_norm = 1.0
)",
      R"(
[mesh]
axes = ["dp=2"]
[batch]
global = 2
micro = 1
sequence = 8
[recompute]
policy = "full"
[target]
device = "cuda"
arch = "sm_90a"
[overlap]
collectives = "always"
bucket = "1 MiB"
[expect]
memory_per_rank = "20 GiB"
collectives = ["no all_gather", "all_reduce(dp) <= 3 per step in backward"]
)"};
  return all;
}

} // namespace meshwork::fuzz
