// One value in one program, told in tables.
#pragma once

#include "lib/Explain/Listing.h"
#include "lib/Explain/Memory.h"
#include "lib/Plan/Views.h"

namespace meshwork::explain {

/// Bytes of a buffer that belong to the value, under the name of what they are.
struct Part {
  std::string role; // "weight", "gradient"; "" for a buffer
  uint32_t buffer;
  uint64_t begin, end; // in the buffer
  std::string type;    // "f32[4,8]"
  std::string split;   // what the plan says; "" says nothing
};

/// One value in one program.
class Story {
public:
  Story(const plan::Plan &plan, const plan::Program &program,
        std::vector<plan::ViewInfo> views)
      : plan(plan), program(program), listing(program),
        views(std::move(views)) {}

  void addParameter(const plan::Parameter &parameter);
  void addBuffer(uint32_t index);
  /// All tables; only one of the two above may have been called, once.
  std::string tell() const;

private:
  void addPart(const std::string &role, const plan::Sharded *sharded);
  std::string splitOf(const plan::Sharded *sharded) const;
  const Part *partOf(uint32_t view) const;
  const Part *addedTo(uint64_t at, uint32_t sum) const;
  /// The first and the last instruction that touches it.
  std::string lifeOf(uint32_t buffer) const;
  std::string places() const;
  std::string split() const;
  std::string moves() const;
  std::string useOf(const plan::Instruction &instruction) const;
  std::string uses() const;
  std::string splitOf(plan::BufferKind kind) const;

  const plan::Plan &plan;
  const plan::Program &program;
  Listing listing;
  plan::Lives lives{plan::livesOf(program, listing.table())};
  std::vector<plan::ViewInfo> views;
  std::string head;
  std::vector<Part> parts;
};

} // namespace meshwork::explain
