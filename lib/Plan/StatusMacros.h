// Passing errors on to the caller.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include <utility>

/// Returns from the enclosing function when `expression` is not ok.
#define MESHWORK_RETURN_IF_ERROR(expression)                                   \
  do {                                                                         \
    if (absl::Status meshworkStatus = (expression); !meshworkStatus.ok())      \
      return meshworkStatus;                                                   \
  } while (false)

/// Assigns the value of a StatusOr expression, or returns its error.
#define MESHWORK_ASSIGN_OR_RETURN(target, expression)                          \
  do {                                                                         \
    auto meshworkResult = (expression);                                        \
    if (!meshworkResult.ok())                                                  \
      return meshworkResult.status();                                          \
    target = *std::move(meshworkResult);                                       \
  } while (false)
