// A spec; its first line is an override, as `--set` takes it.
#include "lib/Spec/Spec.h"
#include "test/Fuzz/Fuzz.h"

namespace meshwork::fuzz {

void accept(std::string_view input) {
  size_t end = std::min(input.find('\n'), input.size());
  std::string first(input.substr(0, end));
  spec::Result result =
      spec::parse(std::string(input.substr(end)), "spec.toml",
                  first.empty() ? std::vector<std::string>{}
                                : std::vector<std::string>{first});
  textOf(result.diagnostics);
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
name = "adamw"
beta1 = 0.9
clip_grad_norm = 1.0
)",
      R"(
[mesh]
axes = ["dp=1"]
[batch]
global = 1
[memory]
recompute = ["none", "full"]
[target]
device = "cuda"
arch = "sm_90a"
[overlap]
collectives = "on"
bucket_mib = 25
[budget]
"step.all_reduce" = 3
)"};
  return all;
}

} // namespace meshwork::fuzz
