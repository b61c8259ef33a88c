// A checkpoint made by hand, that says how each element is called.
#pragma once

#include "runtime/checkpoint/BoxFile.h"
#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/checkpoint/HashedFile.h"
#include "test/Runtime/io/TestFiles.h"
#include <filesystem>
#include <numeric>

namespace meshwork::runtime::test {

/// The value of an element: its number in the whole tensor, and `salt`.
struct HandMade {
  std::vector<std::vector<BoxToWrite>> files; // boxes of each
  std::vector<StoredTensor> tensors;          // without boxes
  float salt = 0;

  static int64_t numberOf(const std::vector<int64_t> &shape,
                          const std::vector<int64_t> &at) {
    int64_t number = 0;
    for (size_t dim = 0; dim < shape.size(); ++dim)
      number = number * shape[dim] + at[dim];
    return number;
  }

  StoredTensor &tensor(const std::string &name) {
    for (StoredTensor &one : tensors)
      if (one.name == name)
        return one;
    abort();
  }

  /// The elements of a box, row-major.
  std::vector<float> values(const std::string &name, const std::string &state,
                            const std::vector<int64_t> &begin,
                            const std::vector<int64_t> &extent) {
    const std::vector<int64_t> &shape = tensor(name).shape;
    float add = salt + (state == "weight" ? 0 : 0.5F);
    std::vector<float> all;
    std::vector<int64_t> index = begin;
    for (bool more = true; more;) {
      all.push_back(static_cast<float>(numberOf(shape, index)) + add);
      more = false;
      for (size_t dim = extent.size(); dim-- > 0 && !more;) {
        more = ++index[dim] < begin[dim] + extent[dim];
        if (!more)
          index[dim] = begin[dim];
      }
    }
    return all;
  }

  /// As a run that has ended `step` steps would leave it.
  std::string write(const std::string &folder, uint64_t step) {
    std::string path = folder + "/" + checkpointName(step);
    std::filesystem::create_directories(path);
    Manifest manifest;
    manifest.producer = "meshwork test";
    manifest.progress = {step, step, 8 * step};
    manifest.options = {{"--lr", "0.001"}};
    manifest.tensors = tensors;
    for (uint32_t i = 0; i < files.size(); ++i)
      addFile(manifest, path, i);
    auto model = HashedFile::create(path, modelName);
    EXPECT_TRUE(model.ok() && model->write("module {}\n", 10).ok());
    manifest.files.push_back(*model->commit());
    EXPECT_TRUE(
        writeWhole(path + "/" + manifestName, manifestText(manifest)).ok());
    return path;
  }

private:
  void addFile(Manifest &manifest, const std::string &path, uint32_t number) {
    const std::vector<BoxToWrite> &boxes = files[number];
    auto written = writeBoxes(
        path, statesName(number), boxes, [&](size_t i, WriteBytes put) {
          std::vector<float> all = values(boxes[i].tensor, boxes[i].state,
                                          boxes[i].begin, boxes[i].extent);
          return put(all.data(), all.size() * sizeof(float));
        });
    EXPECT_TRUE(written.ok()) << written.status();
    manifest.files.push_back(written->file);
    for (size_t i = 0; i < boxes.size(); ++i)
      for (StoredTensor &one : manifest.tensors)
        for (StoredState &state : one.states)
          if (one.name == boxes[i].tensor && state.name == boxes[i].state)
            state.boxes.push_back(
                {number, written->offsets[i], boxes[i].begin, boxes[i].extent});
  }
};

/// Two tensors in two files: "a" of [6, 10] in three boxes of unlike sizes,
/// with a moment in one; "b", a scalar.
inline HandMade smallCheckpoint(float salt = 0) {
  HandMade made;
  made.salt = salt;
  made.tensors = {
      {"a", {6, 10}, {60}, {{"weight", "F32", {}}, {"moment", "F32", {}}}},
      {"b", {}, {}, {{"weight", "F32", {}}}}};
  made.files = {{{"a", "weight", "F32", {0, 0}, {4, 7}},
                 {"a", "moment", "F32", {0, 0}, {6, 10}}},
                {{"a", "weight", "F32", {0, 7}, {4, 3}},
                 {"b", "weight", "F32", {}, {}},
                 {"a", "weight", "F32", {4, 0}, {2, 10}}}};
  return made;
}

} // namespace meshwork::runtime::test
