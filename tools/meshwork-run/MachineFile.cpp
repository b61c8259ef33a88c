#include "tools/meshwork-run/MachineFile.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/Spec/Words.h"
#include "meshwork/Runtime/ExitCode.h"
#include "runtime/io/Files.h"
#include "runtime/io/IoStatus.h"
#include "tools/meshwork-run/GpuMachine.h"

namespace meshwork {
namespace {
using cost::LinkClass;
using cost::Machine;
using runtime::MeasuredLink;
using runtime::MeasuredMachine;

absl::Status leftAsItIs(const std::string &path, const std::string &kind,
                        const std::string &why) {
  return runtime::withExitCode(
      absl::FailedPreconditionError(
          absl::StrCat(quote(path), " is there and is no machine file", kind,
                       ", so it is left as it is; give another path. ", why)),
      runtime::ExitCode::cannotCreate);
}

/// The machine file that is at `path`; nothing where no file is.
absl::StatusOr<std::optional<Machine>> machineAt(const std::string &path,
                                                 spec::Device device) {
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
    return leftAsItIs(path, "", result.diagnostics[0].text());
  if (result.machine->device != device)
    return leftAsItIs(
        path, absl::StrCat(" of device ", quote(spec::wordOf(device))), "");
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
      // Copies between ranks of a node are made by the cores that compute.
      machine.links[i] = linkOf(**links[i], static_cast<LinkClass>(i) !=
                                                LinkClass::betweenNodes);
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

/// `remarks` go into the file as comments.
absl::Status writeMachine(const std::string &path, const Machine &machine,
                          const std::vector<std::string> &remarks) {
  std::string text = "# Measured by meshwork-run --measure-machine.\n";
  for (const std::string &remark : remarks)
    absl::StrAppend(&text, "# ", remark, "\n");
  text += cost::print(machine);
  if (cost::MachineResult again = cost::readMachine(text, path); !again.machine)
    return absl::InternalError(absl::StrCat("the measurement is no machine: ",
                                            textOf(again.diagnostics)));
  return runtime::fromIo(runtime::writeWhole(path, text));
}

absl::Status write(const std::string &path, const MeasuredMachine &found) {
  absl::StatusOr<std::optional<Machine>> before =
      machineAt(path, spec::Device::cpu);
  if (!before.ok())
    return runtime::fromIo(before.status());
  Machine machine = machineOf(found, *before);
  absl::Status status = writeMachine(path, machine, {});
  if (status.ok())
    tell(machine, path);
  return status;
}

absl::Status write(const std::string &path,
                   const runtime::MeasuredGpus &found) {
  absl::StatusOr<std::optional<Machine>> before =
      machineAt(path, spec::Device::cuda);
  if (!before.ok())
    return runtime::fromIo(before.status());
  Machine machine = machineOfGpus(found, *before);
  std::vector<std::string> remarks;
  for (const std::string &one : notMeasured(found, machine))
    remarks.push_back(absl::StrCat("not measured: ", one));
  absl::Status status = writeMachine(path, machine, remarks);
  if (!status.ok())
    return status;
  for (const std::string &line : linesOf(found, machine))
    absl::PrintF("%s\n", printable(line));
  for (const std::string &line : remarks)
    absl::PrintF("%s\n", line);
  absl::PrintF("written to %s\n", printable(path));
  return absl::OkStatus();
}

absl::Status checkPath(const std::string &path) {
  if (path != "-")
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      "--measure-machine \"-\": expected a file, in which links that were "
      "measured before are kept");
}
} // namespace

std::string machineText(const runtime::MeasuredMachine &found) {
  return cost::print(machineOf(found, std::nullopt));
}

absl::Status measureMachineTo(const std::string &path,
                              const runtime::RunOptions &options) {
  if (absl::Status status = checkPath(path); !status.ok())
    return status;
  return runtime::measureMachine(options, [&](const MeasuredMachine &found) {
    return write(path, found);
  });
}

absl::Status measureGpusTo(const std::string &path,
                           const runtime::RunOptions &options) {
  if (absl::Status status = checkPath(path); !status.ok())
    return status;
  return runtime::measureGpus(options, [&](const runtime::MeasuredGpus &found) {
    return write(path, found);
  });
}

} // namespace meshwork
