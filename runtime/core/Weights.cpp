#include "runtime/core/Weights.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_join.h"
#include "meshwork/Plan/Frame.h"
#include "meshwork/Runtime/ExitCode.h"
#include "runtime/core/Checked.h"
#include "runtime/core/IoStatus.h"
#include "runtime/core/Shards.h"
#include "runtime/io/Files.h"
#include "runtime/io/Init.h"
#include <algorithm>
#include <cstring>

namespace meshwork::runtime {
namespace {
constexpr size_t namedAtMost = 5;
constexpr int64_t chunkElements = 1 << 16;

/// "wte.weight, h.0.ln_1.weight and 7 more".
std::string some(const std::vector<std::string> &names) {
  size_t shown = std::min(names.size(), namedAtMost);
  std::string text = absl::StrJoin(names.begin(), names.begin() + shown, ", ");
  if (names.size() > shown)
    absl::StrAppend(&text, " and ", names.size() - shown, " more");
  return text;
}

std::vector<uint64_t> fileShape(const plan::Parameter &parameter) {
  return {orEmpty(parameter.file_shape()).begin(),
          orEmpty(parameter.file_shape()).end()};
}

std::string shapeText(const std::vector<uint64_t> &shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ","), "]");
}

float *f32At(const Rank &rank, uint32_t view) {
  return reinterpret_cast<float *>(rank.data(view));
}

uint16_t toBf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return static_cast<uint16_t>(bits >> 16 | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

float fromBf16(uint16_t value) {
  uint32_t bits = uint32_t{value} << 16;
  float wide;
  std::memcpy(&wide, &bits, sizeof(wide));
  return wide;
}

/// weight = master in the weight's type, over elements [begin, end).
void roundMaster(const Rank &rank, const plan::Parameter &parameter,
                 int64_t begin, int64_t end) {
  const float *master = f32At(rank, masterOf(parameter).view());
  std::byte *weight = rank.data(weightView(parameter));
  if (rank.view(weightView(parameter)).dtype == plan::DType::bf16) {
    uint16_t *to = reinterpret_cast<uint16_t *>(weight);
    for (int64_t i = begin; i < end; ++i)
      to[i] = toBf16(master[i]);
  } else if (weight != reinterpret_cast<const std::byte *>(master)) {
    std::memcpy(weight + begin * 4, master + begin,
                static_cast<size_t>(end - begin) * 4);
  }
}

/// Calls `body(rank, parameter)` for the first rank that holds each name.
void forEachParameter(
    const std::vector<std::unique_ptr<Rank>> &ranks,
    absl::FunctionRef<void(const Rank &, const plan::Parameter &)> body) {
  absl::flat_hash_set<std::string> seen;
  absl::flat_hash_set<const plan::Program *> programs;
  for (const std::unique_ptr<Rank> &rank : ranks)
    if (programs.insert(&rank->program()).second)
      for (const plan::Parameter *parameter :
           orEmpty(rank->program().parameters()))
        if (seen.insert(parameter->name()->str()).second)
          body(*rank, *parameter);
}
} // namespace

absl::Status matchWeights(const plan::Plan &plan,
                          const SafeTensorsReader &file) {
  std::vector<std::string> missing, extra, reshaped;
  absl::flat_hash_set<std::string> known;
  for (const plan::Program *program : *plan.programs())
    for (const plan::Parameter *parameter : orEmpty(program->parameters())) {
      if (!known.insert(parameter->name()->str()).second)
        continue;
      const TensorInfo *info = file.find(parameter->name()->str());
      if (!info)
        missing.push_back(quote(parameter->name()));
      else if (info->shape != fileShape(*parameter))
        reshaped.push_back(absl::StrCat(
            quote(parameter->name()), " is ", shapeText(info->shape),
            " in the file, the plan has ", shapeText(fileShape(*parameter))));
    }
  for (const std::string &name : file.names())
    if (!known.contains(name))
      extra.push_back(quote(std::string_view(name)));
  if (missing.empty() && extra.empty() && reshaped.empty())
    return absl::OkStatus();
  std::vector<std::string> parts;
  if (!missing.empty())
    parts.push_back("missing: " + some(missing));
  if (!extra.empty())
    parts.push_back("not in the plan: " + some(extra));
  if (!reshaped.empty())
    parts.push_back("of another shape: " + some(reshaped));
  return bad("the weights are of another model; ", absl::StrJoin(parts, "; "));
}

absl::Status placeWeights(Rank &rank, const SafeTensorsReader *file,
                          uint64_t seed) {
  for (const plan::Parameter *parameter :
       orEmpty(rank.program().parameters())) {
    int64_t elements = rank.view(masterOf(*parameter).view()).elements;
    float *master = f32At(rank, masterOf(*parameter).view());
    if (file) {
      absl::Status status = file->read(parameter->name()->str(),
                                       {master, static_cast<size_t>(elements)});
      if (!status.ok())
        return fromIo(status);
    }
    int64_t chunks = (elements + chunkElements - 1) / chunkElements;
    rank.team().parallelFor(chunks, [&](int64_t first, int64_t last, int) {
      int64_t begin = first * chunkElements;
      int64_t end = std::min(elements, last * chunkElements);
      if (!file)
        initialize(*parameter, seed,
                   {master + begin, static_cast<size_t>(end - begin)},
                   static_cast<uint64_t>(begin));
      roundMaster(rank, *parameter, begin, end);
    });
  }
  return absl::OkStatus();
}

absl::Status saveWeights(const std::string &path,
                         const std::vector<std::unique_ptr<Rank>> &ranks) {
  std::vector<TensorToWrite> tensors;
  forEachParameter(
      ranks, [&](const Rank &rank, const plan::Parameter &parameter) {
        tensors.push_back({parameter.name()->str(), fileShape(parameter),
                           f32At(rank, masterOf(parameter).view())});
      });
  return fromIo(writeSafeTensors(path, tensors));
}

absl::Status checkGradientsKept(const plan::Plan &plan) {
  for (const plan::Program *program : *plan.programs()) {
    uint64_t end = 0;
    for (const Instructions *list :
         {&orEmpty(program->once()), &orEmpty(program->step()),
          &orEmpty(program->microbatch()), &orEmpty(program->update())})
      end += list->size();
    for (const plan::Parameter *parameter : orEmpty(program->parameters())) {
      const plan::Buffer *buffer = nullptr;
      if (viewOf(parameter->gradient()) != plan::noView)
        buffer = program->buffers()->Get(
            program->views()->Get(viewOf(parameter->gradient()))->buffer());
      if (!buffer ||
          (!buffer->persistent() && uint64_t{buffer->last_use()} + 1 < end))
        return withExitCode(
            absl::NotFoundError(absl::StrCat(
                "--save-gradients: the plan does not keep the gradient of ",
                quote(parameter->name()), " to the end of a step")),
            ExitCode::badData);
    }
  }
  return absl::OkStatus();
}

absl::Status saveGradients(const std::string &path,
                           const std::vector<std::unique_ptr<Rank>> &ranks) {
  std::vector<TensorToWrite> tensors;
  std::vector<std::unique_ptr<float[]>> widened;
  forEachParameter(ranks, [&](const Rank &rank,
                              const plan::Parameter &parameter) {
    const ViewInfo &view = rank.view(viewOf(parameter.gradient()));
    const float *data = f32At(rank, viewOf(parameter.gradient()));
    if (view.dtype == plan::DType::bf16) {
      size_t count = static_cast<size_t>(view.elements);
      auto *from = reinterpret_cast<const uint16_t *>(data);
      widened.push_back(std::make_unique<float[]>(count));
      std::transform(from, from + count, widened.back().get(), fromBf16);
      data = widened.back().get();
    }
    tensors.push_back({parameter.name()->str(), fileShape(parameter), data});
  });
  return fromIo(writeSafeTensors(path, tensors));
}

} // namespace meshwork::runtime
