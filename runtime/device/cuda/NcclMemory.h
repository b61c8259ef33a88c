// Memory of the device that collectives use.
#pragma once

#include "runtime/device/cuda/DeviceTransport.h"
#include "runtime/device/cuda/Driver.h"
#include "runtime/device/cuda/NcclCommunicator.h"
#include <utility>
#include <vector>

namespace meshwork::runtime::cuda {

/// Freed at the end. With a `library` it comes from there, and communicators
/// may know it: NCCL then reads and writes it in place (its guide, "User Buffer
/// Registration"). All memory that a communicator is given must be known to it
/// then, on all its ranks.
class NcclMemory : public RegisteredMemory {
public:
  explicit NcclMemory(const Driver &driver,
                      const NcclLibrary *library = nullptr)
      : driver(driver), library(library) {}
  NcclMemory(const NcclMemory &) = delete;
  ~NcclMemory() override;
  /// Nothing for no bytes. `purpose` is for messages: "to pack what ...".
  absl::Status allocate(uint64_t bytes, const std::string &purpose);
  DevicePtr address() const override { return memory; }

  /// Only with a library. The communicator lives until `forget`, or longer than
  /// this.
  absl::Status registerWith(NcclCommunicator &communicator);
  /// No communicator knows it any more.
  void forget();

private:
  const Driver &driver;
  const NcclLibrary *library;
  DevicePtr memory = 0;
  uint64_t bytes = 0;
  std::vector<std::pair<NcclCommunicator *, void *>> known; // and its handle
};

} // namespace meshwork::runtime::cuda
