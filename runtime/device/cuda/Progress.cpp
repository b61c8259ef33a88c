#include "runtime/device/cuda/Progress.h"
#include "absl/strings/str_cat.h"
#include "lib/Plan/Checked.h"
#include "lib/Plan/StatusMacros.h"
#include <atomic>
#include <cstring>
#include <numeric>

namespace meshwork::runtime::cuda {

absl::Status Progress::open(const Gpu &of, const QueueOwner &owner) {
  gpu = of.ordinal();
  constexpr size_t bytes = numbers * sizeof(uint32_t);
  MESHWORK_ASSIGN_OR_RETURN(side, Queue::create(of, owner, /*urgent=*/true));
  MESHWORK_ASSIGN_OR_RETURN(passed, EventHandle::create(of));
  MESHWORK_ASSIGN_OR_RETURN(table, DeviceMemory::create(of, bytes));
  constexpr size_t words = 2 * sizeof(uint32_t);
  MESHWORK_ASSIGN_OR_RETURN(last, PinnedMemory::create(of, words));
  std::memset(last.data(), 0, words);
  std::vector<uint32_t> values(numbers);
  std::iota(values.begin(), values.end(), 0);
  MESHWORK_RETURN_IF_ERROR(
      of.driver().check(of.driver().copyToDevice(table.address(), values.data(),
                                                 bytes, side->stream()),
                        "copying the numbers of work"));
  MESHWORK_RETURN_IF_ERROR(side->finish());
  driver = &of.driver();
  return absl::OkStatus();
}

uint64_t Progress::begin(const Work &work) {
  isNoted = driver && count - ended() < numbers - 1;
  if (!isNoted)
    return UINT64_MAX;
  works[count % numbers] = work;
  return ++count;
}

absl::Status Progress::end(Queue &queue) {
  if (!isNoted)
    return absl::OkStatus();
  bool inOrder = at(count - 1).isResult;
  if (!inOrder) {
    MESHWORK_RETURN_IF_ERROR(queue.record(passed));
    MESHWORK_RETURN_IF_ERROR(side->waitFor(passed));
  }
  return driver->check(
      driver->copyToHost(last.data() + inOrder * sizeof(uint32_t),
                         table.address() + count % numbers * sizeof(uint32_t),
                         sizeof(uint32_t), (inOrder ? queue : *side).stream()),
      "copying the number of work");
}

uint64_t Progress::ended() const {
  if (!driver)
    return 0;
  auto *words = reinterpret_cast<uint32_t *>(last.data());
  for (uint32_t *word : {words, words + 1}) {
    uint32_t seen =
        std::atomic_ref<uint32_t>(*word).load(std::memory_order_acquire);
    // Fewer than `numbers` are under way, so the difference is known; the
    // other word may be older than what is known.
    uint64_t number = known + (seen + numbers - known % numbers) % numbers;
    if (number <= count)
      known = number;
  }
  return known;
}

bool Progress::mayMeet() const {
  uint64_t done = ended();
  return done == count || at(done).meets;
}

std::string Progress::textOf(const Work &work) const {
  if (work.isResult)
    return "the copy of a result";
  const ListRun &list = work.list;
  auto name = [&](uint32_t index) {
    const plan::Instruction &one = program.instruction(list.list, index);
    return absl::StrCat(plan::quote(one.name()), " (",
                        plan::EnumNameOperation(one.op_type()), ", ",
                        program.nameOf(list.list, index), ")");
  };
  std::string text = name(list.begin);
  if (list.end - list.begin > 1)
    absl::StrAppend(&text, " to ", name(list.end - 1));
  if (list.list == program.table.onceList())
    return text;
  if (plan::isOfMicrobatch(program.table.lists()[list.list].kind))
    absl::StrAppend(&text, " of microbatch ", list.microbatch);
  return absl::StrCat(text, " of step ", list.step);
}

std::string Progress::place() const {
  uint64_t done = ended();
  return done == count ? absl::StrCat("the end of the work of GPU ", gpu)
                       : absl::StrCat(textOf(at(done)), " on GPU ", gpu);
}

std::string Progress::describe(bool afterFault) const {
  uint64_t done = ended();
  std::string text =
      done == count
          ? absl::StrCat("GPU ", gpu, " has ended all that the rank gave it")
          : absl::StrCat("GPU ", gpu,
                         afterFault ? " is not known to have ended "
                                    : " has not ended ",
                         textOf(at(done)));
  uint64_t oldest = count < numbers ? 0 : count - numbers;
  while (done > oldest && at(done - 1).isResult)
    --done;
  if (done > oldest)
    absl::StrAppend(&text, "; the last known to have ended is ",
                    textOf(at(done - 1)));
  return text;
}

} // namespace meshwork::runtime::cuda
