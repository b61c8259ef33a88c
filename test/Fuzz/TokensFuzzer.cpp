// Tokens: llm.c's and raw files, and Megatron's pair. The first byte chooses,
// the second is the share of the bytes that the index has.
#include "runtime/io/Tokens.h"
#include "test/Fuzz/Fuzz.h"
#include "test/Fuzz/MemoryFolder.h"
#include <cstdint>

namespace meshwork::fuzz {
namespace {

bool draw(const std::string &path, const std::string &type) {
  auto source = runtime::TokenSource::open(
      {path, type, /*tokenizer=*/"", /*vocabulary=*/300, /*sequence=*/3});
  if (!source.ok())
    return false;
  int32_t tokens[3], targets[3];
  for (uint32_t index = 0; index < 4; ++index)
    (*source)
        ->sample(1, 2, index, absl::MakeSpan(tokens), absl::MakeSpan(targets))
        .IgnoreError();
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
  if (kind % 2 == 0)
    return draw(folder.write("tokens", input), kind % 4 ? "u16" : "");
  size_t index = input.size() * share / 255;
  folder.write("pair.bin", input.substr(index));
  return draw(folder.write("pair.idx", input.substr(0, index)), "");
}

const std::vector<std::string> &seeds() {
  static const std::vector<std::string> all = [] {
    std::string llmc = bytesOf<int32_t>({20240520, 1, 8});
    llmc.resize(1024);
    llmc += std::string(16, '\0');
    // Version 1, type 8 (u16), one document of 8 tokens.
    std::string index = std::string("MMIDIDX\0\0", 9) + bytesOf<uint64_t>({1}) +
                        std::string(1, '\x08') + bytesOf<uint64_t>({1, 2}) +
                        bytesOf<int32_t>({8}) + bytesOf<uint64_t>({0, 0, 1});
    std::string tokens(16, '\0');
    auto share = static_cast<char>(
        (index.size() * 255 + index.size() + tokens.size() - 1) /
        (index.size() + tokens.size()));
    return std::vector<std::string>{std::string(2, '\0') + llmc,
                                    std::string("\x01") + share + index +
                                        tokens};
  }();
  return all;
}

} // namespace meshwork::fuzz
