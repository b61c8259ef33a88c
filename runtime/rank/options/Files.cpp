#include "runtime/rank/options/Groups.h"

namespace meshwork::runtime {
namespace {
const OptionRow fileRows[] = {
    {.name = "--init",
     .valueName = "FILE",
     .help = "Start from these safetensors: a file, an index, or a folder "
             "(also one in the cache of the Hugging Face Hub); or from the "
             "weights of a checkpoint",
     .field = MESHWORK_FIELD(init),
     .isShared = true},
    {.name = "--follow-links",
     .valueName = "",
     .help = "Read files of --init's index that are links out of its folder: "
             "only where you trust who made it",
     .field = MESHWORK_FIELD(followLinks),
     .needs = "--init",
     .isShared = true},
    {.name = "--resume",
     .valueName = "DIR",
     .help =
         "Go on from the newest good checkpoint of this folder, or from this "
         "one; auto: from that of --checkpoint, if there is one yet",
     .field = MESHWORK_FIELD(resume),
     .isShared = true},
    {.name = "--save",
     .valueName = "FILE",
     .help = "Write the weights at the end, f32 safetensors",
     .field = MESHWORK_FIELD(save),
     .isShared = true},
    {.name = "--save-gradients",
     .valueName = "FILE",
     .help = "Write the last step's gradients: the mean over the step's "
             "tokens, not clipped",
     .field = MESHWORK_FIELD(saveGradients),
     .needs = "--steps",
     .isShared = true},
    {.name = "--checkpoint",
     .valueName = "DIR",
     .help = "Keep checkpoints in this folder, which all hosts share: at the "
             "end, at a signal that ends the run, and at SIGUSR1",
     .field = MESHWORK_FIELD(checkpoint),
     .isShared = true},
    {.name = "--checkpoint-every",
     .valueName = "N",
     .help = "Also after each N steps",
     .field = MESHWORK_FIELD(checkpointEvery),
     .least = 1,
     .needs = "--checkpoint",
     .isShared = true},
    {.name = "--keep",
     .valueName = "K",
     .help = "Remove checkpoints older than the K newest",
     .field = MESHWORK_FIELD(keep),
     .least = 2,
     .needs = "--checkpoint",
     .showsDefault = true},
    {.name = "--keep-best",
     .valueName = "",
     .help = "Also keep the checkpoint whose evaluation found the lowest loss",
     .field = MESHWORK_FIELD(keepBest),
     .needs = "--eval-every"},
    {.name = "--checkpoint-sync",
     .valueName = "",
     .help = "Train on only when a checkpoint is written: takes no memory for "
             "a copy of the states (on a GPU the copy itself is never hidden)",
     .field = MESHWORK_FIELD(checkpointSync),
     .needs = "--checkpoint",
     .isShared = true},
    {.name = "--metrics",
     .valueName = "FILE",
     .help = "Append a JSON line per step, and per evaluation, to this log",
     .field = MESHWORK_FIELD(metrics),
     .needs = "--steps",
     .orNeeds = "--evaluate"},
    {.name = "--tensorboard",
     .valueName = "DIR",
     .help = "Write the numbers of --metrics for TensorBoard: a new file of "
             "events in this folder",
     .field = MESHWORK_FIELD(tensorboard),
     .needs = "--steps",
     .orNeeds = "--evaluate"},
    {.name = "--trace",
     .valueName = "FILE",
     .help = "Write a Chrome trace",
     .field = MESHWORK_FIELD(trace),
     .needs = "--steps",
     .isShared = true},
    {.name = "--profile-json",
     .valueName = "FILE",
     .help = "Write time per instruction as JSON",
     .field = MESHWORK_FIELD(profileJson),
     .needs = "--steps"},
    {.name = "--trace-steps",
     .valueName = "N",
     .help = "Trace this many first steps",
     .field = MESHWORK_FIELD(traceSteps),
     .least = 1,
     .needs = "--trace",
     .showsDefault = true},
};

const OptionRow failureRows[] = {
    {.name = "--skip-bad-steps",
     .valueName = "N",
     .help = "Go on after a step whose loss or gradient norm is not finite, "
             "without its update, N times in a run",
     .field = MESHWORK_FIELD(skipBadSteps),
     .needs = "--steps",
     .isShared = true},
    {.name = "--restarts",
     .valueName = "N",
     .help = "Start a run that fails again, from its newest checkpoint, at "
             "most N times; not under mpirun",
     .field = MESHWORK_FIELD(restarts),
     .needs = "--checkpoint"},
};
} // namespace

OptionGroup fileOptions() { return {"Files", fileRows}; }
OptionGroup failureOptions() { return {"Failures", failureRows}; }

} // namespace meshwork::runtime
