// For tests of kernels: loads PTX and runs it on buffers of the test.
//
//   Kernels kernels = Kernels::fromFile(PTX_FOLDER "/softmax.ptx");
//   ASSERT_TRUE(kernels.status().ok()) << kernels.status();
//   Buffer<float> in(1024), out(1024);          // filled with NaN patterns
//   absl::Status status = kernels.launch(
//       "softmax", {.grid = {8}, .block = {128}}, out, in, 128);
//   EXPECT_TRUE(status.ok()) << status;
//
// Only live buffers can be read and written by kernels; 256 bytes around each
// belong to nobody. Arguments are checked against the kernel's parameters.
#pragma once

#include "test/Support/Emulator/ptx/Module.h"

#include "absl/strings/str_cat.h"

#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

namespace meshwork::ptx {

/// All live buffers of this process's tests.
class BufferMemory : public Memory {
public:
  static BufferMemory &all() {
    static BufferMemory memory;
    return memory;
  }
  void add(Range range) { ranges[range.begin] = range; }
  void remove(uint64_t begin) { ranges.erase(begin); }
  Range find(uint64_t address) const override {
    auto it = ranges.upper_bound(address);
    if (it == ranges.begin())
      return {};
    Range range = std::prev(it)->second;
    return range.covers(address, 1) ? range : Range();
  }
  std::string describe(uint64_t address) const override {
    auto next = ranges.upper_bound(address);
    std::string text = "no buffer is there";
    auto add = [&](const Range &range) {
      absl::StrAppend(&text, "; one of ", range.end - range.begin,
                      " bytes begins ", int64_t(address - range.begin),
                      " bytes before it");
    };
    if (next != ranges.begin())
      add(std::prev(next)->second);
    if (next != ranges.end())
      add(next->second);
    return text;
  }

private:
  std::map<uint64_t, Range> ranges;
};

/// Device memory of a test; each byte 0xff at first, which reads as NaN.
template <class T> class Buffer {
public:
  explicit Buffer(size_t count)
      : count(count), bytes(count * sizeof(T) + 3 * guard, 0xff) {
    BufferMemory::all().add({address(), address() + count * sizeof(T)});
  }
  explicit Buffer(const std::vector<T> &values) : Buffer(values.size()) {
    std::memcpy(data(), values.data(), count * sizeof(T));
  }
  Buffer(const Buffer &) = delete;
  ~Buffer() { BufferMemory::all().remove(address()); }

  T *data() { return reinterpret_cast<T *>(address()); }
  const T *data() const { return reinterpret_cast<const T *>(address()); }
  T &operator[](size_t i) { return data()[i]; }
  const T &operator[](size_t i) const { return data()[i]; }
  size_t size() const { return count; }
  T *begin() { return data(); }
  T *end() { return data() + count; }
  /// Aligned to 256 bytes, as cuMemAlloc does.
  uint64_t address() const {
    uint64_t begin = reinterpret_cast<uint64_t>(bytes.data()) + guard;
    return (begin + guard - 1) / guard * guard;
  }

private:
  static constexpr size_t guard = 256;
  size_t count;
  std::vector<unsigned char> bytes;
};

class Kernels {
public:
  static Kernels fromText(std::string_view text) {
    Kernels kernels;
    absl::StatusOr<std::unique_ptr<Module>> module = Module::parse(text);
    kernels.state = module.status();
    if (module.ok())
      kernels.module = *std::move(module);
    return kernels;
  }
  static Kernels fromFile(const std::string &path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    if (file)
      return fromText(text.str());
    Kernels kernels;
    kernels.state = absl::NotFoundError(absl::StrCat("cannot read ", path));
    return kernels;
  }
  const absl::Status &status() const { return state; }

  /// Arguments: buffers, pointers (uint64_t), numbers and trivial structs, in
  /// the order of the kernel's parameters.
  template <class... Arguments>
  absl::Status launch(const std::string &name, const Shape &shape,
                      const Arguments &...arguments) {
    if (!state.ok())
      return state;
    const Program *program = module->kernel(name);
    if (!program)
      return absl::NotFoundError(absl::StrCat("no kernel '", name, "'"));
    if (program->parameters.size() != sizeof...(arguments))
      return absl::InvalidArgumentError(
          absl::StrCat("kernel ", name, " has ", program->parameters.size(),
                       " parameters, found ", sizeof...(arguments)));
    std::vector<std::byte> bytes(program->parameterBytes);
    size_t next = 0;
    absl::Status fits;
    (fits.Update(put(program->parameters[next++], arguments, bytes)), ...);
    if (!fits.ok())
      return fits;
    return module->launch(name, shape, bytes, BufferMemory::all(), &counts);
  }

  Counts counts; // of all launches
  std::unique_ptr<Module> module;

private:
  template <class T>
  static absl::Status put(const Parameter &parameter, const Buffer<T> &buffer,
                          std::vector<std::byte> &to) {
    return put(parameter, buffer.address(), to);
  }
  template <class T>
  static absl::Status put(const Parameter &parameter, const T &value,
                          std::vector<std::byte> &to) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (parameter.bytes != sizeof(T))
      return absl::InvalidArgumentError(
          absl::StrCat("parameter ", parameter.name, " has ", parameter.bytes,
                       " bytes, found an argument of ", sizeof(T)));
    std::memcpy(to.data() + parameter.offset, &value, sizeof(T));
    return absl::OkStatus();
  }

  absl::Status state;
};

} // namespace meshwork::ptx
