#include "tools/meshwork-run/MachineFile.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/Cost/Times.h"
#include "meshwork/Runtime/ExitCode.h"
#include "runtime/io/Files.h"
#include "runtime/io/IoStatus.h"
#include <cstdlib>

namespace meshwork {
namespace {
using cost::LinkClass;
using cost::Machine;
using runtime::MeasuredLink;
using runtime::MeasuredMachine;

/// Measurements have no more digits than these.
double rounded(double value) {
  return std::strtod(absl::StrFormat("%.3g", value).c_str(), nullptr);
}

/// Copies between ranks of a node are made by the cores that compute.
cost::Link linkOf(const MeasuredLink &found, LinkClass link) {
  auto sent = static_cast<double>(cost::bytesSent(
      plan::CollectiveKind::all_reduce, found.bytes, found.ranks));
  double moving = std::max(found.largeSeconds - found.smallSeconds,
                           1e-3 * found.largeSeconds);
  return {rounded(found.smallSeconds), rounded(sent / moving),
          link != LinkClass::betweenNodes, /*isGiven=*/true};
}

/// The machine file that is at `path`; nothing where no file is.
absl::StatusOr<std::optional<Machine>> machineAt(const std::string &path) {
  auto file = runtime::InputFile::open(path);
  if (absl::IsNotFound(file.status()))
    return std::nullopt;
  if (!file.ok())
    return file.status();
  std::string text(std::min<uint64_t>(file->size(), cost::maxMachineBytes + 1),
                   '\0');
  if (absl::Status status = file->readAt(0, text.data(), text.size());
      !status.ok())
    return status;
  cost::MachineResult result = cost::readMachine(text, path);
  if (!result.machine)
    return runtime::withExitCode(
        absl::FailedPreconditionError(
            absl::StrCat(quote(path),
                         " is there and is no machine file, so it is left as "
                         "it is; give another path. ",
                         result.diagnostics[0].text())),
        runtime::ExitCode::cannotCreate);
  return result.machine;
}

/// `before` has the links that were not measured now, and the memory that
/// plans may take: what else needs some is not to be measured.
Machine machineOf(const MeasuredMachine &found,
                  const std::optional<Machine> &before) {
  Machine machine;
  machine.name = before ? before->name : "measured";
  machine.ranksPerNode = machine.cores = found.cores;
  const runtime::WorkRates &rates = found.rates;
  // 8 bits by way of f32, as bf16.
  const runtime::TypeRates *types[] = {&rates.f32, &rates.bf16, &rates.bf16};
  for (size_t i = 0; i < cost::numArithmetics; ++i) {
    machine.flops[i] = rounded(types[i]->products);
    machine.attention[i] = rounded(types[i]->attention);
    machine.gradient[i] = rounded(types[i]->gradient);
  }
  machine.halfSize = rounded((rates.f32.halfSize + rates.bf16.halfSize) / 2);
  machine.memory = rounded(rates.copyBytes);
  machine.kernels = rounded(rates.kernelBytes);
  machine.host.bandwidth = machine.usualHost(); // It copies within this memory.
  machine.launch = rounded(found.launchSeconds);
  machine.handOver = cost::defaultMachine(spec::Device::cpu).handOver;
  if (before) {
    machine.links = before->links; // of which the file gets those it had
    machine.capacity = before->capacity;
  }
  const std::optional<MeasuredLink> *links[] = {
      &found.inProcess, &found.withinNode, &found.betweenNodes};
  for (size_t i = 0; i < cost::numLinkClasses; ++i)
    if (*links[i])
      machine.links[i] = linkOf(**links[i], static_cast<LinkClass>(i));
  return machine;
}

void tell(const Machine &machine, const std::string &path) {
  absl::PrintF("%d cores: f32 %.0f and bf16 %.0f Gflop/s, memory %.1f GB/s, a "
               "launch %.1f us\n",
               machine.cores, machine.flops[0] / 1e9, machine.flops[1] / 1e9,
               machine.memory / 1e9, machine.launch * 1e6);
  absl::PrintF("attention: f32 %.0f and bf16 %.0f Gflop/s, backward %.0f and "
               "%.0f; kernels: %.1f GB/s; half of a product's rate at %.1f "
               "Mflop\n",
               machine.attention[0] / 1e9, machine.attention[1] / 1e9,
               machine.gradient[0] / 1e9, machine.gradient[1] / 1e9,
               machine.kernels / 1e9, machine.halfSize / 1e6);
  for (size_t i = 0; i < cost::numLinkClasses; ++i)
    if (const cost::Link &link = machine.links[i]; link.isGiven)
      absl::PrintF("link %s: %.1f us, %.2f GB/s\n",
                   cost::nameOf(static_cast<LinkClass>(i)), link.latency * 1e6,
                   link.bandwidth / 1e9);
  absl::PrintF("written to %s\n", printable(path));
}

absl::Status write(const std::string &path, const MeasuredMachine &found) {
  absl::StatusOr<std::optional<Machine>> before = machineAt(path);
  if (!before.ok())
    return runtime::fromIo(before.status());
  Machine machine = machineOf(found, *before);
  std::string text = cost::print(machine);
  if (cost::MachineResult again = cost::readMachine(text, path); !again.machine)
    return absl::InternalError(absl::StrCat("the measurement is no machine: ",
                                            textOf(again.diagnostics)));
  absl::Status status = runtime::fromIo(runtime::writeWhole(
      path,
      absl::StrCat("# Measured by meshwork-run --measure-machine.\n", text)));
  if (status.ok())
    tell(machine, path);
  return status;
}
} // namespace

std::string machineText(const runtime::MeasuredMachine &found) {
  return cost::print(machineOf(found, std::nullopt));
}

absl::Status measureMachineTo(const std::string &path,
                              const runtime::RunOptions &options) {
  if (path == "-")
    return absl::InvalidArgumentError(
        "--measure-machine \"-\": expected a file, in which links that were "
        "measured before are kept");
  return runtime::measureMachine(options, [&](const MeasuredMachine &found) {
    return write(path, found);
  });
}

} // namespace meshwork
