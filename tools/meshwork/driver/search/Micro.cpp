#include "tools/meshwork/driver/search/Micro.h"

#include "lib/Cost/OfSpec.h"
#include "passes/pipelines/Pipelines.h"
#include "tools/meshwork/driver/Choices.h"

using namespace mlir;

namespace meshwork::driver {
namespace {

using Size = Tried<uint32_t>; // of a microbatch

class Sizes {
public:
  Sizes(uint32_t most, const SpecWith &specWith,
        const std::vector<std::string> &more)
      : most(most), specWith(specWith), more(more) {}

  /// The next larger divisor, unless the last is refused or needs too much:
  /// more sequences need more memory.
  std::optional<uint32_t> next(ArrayRef<Size> tried) {
    if (!tried.empty() && !fits(tried.back().trial, limit()))
      return std::nullopt;
    for (uint32_t size = last + 1; size <= most; ++size)
      if (most % size == 0 && hasSpec(size))
        return last = size;
    return std::nullopt;
  }

  uint64_t limit() const { return cost::memoryLimit(*spec)->bytes; }

  uint32_t last = 0;              // that was named
  std::optional<spec::Spec> spec; // with it

private:
  /// Groups of experts.group may not divide it, say.
  bool hasSpec(uint32_t size) {
    std::vector<std::string> settings = more;
    settings.push_back("batch.micro=" + std::to_string(size));
    std::optional<spec::Spec> with = specWith(settings);
    if (!with)
      return false;
    spec = std::move(with);
    return true;
  }

  uint32_t most;
  const SpecWith &specWith;
  const std::vector<std::string> &more;
};
} // namespace

Size bestMicro(ModuleOp model, uint32_t most, const SpecWith &specWith,
               const std::vector<std::string> &more) {
  ScopedDiagnosticHandler later(model.getContext(), [](mlir::Diagnostic &) {});
  Copies copies{model, pipelines::phases().front().name, tryChoosing};
  Sizes sizes(most, specWith, more);
  auto tried = tryWays<uint32_t>(
      [&](ArrayRef<Size> before) { return sizes.next(before); },
      [&](const uint32_t &) { return copies.compile(*sizes.spec); });
  if (failed(tried))
    return {sizes.last, std::nullopt};
  if (tried->empty())
    return {1, std::nullopt};
  const Size *best = bestOf(*tried, sizes.limit());
  return best ? *best : tried->front();
}

} // namespace meshwork::driver
