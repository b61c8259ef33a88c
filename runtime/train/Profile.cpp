#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/io/Files.h"
#include "runtime/io/IoStatus.h"
#include "runtime/rank/Json.h"
#include "runtime/rank/Names.h"
#include "runtime/rank/Recorder.h"
#include "runtime/train/ProfileShapes.h"
#include <algorithm>
#include <map>

namespace meshwork::runtime {
namespace {
constexpr size_t tableRows = 40;

/// One instruction of one program, over its ranks.
struct Row {
  const plan::Instruction *source;
  const Rank *rank; // one of those that run it
  std::string list;
  double nsPerStep = 0, waitNsPerStep = 0, callsPerStep = 0;
};

std::vector<Row> collect(const Ranks &ranks, const Recorders &recorders) {
  std::map<const plan::Program *, double> sharers;
  for (const auto &rank : ranks)
    if (rank)
      ++sharers[&rank->program()];
  std::vector<Row> rows;
  std::map<const plan::Instruction *, size_t> rowOf;
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (!ranks[r])
      continue;
    double weight =
        sharers[&ranks[r]->program()] *
        std::max<double>(1, static_cast<double>(recorders[r]->summedSteps()));
    const plan::ActionTable &table = ranks[r]->table();
    for (uint32_t list = 0; list < table.lists().size(); ++list) {
      if (table.runsOf(list) == 0)
        continue; // in a step
      for (uint32_t i = 0; i < table.lists()[list].size; ++i) {
        const plan::Instruction *source = &ranks[r]->instruction(list, i);
        auto [at, isNew] = rowOf.try_emplace(source, rows.size());
        if (isNew)
          rows.push_back(
              {source, ranks[r].get(), plan::nameOf(table.lists()[list])});
        const InstructionTotal &total = recorders[r]->total(list, i);
        Row &row = rows[at->second];
        row.nsPerStep += static_cast<double>(total.ns) / weight;
        row.waitNsPerStep += static_cast<double>(total.waitNs) / weight;
        row.callsPerStep += static_cast<double>(total.calls) / weight;
      }
    }
  }
  return rows;
}

/// "Matmul", "Collective (channel 2)".
std::string operationOf(const plan::Instruction &source) {
  std::string text = plan::EnumNameOperation(source.op_type());
  if (source.channel() > 0)
    absl::StrAppend(&text, " (channel ", source.channel(), ")");
  return text;
}

struct Group {
  std::string name, op;
  bool hidden = false; // on a communication thread, beside the others
  double ns = 0, waitNs = 0, calls = 0, flops = 0, bytes = 0;
};

std::vector<Group> grouped(const std::vector<Row> &rows) {
  std::map<std::pair<std::string, std::string>, Group> groups;
  for (const Row &row : rows) {
    std::string name =
        withoutNumbers(row.source->name() ? row.source->name()->str() : "");
    std::string op = operationOf(*row.source);
    Group &group = groups[{name, op}];
    group.name = name;
    group.op = op;
    group.hidden = op.ends_with(')');
    group.ns += row.nsPerStep;
    group.waitNs += row.waitNsPerStep;
    group.calls += row.callsPerStep;
    group.flops += row.callsPerStep * static_cast<double>(row.source->flops());
    group.bytes += row.callsPerStep * static_cast<double>(row.source->bytes());
  }
  std::vector<Group> sorted;
  for (auto &[key, group] : groups)
    sorted.push_back(std::move(group));
  std::sort(sorted.begin(), sorted.end(), [](const Group &a, const Group &b) {
    return a.ns != b.ns ? a.ns > b.ns : a.name < b.name;
  });
  return sorted;
}

double rate(double amount, double ns) { return ns > 0 ? amount / ns : 0; }
} // namespace

std::string profileTable(const Ranks &ranks, const Recorders &recorders) {
  std::vector<Group> groups = grouped(collect(ranks, recorders));
  double total = 0;
  for (const Group &group : groups)
    total += group.hidden ? 0 : group.ns;
  std::string text = absl::StrFormat(
      "%9s %6s %7s %9s %8s %9s  %-14s %s\n", "ms/step", "share", "calls",
      "GFLOP/s", "GB/s", "wait ms", "operation", "instruction");
  for (size_t i = 0; i < std::min(groups.size(), tableRows); ++i) {
    const Group &g = groups[i];
    absl::StrAppendFormat(
        &text, "%9.3f %5.1f%% %7.0f %9.1f %8.1f %9.3f  %-14s %s\n", g.ns / 1e6,
        total > 0 && !g.hidden ? 100 * g.ns / total : 0, g.calls,
        rate(g.flops, g.ns), rate(g.bytes, g.ns), g.waitNs / 1e6, g.op, g.name);
  }
  if (groups.size() > tableRows)
    absl::StrAppendFormat(&text, "and %d more rows\n",
                          groups.size() - tableRows);
  absl::StrAppendFormat(&text, "%9.3f ms of instructions a step and rank\n",
                        total / 1e6);
  return text;
}

absl::Status writeProfileJson(const std::string &path, const Ranks &ranks,
                              const Recorders &recorders) {
  std::string json = "{\"instructions\":[";
  const char *separator = "\n";
  for (const Row &row : collect(ranks, recorders)) {
    absl::StrAppendFormat(
        &json,
        "%s{\"name\":%s,\"operation\":\"%s\",\"phase\":\"%s\",\"calls_per_"
        "step\":%.9g,"
        "\"ms_per_step\":%.9g,\"wait_ms_per_step\":%.9g,\"flops\":%d,\"bytes\":"
        "%d,"
        "\"gflops_per_s\":%.6g,\"gbytes_per_s\":%.6g%s}",
        separator, jsonString(row.source->name()), operationOf(*row.source),
        row.list, row.callsPerStep, row.nsPerStep / 1e6,
        row.waitNsPerStep / 1e6, row.source->flops(), row.source->bytes(),
        rate(row.callsPerStep * static_cast<double>(row.source->flops()),
             row.nsPerStep),
        rate(row.callsPerStep * static_cast<double>(row.source->bytes()),
             row.nsPerStep),
        shapeMembers(*row.rank, *row.source));
    separator = ",\n";
  }
  json += "\n]}\n";
  return fromIo(writeWhole(path, json));
}

} // namespace meshwork::runtime
