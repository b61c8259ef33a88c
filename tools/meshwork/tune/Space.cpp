#include "tools/meshwork/tune/Space.h"

#include "lib/Spec/Words.h"

namespace meshwork::tune {
namespace {

bool isPowerOfTwo(uint32_t number) { return (number & (number - 1)) == 0; }

/// Of each rank of a pipeline: two, and all that share the layers equally.
/// Where none does, powers of two. Two also where there are too few layers, so
/// that somebody refuses them.
std::vector<uint32_t> virtualStages(uint32_t ranks, int64_t layers) {
  std::vector<uint32_t> numbers = {2};
  bool isAnyEqual = layers % ranks == 0;
  for (uint32_t number = 3; int64_t{ranks} * number <= layers; ++number)
    if (isAnyEqual ? layers % (int64_t{ranks} * number) == 0
                   : isPowerOfTwo(number))
      numbers.push_back(number);
  return numbers;
}

/// All that a key takes.
template <typename E> std::vector<const char *> textsOf() {
  std::vector<const char *> texts;
  for (const spec::Word<E> &word : spec::words<E>())
    texts.push_back(word.text);
  return texts;
}
} // namespace

/// A CPU's memory is the host's.
Space::Space(const Specs &specs, const Facts &facts, const AxisSizes &sizes,
             uint32_t ranks, uint32_t global, bool hasHost)
    : specs(specs), facts(facts), sizes(sizes), ranks(ranks), global(global) {
  const std::string *states = specs.fixedValue("offload.optimizer");
  bool isApart = hasHost && specs.device() != spec::Device::cpu;
  offloadsAll = states && *states == "true";
  mayOffload = isApart && !states;
  mayMoveKept = isApart && !specs.fixedValue("recompute.policy");
}

std::vector<uint32_t> Space::sizesOf(const char *axis, uint32_t rest) const {
  auto given = sizes.find(axis);
  if (given == sizes.end())
    return divisorsOf(rest);
  return rest % given->second == 0 ? std::vector{given->second}
                                   : std::vector<uint32_t>();
}

Space::Words Space::wordsOf(const char *key, Words words) const {
  if (const std::string *fixed = specs.fixedValue(key))
    return {fixed->c_str()};
  if (isOdd)
    words.resize(1);
  return words;
}

std::vector<uint32_t> Space::numbersOf(const char *key,
                                       std::vector<uint32_t> numbers) const {
  const std::string *fixed = specs.fixedValue(key);
  if (!fixed) {
    if (isOdd)
      numbers.resize(1);
    return numbers;
  }
  // What is no number is refused with every spec.
  return {static_cast<uint32_t>(std::strtoul(fixed->c_str(), nullptr, 10))};
}

void Space::addAxes(const Use &use) {
  Choice choice;
  auto splitsExperts = [&](uint32_t size) {
    return size == 1 || facts.hasExperts || sizes.count("ep");
  };
  for (uint32_t pp : sizesOf("pp", ranks))
    for (uint32_t tp : sizesOf("tp", ranks / pp))
      for (uint32_t cp : sizesOf("cp", ranks / pp / tp))
        for (uint32_t ep : sizesOf("ep", ranks / pp / tp / cp)) {
          if (!splitsExperts(ep))
            continue;
          choice.pp = pp;
          choice.tp = tp;
          choice.cp = cp;
          choice.ep = ep;
          choice.dp = ranks / pp / tp / cp / ep;
          isOdd = pp > facts.layers || global % choice.dataParallel() != 0;
          addCopies(choice, use);
        }
}

bool Space::isLeft(const char *axis, uint32_t size) const {
  auto given = sizes.find(axis);
  return given == sizes.end() || given->second == size;
}

/// Over how many ranks ZeRO may split, where copies of what it splits are
/// left: those of a node, of two, four, eight or sixteen, or as --axis says.
std::vector<uint32_t> Space::partsOf(const Choice &choice) const {
  auto given = sizes.find("fsdp");
  if (given != sizes.end())
    return given->second > 1 && choice.dp % given->second == 0
               ? std::vector{given->second}
               : std::vector<uint32_t>();
  std::vector<uint32_t> parts;
  uint64_t inside = uint64_t{choice.ep} * choice.cp * choice.tp;
  for (uint64_t nodes : {1, 2, 4, 8, 16}) {
    uint64_t all = nodes * specs.ranksPerNode(), part = all / inside;
    if (all % inside == 0 && part > 1 && part < choice.dp &&
        choice.dp % part == 0)
      parts.push_back(static_cast<uint32_t>(part));
  }
  return parts;
}

/// What ranks along "dp" and "fsdp" have in common is split over the latter.
void Space::addCopies(Choice choice, const Use &use) {
  uint32_t copies = choice.dp;
  bool isLeftWhole = isLeft("dp", copies) && isLeft("fsdp", 1);
  if (isLeftWhole)
    addMicro(choice, use);
  if (isLeftWhole && isOdd)
    return; // One spec of it is refused.
  for (uint32_t parts : partsOf(choice)) {
    choice.dp = copies / parts;
    choice.fsdp = parts;
    if (isLeft("dp", choice.dp))
      addMicro(choice, use);
  }
}

void Space::addMicro(Choice choice, const Use &use) {
  uint64_t parts = choice.dataParallel();
  std::vector<uint32_t> numbers = {1};
  if (!isOdd)
    numbers = divisorsOf(static_cast<uint32_t>(global / parts));
  for (uint32_t micro : numbersOf("batch.micro", numbers)) {
    choice.micro = micro;
    addSequence(choice, use);
  }
}

void Space::addSequence(Choice choice, const Use &use) {
  bool isFixed = specs.fixedValue("shard.residual_sequence");
  for (bool parallel : {true, false}) {
    if (parallel && (choice.tp == 1 || isFixed || isOdd))
      continue;
    choice.sequenceParallel = parallel;
    addContext(choice, use);
  }
}

void Space::addContext(Choice choice, const Use &use) {
  if (choice.cp == 1)
    return addExperts(choice, use);
  for (const char *method :
       wordsOf("context.method", {"gathered", "ulysses", "ring"}))
    for (const char *layout :
         wordsOf("context.layout", textsOf<layout::DimLayout>())) {
      choice.method = method;
      choice.layout = layout;
      addExperts(choice, use);
    }
}

void Space::addExperts(Choice choice, const Use &use) {
  if (choice.ep == 1)
    return addZero(choice, use);
  for (const char *exchange :
       wordsOf("experts.exchange", {"gathered", "all_to_all"})) {
    choice.exchange = exchange;
    addZero(choice, use);
  }
}

/// There is something to split where several ranks have the same weights.
void Space::addZero(Choice choice, const Use &use) {
  std::vector<uint32_t> stages = {0};
  if (choice.fsdp > 1) // without ZeRO it would be as with "dp" alone
    stages = {1, 2, 3};
  else if (choice.splitting() > 1)
    stages = {0, 1, 2, 3};
  for (uint32_t stage : numbersOf("zero.stage", stages)) {
    if (stage == 0 && choice.fsdp > 1)
      continue; // by --fixed
    choice.zeroStage = static_cast<uint8_t>(stage);
    choice.gathered = "";
    if (stage != 3) {
      addReduce(choice, use);
      continue;
    }
    for (const char *gathered : wordsOf("zero.gathered", {"free", "keep"})) {
      choice.gathered = gathered;
      addReduce(choice, use);
    }
  }
}

void Space::addReduce(Choice choice, const Use &use) {
  uint64_t ofStep = choice.dataParallel() * choice.micro;
  if (choice.zeroStage < 2 || ofStep == global)
    return addSchedule(choice, use);
  // With whole gradients until the end of a step, stage 2 is stage 1.
  bool isSame = choice.zeroStage == 2 && !specs.fixedValue("zero.stage");
  Words ways = {"microbatch", "step"};
  for (const char *reduce :
       wordsOf("zero.reduce", isSame ? Words{"microbatch"} : ways)) {
    choice.reduce = reduce;
    addSchedule(choice, use);
  }
}

void Space::addSchedule(Choice choice, const Use &use) {
  if (choice.pp == 1)
    return addRecompute(choice, use);
  for (const char *schedule :
       wordsOf("pipeline.schedule", {"1f1b", "interleaved-1f1b", "zb-h1",
                                     "zb-h2", "zb-v", "dualpipe-v"})) {
    choice.schedule = schedule;
    std::vector<uint32_t> numbers = {0};
    if (schedule == std::string("interleaved-1f1b"))
      numbers = virtualStages(choice.pp, facts.layers);
    for (uint32_t stages : numbersOf("pipeline.virtual_stages", numbers)) {
      choice.virtualStages = stages;
      addRecompute(choice, use);
    }
  }
}

void Space::lighter(const Choice &choice, const Use &use) const {
  Choice other = choice;
  other.offloads = true;
  if (mayOffload && !choice.offloads &&
      !(mayMoveKept && choice.recompute == "offload"))
    use(other);
  other = choice;
  other.recompute = "offload";
  if (mayMoveKept && choice.recompute == "selective")
    use(other);
}

void Space::addRecompute(Choice choice, const Use &use) {
  choice.offloads = offloadsAll;
  for (const char *policy :
       wordsOf("recompute.policy", {"none", "selective", "full"})) {
    choice.recompute = policy;
    use(choice);
  }
}

} // namespace meshwork::tune
