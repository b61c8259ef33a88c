// Where processes meet, by the variables of their launcher.
#include "runtime/comm/MeetingPlace.h"
#include <gtest/gtest.h>
#include <map>

namespace meshwork::runtime {
namespace {

absl::StatusOr<std::optional<MeetingPlace>>
placeOf(std::map<std::string, std::string> variables) {
  return meetingPlace(
      {true, 1, 4, "", false}, [&](const char *name) -> const char * {
        auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
      });
}

std::string addressOf(std::map<std::string, std::string> variables) {
  auto place = placeOf(std::move(variables));
  if (!place.ok() || !*place)
    return place.ok() ? "nowhere" : std::string(place.status().message());
  return (*place)->host + ":" + std::to_string((*place)->port);
}

TEST(MeetingPlace, ofTorchrun) {
  EXPECT_EQ(addressOf({{"MASTER_ADDR", "a"}, {"MASTER_PORT", "7"}}), "a:7");
  EXPECT_EQ(addressOf({{"MASTER_ADDR", "::1"}, {"MASTER_PORT", "7"}}),
            "[::1]:7");
  // Where torchrun's own store listens.
  EXPECT_EQ(addressOf({{"MASTER_ADDR", "a"},
                       {"MASTER_PORT", "7"},
                       {"TORCHELASTIC_USE_AGENT_STORE", "True"}}),
            "a:8");
  EXPECT_EQ(
      addressOf(
          {{"MASTER_ADDR", "a"}, {"MASTER_PORT", "7"}, {"MESHWORK_PORT", "9"}}),
      "a:9");
  EXPECT_EQ(addressOf({{"MASTER_ADDR", "a"}}), "nowhere");
}

TEST(MeetingPlace, ofSrun) {
  for (auto [list, host] :
       {std::pair("n7", "n7"), std::pair("a,b", "a"),
        std::pair("node[01-04,07],z", "node01"), std::pair("n[3]", "n3"),
        std::pair("a,b[1-2]", "a")})
    EXPECT_EQ(addressOf({{"SLURM_STEP_NODELIST", list},
                         {"SLURM_JOB_ID", "2"},
                         {"SLURM_STEP_ID", "1"}}),
              std::string(host) + ":20129");
}

TEST(MeetingPlace, badPorts) {
  for (const char *port : {"0", "65536", "x", "-1", ""})
    EXPECT_NE(addressOf({{"MASTER_ADDR", "a"}, {"MASTER_PORT", port}})
                  .find("expected a port"),
              std::string::npos);
}

} // namespace
} // namespace meshwork::runtime
