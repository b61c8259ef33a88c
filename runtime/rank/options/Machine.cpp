#include "runtime/rank/options/Groups.h"

namespace meshwork::runtime {
namespace {
using Transport = RunOptions::Transport;

constexpr OptionChoice transports[] = {
    {"auto", static_cast<int>(Transport::automatic)},
    {"mpi", static_cast<int>(Transport::mpi)},
    {"threads", static_cast<int>(Transport::threads)}};

const OptionRow machineRows[] = {
    {.name = "-n,--ranks",
     .valueName = "N",
     .help = "Must be equal to the plan's ranks",
     .field = MESHWORK_FIELD(ranks),
     .least = 1},
    {.name = "--transport",
     .valueName = "",
     .help = "auto (as launched), threads (all ranks here) or mpi",
     .field = MESHWORK_FIELD(transport),
     .choices = transports,
     .showsDefault = true},
    {.name = "--interface",
     .valueName = "NAME",
     .help = "Without MPI: other ranks reach this one by the interface NAME, "
             "written as in NCCL_SOCKET_IFNAME. Default: that variable, then "
             "GLOO_SOCKET_IFNAME, then the interface that leads to rank 0",
     .field = MESHWORK_FIELD(interface)},
    {.name = "--threads",
     .valueName = "N",
     .help = "Threads per rank; default: cores / ranks, of the cores that this "
             "process may use and its cgroups give it time for",
     .field = MESHWORK_FIELD(threads),
     .least = 1,
     .most = 4096},
    {.name = "--no-pin",
     .valueName = "",
     .help = "Leave threads to the system's scheduler",
     .field = MESHWORK_FIELD(pin)},
    {.name = "--timeout",
     .valueName = "SECONDS",
     .help = "Wait at most so long for a rank, or for a GPU's work to end; "
             "time that a disk takes does not count",
     .field = MESHWORK_FIELD(timeoutSeconds),
     .lowest = 1e-3,
     .highest = 1e6,
     .isPositive = true,
     .showsDefault = true},
    {.name = "--validate-only",
     .valueName = "",
     .help = "Check the plan and the machine, run nothing",
     .field = MESHWORK_FIELD(validateOnly),
     .isShared = true},
    {.name = "--dry-run",
     .valueName = "",
     .help = "As --validate-only, and print where each rank would run: its "
             "host, its cores or GPU, and which axes of the mesh cross hosts",
     .field = MESHWORK_FIELD(dryRun),
     .isShared = true},
};
} // namespace

OptionGroup machineOptions() { return {"The machine", machineRows}; }

} // namespace meshwork::runtime
