// The tables that `meshwork explain PLAN` prints.
#include "absl/strings/str_cat.h"
#include "lib/Explain/Choices.h"
#include "lib/Explain/Collectives.h"
#include "lib/Explain/Context.h"
#include "lib/Explain/Estimate.h"
#include "lib/Explain/Explain.h"
#include "lib/Explain/Format.h"
#include "lib/Explain/HostUse.h"
#include "lib/Explain/Memory.h"
#include "lib/Explain/Pipeline.h"
#include "lib/Explain/Products.h"
#include "lib/Explain/Schedule.h"
#include "lib/Explain/Work.h"
#include "lib/Plan/Boxes.h"
#include "lib/Plan/Copies.h"
#include "lib/Plan/Operands.h"
#include "lib/Plan/Shards.h"
#include "lib/Plan/Views.h"
#include "lib/Spec/Spec.h"
#include "meshwork/Plan/Frame.h"
#include "meshwork/Plan/Types.h"
#include "meshwork/Text/Counted.h"
#include <cmath>

namespace meshwork::explain {
namespace {
using plan::orEmpty;
constexpr size_t shownBuffers = 10;

constexpr const char *meaning[numBufferKinds] = {
    "what matmuls read",
    "sums of a step",
    "f32 masters (mixed precision), what the optimizer keeps",
    "kept for the backward pass, and passed on",
    "staging of collectives, and of copies from the host",
    "scratch of an instruction",
    "tokens, targets, scalars of a step",
    "tables filled once",
    "loss, gradient norm, metrics"};

std::string meshText(const plan::Plan &plan) {
  std::string text;
  for (const plan::Axis *axis : orEmpty(plan.mesh()))
    absl::StrAppend(&text, text.empty() ? "" : " x ", clean(axis->name()), "=",
                    axis->size());
  uint64_t ranks = numRanks(plan);
  return absl::StrCat(text.empty() ? "no axes" : text, ": ",
                      counted(ranks, "rank"), ", batch split over ",
                      axesText(plan, plan.batch_axes()));
}

/// "cpu x86-64-v4", "cuda sm_90a cubin, sm_90a ptx".
std::string targetText(const plan::Plan &plan) {
  std::string text = plan::EnumNameDevice(plan.device());
  if (plan.device() != plan::Device::cuda)
    return absl::StrCat(text, " ", clean(plan.arch()));
  for (const plan::Image *image : orEmpty(plan.images()))
    absl::StrAppend(&text, text.size() > 4 ? ", " : " ", clean(image->arch()),
                    " ", plan::EnumNameImageKind(image->kind()));
  return text;
}

/// What a rank takes at a time: "2 microbatches of 4, attention within
/// documents".
std::string microbatchText(const plan::Plan &plan) {
  std::string text = absl::StrCat(counted(plan.microbatches(), "microbatch"),
                                  " of ", plan.micro_batch());
  constexpr std::pair<plan::InputKind, const char *> told[] = {
      {plan::InputKind::documents, ", attention within documents"},
      {plan::InputKind::document_positions, ", positions of documents"},
      {plan::InputKind::inner_targets, ", no loss at their ends"}};
  for (const auto &[kind, words] : told)
    if (plan::reads(plan, kind))
      text += words;
  return text;
}

/// "f32 sums of 16 microbatches": what gradients are kept in.
std::string gradientsText(const plan::Plan &plan) {
  const plan::Program &program = *plan.programs()->Get(0);
  const auto &parameters = orEmpty(program.parameters());
  uint32_t gradient = parameters.size() > 0
                          ? plan::gradientView(*parameters.Get(0))
                          : plan::noView;
  if (gradient == plan::noView)
    return "";
  plan::DType type = program.views()->Get(gradient)->dtype();
  std::string text =
      absl::StrCat("\n  sums    gradients in ", plan::EnumNameDType(type));
  if (plan.microbatches() == 1)
    return text;
  absl::StrAppend(&text, " over ", counted(plan.microbatches(), "microbatch"));
  if (type == plan::DType::bf16)
    absl::StrAppend(&text, ", an error of up to ",
                    spec::percentOfBf16Sum(plan.microbatches()));
  return text;
}

std::string header(const plan::Plan &plan) {
  uint64_t tokens = uint64_t{plan.global_batch()} * plan.sequence();
  return absl::StrCat(clean(plan.source_name(), "a model"), ": ",
                      countText(plan.parameter_count()), " parameters, ",
                      plan::EnumNameDType(plan.compute()), ", ",
                      targetText(plan), "\n  mesh    ", meshText(plan),
                      "\n  step    ", counted(plan.global_batch(), "sequence"),
                      " of ", counted(plan.sequence(), "token"), " = ",
                      counted(tokens, "token"), "; on each rank ",
                      microbatchText(plan), gradientsText(plan), "\n  flops   ",
                      countText(plan.model_flops_per_step()),
                      " a step of the model: ",
                      countText(std::floor(plan.model_flops_per_step() /
                                           static_cast<double>(tokens))),
                      " a token\n  made by ", clean(plan.producer()),
                      ", source ", clean(plan.source_hash()), "\n");
}

std::string where(const Listing &listing, uint64_t index) {
  if (index >= listing.size())
    return "before the first instruction";
  return absl::StrCat("instruction ", index, ", ", clean(listing[index].name()),
                      " (", operationKind(listing[index]), ", ",
                      listing.phaseOf(index).name, ")");
}

/// The first instruction that writes `buffer`.
std::string writerOf(const plan::Program &program, const Listing &listing,
                     uint32_t buffer) {
  for (uint64_t i = 0; i < listing.size(); ++i) {
    bool found = false;
    plan::forEachOperand(listing[i], [&](const plan::Operand &operand) {
      found |= operand.written &&
               program.views()->Get(operand.view)->buffer() == buffer;
    });
    if (found)
      return clean(listing[i].name());
  }
  return "-";
}

std::string liveText(const plan::Program &program, const Listing &listing,
                     const MemoryUse &use) {
  std::string text =
      absl::StrCat("\nMost is live at ", where(listing, use.fullestAt), ": ",
                   bytesText(use.fullestBytes), ", of which ",
                   bytesText(use.persistentBytes), " always.");
  if (use.liveAtFullest.empty())
    return text + "\n";
  text += " The others:\n";
  Table table({"buffer", "kind", ">bytes", "written by"});
  for (size_t i = 0; i < use.liveAtFullest.size() && i < shownBuffers; ++i) {
    const plan::Buffer &buffer = *program.buffers()->Get(use.liveAtFullest[i]);
    table.add(
        {absl::StrCat(clean(buffer.name()),
                      buffer.copies() > 1
                          ? absl::StrCat(", ", counted(buffer.copies(), "copy"))
                          : ""),
         plan::EnumNameBufferKind(buffer.kind()),
         bytesText(buffer.size_bytes()),
         writerOf(program, listing, use.liveAtFullest[i])});
  }
  text += table.render();
  if (use.liveAtFullest.size() > shownBuffers)
    absl::StrAppend(&text, "  and ", use.liveAtFullest.size() - shownBuffers,
                    " smaller ones\n");
  return text;
}

std::string memoryText(const plan::Plan &plan, const plan::Program &program,
                       const Listing &listing) {
  MemoryUse use = measureMemory(program, listing);
  uint64_t peak = saturatingAdd(use.arenaBytes, use.libraryBytes);
  Table table({"kind", ">most at once", ">of peak", "what"});
  for (size_t kind = 0; kind < numBufferKinds; ++kind)
    if (use.mostOfKind[kind] > 0)
      table.add({plan::EnumNameBufferKind(static_cast<plan::BufferKind>(kind)),
                 bytesText(use.mostOfKind[kind]),
                 percentText(use.mostOfKind[kind], peak), meaning[kind]});
  if (use.libraryBytes > 0)
    table.add(
        {"libraries", bytesText(use.libraryBytes),
         percentText(use.libraryBytes, peak),
         plan.device() == plan::Device::cuda
             ? "scratch of products and attention, one after the other"
             : "scratch of library calls, for one thread a rank; each further "
               "thread takes as much"});
  return absl::StrCat("\nMemory of a rank: ", bytesText(peak), " (arena of ",
                      exactBytesText(use.arenaBytes), ")\n", table.render(),
                      hostText(program, listing),
                      "Not counted: the program and its libraries, their "
                      "communication buffers, data that is read ahead, copies "
                      "for checkpoints\n",
                      liveText(program, listing, use));
}

std::string copyText(const plan::Plan &plan) {
  return absl::StrCat("\nCheckpoints: a copy of the states, ",
                      bytesText(plan::mostSavedBytes(plan)),
                      " on a rank; none with --checkpoint-sync\n");
}

std::string workText(const Listing &listing) {
  std::vector<Work> kinds = workByKind(listing);
  uint64_t flops = 0;
  for (const Work &work : kinds)
    flops = saturatingAdd(flops, work.flops);
  Table table({"operation", ">instructions", ">runs", ">flops", ">of all",
               ">least traffic"});
  for (const Work &work : kinds)
    table.add({work.kind, absl::StrCat(work.instructions),
               absl::StrCat(work.runs), countText(work.flops),
               percentText(work.flops, flops), bytesText(work.bytes)});
  return absl::StrCat("\nWork of a rank in a step: ", countText(flops),
                      " flops\n", table.render());
}

std::string trafficText(const plan::Plan &plan, const plan::Program &program,
                        const Listing &listing) {
  std::vector<Traffic> list = traffic(plan, program, listing);
  if (list.empty())
    return "\nNothing moves between ranks.\n";
  Table table({"collective", "axis", ">ranks", "phase", ">count", ">buffers",
               ">sent by a rank", "cause"});
  for (const Traffic &t : list)
    table.add({t.kind, t.axis, absl::StrCat(t.group), t.phase,
               absl::StrCat(t.count), bytesText(t.bufferBytes),
               bytesText(t.bytesSentPerRank), t.cause});
  return absl::StrCat("\nWhat moves between ranks in a step\n", table.render());
}

std::string phasesText(const plan::Program &program, const Listing &listing) {
  Table table({"phase", ">runs a step", ">instructions", ">flops of a run",
               ">least traffic"});
  for (const Phase &phase : listing.phases()) {
    Work work = workOfPhase(listing, phase);
    table.add({phase.name,
               phase.runs == 0 ? "at start" : absl::StrCat(phase.runs),
               absl::StrCat(work.instructions), countText(work.flops),
               bytesText(work.bytes)});
  }
  return absl::StrCat("\nPhases\n", table.render(),
                      "\nActions of a step: ", actionsText(program), "\n");
}
} // namespace

std::string peakMemory(const plan::Plan &plan) {
  const plan::Program *most = plan.programs()->Get(0);
  for (const plan::Program *program : *plan.programs())
    if (program->arena_bytes() > most->arena_bytes())
      most = program;
  return memoryText(plan, *most, Listing(*most));
}

std::string text(const plan::Plan &plan, const TextOptions &options) {
  std::string text = absl::StrCat(header(plan), choicesText(plan),
                                  wholeText(plan), pipelineText(plan));
  for (uint32_t i = 0; i < plan.programs()->size(); ++i) {
    const plan::Program &program = *plan.programs()->Get(i);
    Listing listing(program);
    if (plan.programs()->size() > 1)
      absl::StrAppend(&text, "\n== Program ", i, ", ", ranksText(plan, i),
                      "\n");
    absl::StrAppend(
        &text, memoryText(plan, program, listing), i == 0 ? copyText(plan) : "",
        workText(listing), productsText(program, listing),
        sharedAttentionText(plan, program), trafficText(plan, program, listing),
        phasesText(program, listing), estimateText(plan, program, listing));
    if (options.schedule)
      text += instructionsText(plan, program, listing);
  }
  return text;
}

} // namespace meshwork::explain
