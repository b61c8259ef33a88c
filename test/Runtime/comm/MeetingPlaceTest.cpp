// Where processes meet, by the variables of their launcher.
#include "runtime/comm/MeetingPlace.h"
#include <gtest/gtest.h>
#include <map>

namespace meshwork::runtime {
namespace {

absl::StatusOr<std::optional<MeetingPlace>>
placeOf(std::map<std::string, std::string> variables, uint32_t rank) {
  return meetingPlace(
      {true, rank, 4, "", false}, [&](const char *name) -> const char * {
        auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
      });
}

std::string addressOf(std::map<std::string, std::string> variables,
                      uint32_t rank = 1) {
  auto place = placeOf(std::move(variables), rank);
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
              std::string(host) + ":27921");
}

// Slurm names hosts in its own order, whichever of them rank 0 is on.
TEST(MeetingPlace, ofSrunThatPutsRank0Elsewhere) {
  std::map<std::string, std::string> step = {{"SLURM_STEP_NODELIST", "n[1-2]"},
                                             {"SLURM_JOB_ID", "2"},
                                             {"SLURM_STEP_ID", "1"},
                                             {"SLURMD_NODENAME", "n1"}};
  EXPECT_EQ(addressOf(step, 0), "n1:27921");
  step["SLURMD_NODENAME"] = "n2";
  EXPECT_EQ(addressOf(step, 1), "n1:27921");
  EXPECT_EQ(addressOf(step, 0),
            "srun put rank 0 on n2, but the others look for it on n1, the "
            "first host of SLURM_STEP_NODELIST: set MASTER_ADDR=n2 and "
            "MASTER_PORT to a free port there");
  step["MASTER_ADDR"] = "n2";
  step["MASTER_PORT"] = "7";
  EXPECT_EQ(addressOf(step, 0), "n2:7");
}

TEST(MeetingPlace, badPorts) {
  for (const char *port : {"0", "65536", "x", "-1", ""})
    EXPECT_NE(addressOf({{"MASTER_ADDR", "a"}, {"MASTER_PORT", port}})
                  .find("expected a port"),
              std::string::npos);
}

} // namespace
} // namespace meshwork::runtime
