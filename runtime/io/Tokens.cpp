#include "runtime/io/Tokens.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <sys/resource.h>
#include <utility>

#include <absl/strings/str_cat.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "runtime/io/DataFiles.h"
#include "runtime/io/Documents.h"
#include "runtime/io/Files.h"
#include "runtime/io/Sampling.h"
#include "runtime/io/TokenFile.h"

namespace meshwork::runtime {
namespace {

// Of all files together; of each file one piece at least.
constexpr uint64_t checkedPieces = 64;

class FilesOfTokens final : public TokenSource {
public:
  /// All files of all sources.
  absl::Status openFiles(const SourceOptions &options);
  absl::Status share(const SourceOptions &options);

  absl::Status sample(uint64_t seed, const SampleNumber &number,
                      const SampleSpans &to) const override {
    Window window = sampling.of(seed, number);
    return files[window.file]->window(begins[window.file] + window.start, to);
  }
  uint32_t tokensOf(uint64_t seed, const SampleNumber &number) const override {
    Window window = sampling.of(seed, number);
    return files[window.file]->tokensOf(begins[window.file] + window.start);
  }
  uint64_t numTokens() const override {
    uint64_t sum = 0;
    for (const SourceSummary &one : summaries)
      sum += one.tokens;
    return sum;
  }
  std::vector<std::string> masks() const override {
    std::vector<std::string> names;
    for (const auto &file : files)
      if (file->mask())
        names.push_back(file->mask()->path());
    return names;
  }
  const std::vector<SourceSummary> &sources() const override {
    return summaries;
  }
  double readsOf(size_t number, uint64_t samples) const override {
    return sampling.readsOf(number, samples);
  }
  const std::vector<std::string> &warnings() const override { return doubts; }
  std::string identity() const override;

private:
  void summarize(const SourceOptions &options);
  /// No file by two names: it would be read twice as often in silence.
  absl::Status checkTwice() const;

  std::vector<std::vector<std::string>> names; // of files, by source
  std::vector<std::unique_ptr<TokenFile>> files;
  std::vector<uint64_t> begins; // the first token that is read, by file
  std::vector<SourceSummary> summaries;
  std::vector<std::string> doubts;
  Sampling sampling;
};

absl::Status FilesOfTokens::checkTwice() const {
  std::map<std::string, std::string> known; // by what it is
  for (const std::vector<std::string> &ofSource : names)
    for (const std::string &name : ofSource) {
      std::error_code error;
      std::string place = std::filesystem::canonical(name, error).string();
      auto [other, isNew] = known.try_emplace(error ? name : place, name);
      if (!isNew)
        return absl::InvalidArgumentError(absl::StrCat(
            quote(name), ": is the same file as ", quote(other->second),
            "; give it once, and --data-weights if it is to be read more often "
            "than others"));
    }
  return absl::OkStatus();
}

/// All stay open. What a process may have is less by default than it may ask
/// for.
void allowFiles(uint64_t count) {
  constexpr uint64_t forOthers = 512;
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
      limit.rlim_cur >= count + forOthers)
    return;
  limit.rlim_cur = std::min<rlim_t>(count + forOthers, limit.rlim_max);
  (void)::setrlimit(RLIMIT_NOFILE, &limit); // Else opening one of them tells.
}

absl::Status FilesOfTokens::openFiles(const SourceOptions &options) {
  uint64_t count = 0;
  for (const std::string &path : options.paths) {
    auto found = dataFiles(path, !options.each.tokenizer.empty());
    if (!found.ok())
      return found.status();
    count += found->size();
    if (std::string shard = missingShard(*found); !shard.empty())
      doubts.push_back(absl::StrCat(quote(path),
                                    ": has files before and behind ",
                                    quote(shard), ", but not that one"));
    names.push_back(*std::move(found));
  }
  if (absl::Status status = checkTwice(); !status.ok())
    return status;
  allowFiles(count);
  uint64_t pieces = std::max<uint64_t>(checkedPieces / count, 1);
  for (const std::vector<std::string> &ofSource : names)
    for (const std::string &name : ofSource) {
      TokenOptions one = options.each;
      one.path = name;
      auto file = TokenFile::open(one, pieces);
      if (!file.ok())
        return file.status();
      for (const std::string &doubt : (*file)->warnings())
        doubts.push_back(doubt);
      files.push_back(*std::move(file));
    }
  return absl::OkStatus();
}

/// The tokens of the windows that a file gives, and the one behind them.
struct Part {
  uint64_t begin = 0, tokens = 0;
};

Part partOf(uint64_t tokens, uint64_t sequence, const SourceOptions &options) {
  uint64_t windows = (tokens - 1) / sequence;
  auto held = std::min(
      windows - 1,
      static_cast<uint64_t>(options.heldOut * static_cast<double>(windows)));
  if (options.part == WindowPart::heldOut)
    return {(windows - held) * sequence, held * sequence + 1};
  return {0, held == 0 ? tokens : (windows - held) * sequence + 1};
}

absl::Status FilesOfTokens::share(const SourceOptions &options) {
  // Samples of documents are places behind each other, as windows of one target
  // would be.
  SamplingOptions how{{},
                      options.each.wholeDocuments ? 1 : options.each.sequence,
                      options.order,
                      options.weights};
  auto file = files.begin();
  for (const std::vector<std::string> &ofSource : names) {
    how.tokens.emplace_back();
    for (size_t i = 0; i < ofSource.size(); ++i, ++file) {
      uint64_t tokens = (*file)->packing()
                            ? (*file)->packing()->samples.size() + 1
                            : (*file)->numTokens();
      Part part = partOf(tokens, how.sequence, options);
      begins.push_back(part.begin);
      how.tokens.back().push_back(part.tokens);
    }
  }
  auto made = Sampling::make(how);
  if (!made.ok())
    return absl::Status(
        made.status().code(),
        absl::StrCat("--data-weights: ", made.status().message()));
  sampling = *std::move(made);
  summarize(options);
  return absl::OkStatus();
}

void FilesOfTokens::summarize(const SourceOptions &options) {
  auto file = files.begin();
  for (size_t s = 0; s < names.size(); ++s) {
    SourceSummary one{options.paths[s], names[s].size()};
    for (size_t i = 0; i < names[s].size(); ++i, ++file) {
      const TokenFile &its = **file;
      one.tokens += its.numTokens();
      if (const Packing *packing = its.packing()) {
        one.cutDocuments += packing->cutDocuments;
        one.cutTokens += packing->cutTokens;
      } else {
        one.leftOver += (its.numTokens() - 1) % options.each.sequence;
      }
      one.largest = std::max(one.largest, its.largest());
      one.checked += its.numChecked();
      one.documents = one.documents && its.numDocuments()
                          ? std::optional(*one.documents + *its.numDocuments())
                          : std::nullopt;
    }
    one.windows = sampling.windowsOf(s);
    summaries.push_back(one);
  }
}

/// Of one file its own, as checkpoints of one have it.
std::string FilesOfTokens::identity() const {
  if (files.size() == 1)
    return files[0]->identity();
  std::string all;
  for (size_t s = 0; s < names.size(); ++s)
    absl::StrAppend(&all, names[s].size(), ";");
  for (const auto &file : files)
    absl::StrAppend(&all, file->identity(), ";");
  return absl::StrCat(
      numTokens(), " tokens in ", files.size(), " files, fingerprint ",
      absl::Hex(XXH3_64bits(all.data(), all.size()), absl::kZeroPad16));
}

absl::Status checkOptions(const TokenOptions &options) {
  if (!options.dataType.empty() && options.dataType != "u16" &&
      options.dataType != "u32")
    return absl::InvalidArgumentError(absl::StrCat(
        "--data-type ", quote(options.dataType), ", expected u16 or u32"));
  if (!options.tokenizer.empty() && options.tokenizer != "bytes")
    return absl::InvalidArgumentError(absl::StrCat(
        "--tokenizer ", quote(options.tokenizer), ", expected bytes"));
  if (!options.tokenizer.empty() && !options.dataType.empty())
    return absl::InvalidArgumentError(
        "--tokenizer and --data-type exclude each other: text or tokens");
  if (options.vocabulary == 0 || options.vocabulary > (uint32_t{1} << 31))
    return absl::InvalidArgumentError(absl::StrCat(
        "vocabulary ", options.vocabulary, ", expected 1 to 2147483648"));
  if (options.sequence == 0)
    return absl::InvalidArgumentError("sequence 0, expected at least 1 token");
  return checkMarks(options);
}

} // namespace

uint64_t TokenSource::numWindows() const {
  uint64_t sum = 0;
  for (const SourceSummary &one : sources())
    sum += one.windows;
  return sum;
}

absl::StatusOr<std::unique_ptr<TokenSource>>
TokenSource::openAll(const SourceOptions &options) {
  if (absl::Status status = checkOptions(options.each); !status.ok())
    return status;
  if (options.paths.empty())
    return absl::InvalidArgumentError("no file of tokens is given");
  auto source = std::make_unique<FilesOfTokens>();
  if (absl::Status status = source->openFiles(options); !status.ok())
    return status;
  if (absl::Status status = source->share(options); !status.ok())
    return status;
  if (source->numWindows() == 0)
    return absl::InvalidArgumentError(absl::StrCat(
        "--held-out is ", options.heldOut,
        ", which is not one window of any file: expected more, or files of ",
        "more windows; a window is ", options.each.sequence, " tokens"));
  return source;
}

absl::StatusOr<std::unique_ptr<TokenSource>>
TokenSource::open(const TokenOptions &options) {
  return openAll({options, {options.path}});
}

} // namespace meshwork::runtime
