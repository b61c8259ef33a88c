// A plan's payload. The frame's checksum is made to fit: it finds damage, not
// malice. What the checks accept, `explain` must be able to tell.
#include "lib/Explain/Explain.h"
#include "lib/Plan/PackFile.h"
#include "lib/Plan/PlanFile.h"
#include "meshwork/Plan/Frame.h"
#include "test/Fuzz/Fuzz.h"
#include "test/Plan/TestPlan.h"

namespace meshwork::fuzz {

bool accept(std::string_view input) {
  std::vector<unsigned char> file(plan::frameBytes + input.size());
  std::copy(input.begin(), input.end(), file.begin() + plan::frameBytes);
  plan::writeFrame(file.data() + plan::frameBytes, input.size(), file.data());
  auto checked = plan::PlanFile::fromBytes(file);
  if (!checked.ok())
    return false;
  const plan::Plan &plan = (*checked)->plan();
  explain::text(plan, explain::TextOptions{/*schedule=*/true});
  explain::peakMemory(plan);
  explain::json(plan).IgnoreError();
  explain::value(plan, "*").IgnoreError();
  explain::valueJson(plan, "wte").IgnoreError();
  return true;
}

const std::vector<std::string> &seeds() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> payloads;
    for (const plan::PlanT &plan :
         {plan::test::tinyPlan(), plan::test::tinyPlan({2, 2}),
          plan::test::tinyGpuPlan()}) {
      std::vector<unsigned char> file = plan::test::encode(plan);
      payloads.emplace_back(file.begin() + plan::frameBytes, file.end());
      std::vector<char> packed = plan::packFile({file.begin(), file.end()});
      payloads.emplace_back(packed.begin() + plan::frameBytes, packed.end());
    }
    return payloads;
  }();
  return all;
}

} // namespace meshwork::fuzz
