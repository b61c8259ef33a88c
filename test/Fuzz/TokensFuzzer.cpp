// Tokens: llm.c's and raw files, and Megatron's pair. The first byte chooses
// the format and what tells documents apart, the second is the share of the
// bytes that the index has.
#include "runtime/io/Tokens.h"
#include "test/Fuzz/Fuzz.h"
#include "test/Fuzz/MemoryFolder.h"
#include <cstdint>
#include <cstdlib>

namespace meshwork::fuzz {
namespace {

/// Attention reads tokens from there on: never before the sample, nor after the
/// token itself.
void checkDocuments(absl::Span<const int32_t> documents) {
  for (size_t i = 0; i < documents.size(); ++i)
    if (documents[i] < (i ? documents[i - 1] : 0) ||
        documents[i] > static_cast<int32_t>(i))
      std::abort();
}

bool draw(const std::string &path, const std::string &type,
          runtime::DocumentMarks marks) {
  auto source =
      runtime::TokenSource::open({path, type, /*tokenizer=*/"",
                                  /*vocabulary=*/300, /*sequence=*/3, marks});
  if (!source.ok())
    return false;
  int32_t tokens[3], targets[3], documents[3];
  runtime::SampleSpans to = {absl::MakeSpan(tokens), absl::MakeSpan(targets)};
  if (marks.from != runtime::DocumentMarks::From::nowhere)
    to.documents = absl::MakeSpan(documents);
  for (uint32_t index = 0; index < 4; ++index)
    if ((*source)->sample(1, {2, index}, to).ok())
      checkDocuments(to.documents);
  return true;
}

template <typename Number>
std::string bytesOf(std::initializer_list<Number> numbers) {
  std::string bytes;
  for (Number number : numbers)
    bytes.append(reinterpret_cast<const char *>(&number), sizeof(number));
  return bytes;
}
} // namespace

bool accept(std::string_view input) {
  static MemoryFolder folder;
  if (input.size() < 2)
    return false;
  unsigned char kind = input[0], share = input[1];
  input.remove_prefix(2);
  runtime::DocumentMarks marks = {
      static_cast<runtime::DocumentMarks::From>(kind / 4 % 4)};
  if (kind % 2 == 0)
    return draw(folder.write("tokens", input), kind % 4 ? "u16" : "", marks);
  size_t index = input.size() * share / 255;
  folder.write("pair.bin", input.substr(index));
  return draw(folder.write("pair.idx", input.substr(0, index)), "", marks);
}

const std::vector<std::string> &seeds() {
  static const std::vector<std::string> all = [] {
    std::string llmc = bytesOf<int32_t>({20240520, 1, 8});
    llmc.resize(1024);
    llmc += std::string(16, '\0');
    // Version 1, type 8 (u16), documents of 3 and of 5 tokens.
    std::string index = std::string("MMIDIDX\0\0", 9) + bytesOf<uint64_t>({1}) +
                        std::string(1, '\x08') + bytesOf<uint64_t>({2, 3}) +
                        bytesOf<int32_t>({3, 5}) +
                        bytesOf<uint64_t>({0, 6, 0, 1, 2});
    std::string tokens(16, '\0');
    auto share = static_cast<char>(
        (index.size() * 255 + index.size() + tokens.size() - 1) /
        (index.size() + tokens.size()));
    std::vector<std::string> seeds;
    // Without documents; by the index; at and after each token 0.
    for (char documents : {0, 1, 2, 3}) {
      char kind = static_cast<char>(documents * 4);
      if (documents != 1) // llm.c's files have none
        seeds.push_back(std::string{kind, 0} + llmc);
      seeds.push_back(std::string{static_cast<char>(kind + 1), share} + index +
                      tokens);
    }
    return seeds;
  }();
  return all;
}

} // namespace meshwork::fuzz
