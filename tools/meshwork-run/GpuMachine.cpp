#include "tools/meshwork-run/GpuMachine.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/Cost/Times.h"
#include <algorithm>
#include <cstdlib>

namespace meshwork {
namespace {
using cost::LinkClass;
using cost::Machine;
using cost::numArithmetics;
using runtime::MeasuredGpus;
constexpr size_t f32 = 0, bf16 = 1, fp8 = 2;

/// A rate that the file did not have was read as `other`, and goes on to be.
void follow(double &rate, double before, double other, double now) {
  if (before == other)
    rate = now;
}

/// Products, and what is as fast as they are unless a file says otherwise.
void setProducts(const runtime::cuda::GpuWork &work, Machine &machine) {
  const Machine before = machine;
  machine.flops[f32] = rounded(work.f32.flops);
  machine.flops[bf16] = rounded(work.bf16.flops);
  if (work.fp8.flops > 0)
    machine.flops[fp8] = rounded(work.fp8.flops);
  else
    follow(machine.flops[fp8], before.flops[fp8], before.flops[bf16],
           machine.flops[bf16]);
  // Training multiplies bf16; a time that f32 takes longer is no part of it.
  machine.halfSize = rounded(work.bf16.halfSize);
  machine.products = {};
  for (size_t i = 0; i < numArithmetics; ++i) {
    follow(machine.attention[i], before.attention[i], before.flops[i],
           machine.flops[i]);
    follow(machine.gradient[i], before.gradient[i], before.attention[i],
           machine.attention[i]);
    follow(machine.peak[i], before.peak[i], before.flops[i], machine.flops[i]);
  }
}

/// In bf16, which the measured kernels take.
void setAttention(const runtime::cuda::GpuWork &work, Machine &machine) {
  if (work.forward.flops == 0)
    return;
  machine.attention[bf16] = rounded(work.forward.flops);
  machine.halfHead = rounded(work.forward.halfHead);
  machine.halfKeys = rounded(work.forward.halfKeys);
  machine.gradient[bf16] = rounded(work.gradient.flops);
  machine.halfHeadOfGradient = rounded(work.gradient.halfHead);
  machine.halfKeysOfGradient = rounded(work.gradient.halfKeys);
}

/// A file needs a link, so the default's is there where none was measured.
bool isGuess(const Machine &machine, size_t link) {
  const Machine &usual = cost::defaultMachine(spec::Device::cuda);
  return machine.links[link].isGiven &&
         machine.links[link] == usual.links[link];
}

/// A guess goes when there is something better.
void dropGuesses(Machine &machine) {
  for (size_t i = 0; i < cost::numLinkClasses; ++i)
    if (isGuess(machine, i))
      machine.links[i].isGiven = false;
}

/// Ranks of a node that reach others at the same time share its adapters.
void setLinks(const MeasuredGpus &found, Machine &machine) {
  if (found.withinNode || found.betweenNodes)
    dropGuesses(machine);
  if (found.withinNode)
    machine.links[static_cast<size_t>(LinkClass::withinNode)] =
        linkOf(*found.withinNode, /*takesCores=*/false);
  if (!found.betweenNodes)
    return;
  cost::Link link = linkOf(*found.betweenNodes, /*takesCores=*/false);
  if (machine.adapters == 0 && found.ranksPerNode > 1)
    machine.adapters = found.ranksPerNode; // each rank had its part
  if (machine.adapters > 0) // several ranks on one; a rank alone has its own
    link.bandwidth = rounded(
        link.bandwidth * std::max(1.0, static_cast<double>(found.ranksPerNode) /
                                           machine.adapters));
  machine.links[static_cast<size_t>(LinkClass::betweenNodes)] = link;
}

std::string flopsText(double flops) {
  return absl::StrFormat("%.3g Tflop/s", flops / 1e12);
}
std::string bytesText(double bytes) {
  return absl::StrFormat("%.3g GB/s", bytes / 1e9);
}

std::string textOf(const Machine &machine, size_t i) {
  return absl::StrFormat(
      "link %s: %.1f us, %s", cost::nameOf(static_cast<LinkClass>(i)),
      machine.links[i].latency * 1e6, bytesText(machine.links[i].bandwidth));
}

const std::optional<runtime::MeasuredLink> *
measuredOf(const MeasuredGpus &found, size_t link) {
  switch (static_cast<LinkClass>(link)) {
  case LinkClass::withinNode:
    return &found.withinNode;
  case LinkClass::betweenNodes:
    return &found.betweenNodes;
  case LinkClass::inProcess:
    break;
  }
  return nullptr; // GPUs of one process are those of a node
}

bool isMeasured(const MeasuredGpus &found, size_t link) {
  const auto *measured = measuredOf(found, link);
  return measured && measured->has_value();
}
} // namespace

double rounded(double value) {
  return std::strtod(absl::StrFormat("%.3g", value).c_str(), nullptr);
}

cost::Link linkOf(const runtime::MeasuredLink &found, bool takesCores) {
  auto sent = static_cast<double>(cost::bytesSent(
      plan::CollectiveKind::all_reduce, found.bytes, found.ranks));
  double moving = std::max(found.largeSeconds - found.smallSeconds,
                           1e-3 * found.largeSeconds);
  return {rounded(found.smallSeconds), rounded(sent / moving), takesCores,
          /*isGiven=*/true};
}

Machine machineOfGpus(const MeasuredGpus &found,
                      const std::optional<Machine> &before) {
  Machine machine = before ? *before : cost::defaultMachine(spec::Device::cuda);
  if (!before) {
    machine.name = "measured";
    machine.ranksPerNode = 1;
  }
  machine.arch = found.arch;
  // A run may have some of a node's GPUs alone.
  machine.ranksPerNode = std::max(machine.ranksPerNode, found.ranksPerNode);
  setProducts(found.work, machine);
  setAttention(found.work, machine);
  const double memory = rounded(found.work.copyBytes);
  follow(machine.kernels, machine.kernels, machine.memory, memory);
  machine.memory = memory;
  machine.launch = rounded(found.work.launchSeconds);
  machine.host.bandwidth = rounded(found.work.hostBytes);
  machine.host.latency = rounded(found.work.hostSeconds);
  machine.host.sharedBy = 0; // all ranks copied at the same time
  setLinks(found, machine);
  return machine;
}

std::vector<std::string> linesOf(const MeasuredGpus &found,
                                 const Machine &machine) {
  std::vector<std::string> lines = {
      absl::StrCat(found.ranks, found.ranks == 1 ? " GPU" : " GPUs", ", ",
                   found.ranksPerNode, " on each node: ", found.name),
      absl::StrFormat(
          "products: f32 %s, bf16 %s%s; half of that at %.3g Mflop",
          flopsText(machine.flops[f32]), flopsText(machine.flops[bf16]),
          found.work.fp8.flops > 0
              ? absl::StrCat(", fp8 ", flopsText(machine.flops[fp8]))
              : "",
          machine.halfSize / 1e6),
      absl::StrFormat("copies: %s; a launch: %.3g us",
                      bytesText(machine.memory), machine.launch * 1e6),
      absl::StrFormat("the host's memory: %.3g us, %s each way",
                      machine.host.latency * 1e6,
                      bytesText(machine.host.bandwidth))};
  if (found.work.forward.flops > 0)
    lines.push_back(absl::StrFormat("attention in bf16: %s, its gradient %s",
                                    flopsText(machine.attention[bf16]),
                                    flopsText(machine.gradient[bf16])));
  for (size_t i = 0; i < cost::numLinkClasses; ++i)
    if (isMeasured(found, i))
      lines.push_back(textOf(machine, i));
  return lines;
}

std::vector<std::string> notMeasured(const MeasuredGpus &found,
                                     const Machine &machine) {
  std::vector<std::string> lines;
  if (found.work.fp8.flops == 0)
    lines.push_back(absl::StrCat("flops.fp8 is ", flopsText(machine.flops[fp8]),
                                 ": this GPU or its cuBLASLt has no products "
                                 "of 8 bits"));
  lines.push_back(absl::StrCat(
      "memory.kernels is ", bytesText(machine.kernels), ", ",
      machine.kernels == machine.memory ? "as copies" : "as it was"));
  bool isAsProducts = machine.attention[bf16] == machine.flops[bf16];
  if (!found.work.whyNoAttention.empty())
    lines.push_back(absl::StrCat("attention.bf16 is ",
                                 flopsText(machine.attention[bf16]), ", ",
                                 isAsProducts ? "as products" : "as it was",
                                 ": ", found.work.whyNoAttention));
  for (size_t i = 0; i < cost::numLinkClasses; ++i)
    if (machine.links[i].isGiven && !isMeasured(found, i))
      lines.push_back(absl::StrCat(textOf(machine, i), ": ",
                                   isGuess(machine, i) ? "a guess, since "
                                                         "a file needs a link"
                                                       : "as it was"));
  return lines;
}

} // namespace meshwork
