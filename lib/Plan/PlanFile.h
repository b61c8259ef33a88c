// A plan on disk, read once and checked in full, then trusted.
//
//   absl::StatusOr<std::unique_ptr<PlanFile>> file = PlanFile::open(path);
//   const plan::Plan &plan = (*file)->plan();
#pragma once

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "meshwork/Plan/Plan.h"
#include <memory>
#include <string>

namespace meshwork::plan {

class PlanFile {
public:
  /// Reads and checks the plan at `path`. The bytes are copied to private
  /// memory first, so a file that changes later changes nothing here.
  /// Errors: notFound, permissionDenied; dataLoss (not a regular file,
  /// not a plan, damaged, another format version, meaning checks of
  /// PlanCheck.h); resourceExhausted.
  static absl::StatusOr<std::unique_ptr<PlanFile>>
  open(const std::string &path);

  /// The same checks on a file's bytes that are in memory already.
  static absl::StatusOr<std::unique_ptr<PlanFile>>
  fromBytes(absl::Span<const unsigned char> file);

  const Plan &plan() const { return *root; }
  /// The checked bytes, without the frame.
  absl::Span<const unsigned char> payload() const {
    return {bytes, static_cast<size_t>(payloadSize)};
  }
  uint64_t payloadBytes() const { return payloadSize; }

  ~PlanFile();
  PlanFile(const PlanFile &) = delete;
  PlanFile &operator=(const PlanFile &) = delete;

private:
  PlanFile() = default;
  absl::Status allocate(uint64_t bytes);
  absl::Status unpack();
  absl::Status check(const unsigned char *frame);

  unsigned char *bytes = nullptr; // mapped, page aligned
  uint64_t payloadSize = 0;
  const Plan *root = nullptr;
};

} // namespace meshwork::plan
