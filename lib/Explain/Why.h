// The chain behind a value: annotation, propagation, what gave way, reshards.
#pragma once

#include "meshwork/Plan/Plan.h"
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace meshwork::explain {

/// Reads Plan.provenance, whose indices nobody has checked: what does not
/// exist is left out.
class Why {
public:
  explicit Why(const plan::Plan &plan);

  /// Names of all values, in the order of the program; empty without notes.
  const std::vector<std::string> &names() const { return list; }
  /// The value of that name, and its gradient; of a parameter those of its
  /// states, too, and what a microbatch adds to them: "x", "x (gradient)".
  std::vector<uint32_t> about(std::string_view name) const;

  /// Dims with their chains, then moves; "" for a place that is not there.
  std::string text(uint32_t place) const;
  nlohmann::ordered_json json(uint32_t place) const;
  /// The notes themselves, for a reader that follows the chains of all values
  /// by itself: lib/Report/README.md has the keys. As long as the plan has
  /// them, since repeated layers share their stories.
  nlohmann::ordered_json tables() const;

private:
  /// One step towards an annotation.
  struct Link {
    const plan::DimCause *cause;
    std::optional<uint32_t> from; // the value that is followed
    std::string fromDim;
  };
  std::vector<Link> chain(uint32_t place, const plan::DimCause &first) const;
  const plan::ValueStory *story(uint32_t place) const;
  const plan::Annotation *annotation(const plan::DimCause &cause) const;
  std::string linkText(const Link &link) const;
  nlohmann::ordered_json linkJson(const Link &link) const;

  const plan::Plan &plan;
  const plan::Provenance *notes;
  std::vector<std::string> list;
};

} // namespace meshwork::explain
