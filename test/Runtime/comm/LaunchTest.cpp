// Launchers' variables.
#include "runtime/comm/Launch.h"
#include <gtest/gtest.h>
#include <map>

namespace meshwork::runtime {
namespace {

absl::StatusOr<Launch> detect(std::map<std::string, std::string> variables) {
  return detectLaunch([&](const char *name) -> const char * {
    auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(Launch, nothingIsOneProcess) {
  EXPECT_FALSE(detect({})->isParallel);
  // In a batch script, before srun.
  EXPECT_FALSE(
      detect({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}})->isParallel);
  EXPECT_FALSE(detect({{"RANK", "0"}, {"WORLD_SIZE", "1"}})->isParallel);
}

TEST(Launch, eachLauncherIsKnown) {
  auto launch =
      detect({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}});
  EXPECT_TRUE(launch->isParallel);
  EXPECT_EQ(launch->rank, 2u);
  EXPECT_EQ(launch->size, 4u);
  EXPECT_EQ(launch->source, "mpirun");
  launch = detect(
      {{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "3"}, {"PMIX_RANK", "1"}});
  EXPECT_EQ(launch->source, "srun");
  EXPECT_TRUE(launch->hasManager);
  launch = detect({{"RANK", "0"}, {"WORLD_SIZE", "2"}});
  EXPECT_EQ(launch->source, "torchrun");
  EXPECT_FALSE(launch->hasManager);
  // The daemons of mpirun run below srun.
  launch = detect({{"OMPI_COMM_WORLD_RANK", "5"},
                   {"OMPI_COMM_WORLD_SIZE", "8"},
                   {"SLURM_PROCID", "1"},
                   {"SLURM_NTASKS", "2"},
                   {"PMIX_RANK", "5"}});
  EXPECT_EQ(launch->rank, 5u);
}

// srun --mpi=none: each process would run all ranks.
TEST(Launch, stepsWithoutAManagerAreKnown) {
  auto launch = detect({{"SLURM_PROCID", "1"},
                        {"SLURM_NTASKS", "8"},
                        {"SLURM_STEP_NUM_TASKS", "3"}});
  EXPECT_TRUE(launch->isParallel);
  EXPECT_EQ(launch->size, 3u);
  EXPECT_EQ(launch->source, "srun");
  EXPECT_FALSE(launch->hasManager);
  // An interactive shell is a step of one task.
  EXPECT_FALSE(detect({{"SLURM_PROCID", "0"},
                       {"SLURM_NTASKS", "8"},
                       {"SLURM_STEP_NUM_TASKS", "1"}})
                   ->isParallel);
}

/// Each would run all ranks, and write the same outputs.
TEST(Launch, launchersThatOpenMpiDoesNotKnow) {
  using Variables = std::map<std::string, std::string>;
  const Variables several[] = {
      {{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}},
      {{"PMI_RANK", "1"},
       {"PMI_SIZE", "4"},
       {"MPI_LOCALRANKID", "0"},
       {"MPI_LOCALNRANKS", "2"}},
      {{"MV2_COMM_WORLD_RANK", "1"}, {"MV2_COMM_WORLD_SIZE", "4"}},
      {{"FLUX_TASK_RANK", "1"}, {"FLUX_JOB_SIZE", "4"}},
      {{"JSM_NAMESPACE_RANK", "1"}, {"JSM_NAMESPACE_SIZE", "4"}},
      {{"MPI_RANKID", "1"}, {"MPI_NRANKS", "4"}},
      {{"HOROVOD_RANK", "1"}, {"HOROVOD_SIZE", "4"}},
      // In a batch script of Slurm, whose variables are of the script.
      {{"PMI_RANK", "1"},
       {"PMI_SIZE", "4"},
       {"SLURM_PROCID", "0"},
       {"SLURM_NTASKS", "8"}}};
  for (const Variables &variables : several) {
    auto launch = detect(variables);
    ASSERT_TRUE(launch.ok()) << launch.status();
    EXPECT_TRUE(launch->isParallel && !launch->hasManager) << launch->source;
    EXPECT_EQ(launch->rank, 1u) << launch->source;
    EXPECT_EQ(launch->asOne(), "one of 4") << launch->source;
  }
  const Variables unknown[] = {{{"PALS_RANKID", "0"}}, {{"ALPS_APP_PE", "2"}}};
  for (const Variables &variables : unknown) {
    auto launch = detect(variables);
    EXPECT_TRUE(launch->isParallel && !launch->hasManager) << launch->source;
    EXPECT_EQ(launch->asOne(), "one of several");
  }
  EXPECT_EQ(
      detect({{"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "2"}})->asOne(),
      "one of 2");
  auto pmix = detect({{"PMIX_RANK", "3"}});
  EXPECT_TRUE(pmix->isParallel && pmix->hasManager);
  auto pmi = detect({{"FLUX_TASK_RANK", "1"},
                     {"FLUX_JOB_SIZE", "4"},
                     {"PMI_RANK", "1"},
                     {"PMI_SIZE", "4"}});
  EXPECT_TRUE(pmi->hasManager);
  EXPECT_EQ(pmi->source, "flux run");
}

TEST(Launch, oneProcessOfAnyLauncherIsAPlainRun) {
  EXPECT_FALSE(detect({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}})->isParallel);
  EXPECT_FALSE(detect({{"PMI_RANK", "0"},
                       {"PMI_SIZE", "1"},
                       {"PALS_RANKID", "0"},
                       {"MPI_LOCALRANKID", "0"},
                       {"MPI_LOCALNRANKS", "1"}})
                   ->isParallel);
  // srun --mpi=pmi2
  EXPECT_FALSE(detect({{"SLURM_PROCID", "0"},
                       {"SLURM_STEP_NUM_TASKS", "1"},
                       {"PMI_RANK", "0"},
                       {"PMI_SIZE", "1"}})
                   ->isParallel);
  EXPECT_FALSE(
      detect({{"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "1"}})->isParallel);
}

/// What started the daemons of mpirun, and not its processes.
TEST(Launch, belowMpirunOthersDoNotCount) {
  auto launch = detect({{"OMPI_COMM_WORLD_RANK", "5"},
                        {"OMPI_COMM_WORLD_SIZE", "8"},
                        {"PMI_RANK", "1"},
                        {"PMI_SIZE", "2"},
                        {"PALS_RANKID", "1"},
                        {"FLUX_TASK_RANK", "1"},
                        {"FLUX_JOB_SIZE", "2"}});
  EXPECT_EQ(launch->source, "mpirun");
  EXPECT_EQ(launch->rank, 5u);
}

TEST(Launch, srunWithAManagerOfItsOwn) {
  std::map<std::string, std::string> step = {{"SLURM_PROCID", "1"},
                                             {"SLURM_NTASKS", "8"},
                                             {"SLURM_STEP_NUM_TASKS", "3"},
                                             {"PMI_RANK", "1"}};
  for (bool hasSize : {false, true}) {
    if (hasSize)
      step["PMI_SIZE"] = "3";
    auto launch = detect(step);
    EXPECT_EQ(launch->source, "srun");
    EXPECT_EQ(launch->size, 3u);
    EXPECT_TRUE(launch->hasManager && launch->isOldManager);
  }
  step["PMIX_RANK"] = "1";
  EXPECT_FALSE(detect(step)->isOldManager);
}

void refuse(std::map<std::string, std::string> variables,
            const char *expected) {
  auto launch = detect(std::move(variables));
  ASSERT_FALSE(launch.ok()) << expected;
  EXPECT_EQ(launch.status().message(), expected);
}

TEST(Launch, contradictionsAreErrors) {
  refuse(
      {{"OMPI_COMM_WORLD_RANK", "0"},
       {"OMPI_COMM_WORLD_SIZE", "2"},
       {"RANK", "1"},
       {"WORLD_SIZE", "4"}},
      "mpirun and torchrun disagree: rank 0 of 2, and RANK=1 of WORLD_SIZE=4; "
      "unset the variables of one of them");
  refuse(
      {{"RANK", "0"}},
      "the environment variable RANK is set and WORLD_SIZE is not: start all "
      "ranks the same way, or unset it");
  refuse(
      {{"RANK", "two"}, {"WORLD_SIZE", "4"}},
      "the environment variable RANK is \"two\", expected a number: start all "
      "ranks the same way, or unset it");
  refuse({{"RANK", "4"}, {"WORLD_SIZE", "4"}},
         "RANK is 4, but WORLD_SIZE is 4: ranks count from 0");
}

} // namespace
} // namespace meshwork::runtime
