// A parser that recurses can be made to overflow its stack, and an expansion
// that doubles to take all memory, in more ways than a look at the text can
// find. The limits are the operating system's.
#include "tools/meshwork/driver/Guard.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <thread>

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/io/IoStatus.h"
#include "tools/meshwork/driver/Files.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/raw_ostream.h"

namespace meshwork::driver {
namespace {

// Of `work`: reserved, not taken, so that where a stack ends does not depend on
// `ulimit -s`.
constexpr size_t stackBytes = size_t{64} << 20;
// What honest text takes stays far below: a model's 0.1 s and 30 bytes of
// memory for each of its bytes.
constexpr uint64_t secondsOfAny = 3, bytesASecond = 1 << 19;
constexpr uint64_t memoryOfAny = uint64_t{1} << 30, memoryAByte = 128;
// A thread's stack and its part of the heap, of which most is reserved only.
constexpr uint64_t memoryOfThread = uint64_t{72} << 20;

constexpr size_t longestLine = 1 << 16;

/// What the child is doing, where the parent can see it.
struct Stage {
  bool isReading;
  int refusal;
  uint64_t seconds, memory;
  bool isMemoryOurs; // the limit is this file's, and not lower from outside
  char name[512];    // in quotes, escaped
};
Stage *stage = nullptr;

rlim_t outerLimit = RLIM_INFINITY;

/// Without any allocation: there is no memory for one.
[[noreturn]] void outOfMemory() {
  bool isText = stage && stage->isReading && stage->isMemoryOurs;
  char text[768];
  int size = std::snprintf(
      text, sizeof(text),
      isText ? "%s: error: %s: reading it takes more than %llu MiB of "
               "memory, which no text of its size needs\n"
             : "%s: error: not enough memory%s\n",
      program_invocation_short_name, isText ? stage->name : "",
      isText ? static_cast<unsigned long long>(stage->memory >> 20) : 0ull);
  if (size > 0 && ::write(STDERR_FILENO, text, static_cast<size_t>(size)) < 0)
    _exit(noResources);
  _exit(isText ? stage->refusal : noResources);
}

void onBadAlloc(void *, const char *, bool) { outOfMemory(); }

/// MLIR does not look whether malloc gave it memory. A crash that has another
/// reason ends as it would without this.
void onSegmentationFault(int number) {
  checkMemory();
  ::signal(number, SIG_DFL);
  ::raise(number); // as soon as this returns
}

/// On a stack of its own: the thread's may have overflowed.
void catchSegmentationFaults() {
  static std::array<char, 64 << 10> stack;
  stack_t alternate = {};
  alternate.ss_sp = stack.data();
  alternate.ss_size = stack.size();
  sigaltstack(&alternate, nullptr);
  struct sigaction action = {};
  action.sa_handler = onSegmentationFault;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGSEGV, &action, nullptr);
}

void onFatalError(void *, const char *reason, bool) {
  // How LLVM tells that a thread has no room for its stack.
  if (std::strstr(reason, "pthread_create"))
    outOfMemory();
  report(absl::InternalError(reason));
  _exit(stage && stage->isReading ? stage->refusal : internal);
}

uint64_t addressSpaceInUse() {
  unsigned long long pages = 0;
  if (FILE *file = std::fopen("/proc/self/statm", "re")) {
    if (std::fscanf(file, "%llu", &pages) != 1)
      pages = 0;
    std::fclose(file);
  }
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

void limitProcessorTime(uint64_t seconds) {
  itimerval timer = {};
  timer.it_value.tv_sec = static_cast<time_t>(seconds);
  setitimer(ITIMER_PROF, &timer, nullptr);
}

void limitMemory(rlim_t bytes) {
  rlimit limit;
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = bytes;
  setrlimit(RLIMIT_AS, &limit);
}

struct Work {
  llvm::function_ref<int()> run;
  int code;
};

void *runWork(void *argument) {
  auto *work = static_cast<Work *>(argument);
  catchSegmentationFaults();
  work->code = work->run();
  return nullptr;
}

/// What LLVM has written to stdout, in full.
int flushOut() {
  llvm::outs().flush();
  std::error_code wrong = llvm::outs().error();
  llvm::outs().clear_error();
  return wrong ? report(runtime::fromIo(absl::UnavailableError(
                     "cannot write to stdout: " + wrong.message())))
               : ok;
}

[[noreturn]] void runChild(llvm::function_ref<int()> run, pid_t parent,
                           int errors) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dup2(errors, STDERR_FILENO);
  if (getppid() != parent)
    _exit(internal);
  std::set_new_handler(outOfMemory);
  llvm::install_bad_alloc_error_handler(onBadAlloc);
  llvm::install_fatal_error_handler(onFatalError);
  Work work{run, internal};
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stackBytes);
  if (pthread_create(&thread, &attributes, runWork, &work) != 0)
    outOfMemory();
  pthread_join(thread, nullptr);
  std::fflush(nullptr);
  int code = flushOut();
  // Not exit(): the system takes memory back faster than destructors do.
  _exit(work.code == ok ? code : work.code);
}

/// Prints what the child says by whole lines, without what a terminal would
/// obey: a diagnostic quotes its source, which comes from outside.
void relay(int from) {
  std::string text;
  char buffer[1 << 12];
  auto print = [&](size_t bytes) {
    std::string shown = printable(std::string_view(text).substr(0, bytes));
    std::fwrite(shown.data(), 1, shown.size(), stderr);
    text.erase(0, bytes);
  };
  for (;;) {
    ssize_t got = ::read(from, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      break;
    text.append(buffer, static_cast<size_t>(got));
    if (size_t end = text.rfind('\n'); end != std::string::npos)
      print(end + 1);
    else if (text.size() > longestLine)
      print(text.size());
  }
  print(text.size());
}

int refuseText(const std::string &why) {
  report(absl::DataLossError(std::string(stage->name) + ": " + why));
  return stage->refusal;
}

int endedBy(int signal) {
  std::string name = std::to_string(signal) + " (" + strsignal(signal) + ")";
  switch (signal) {
  case SIGHUP:
  case SIGINT:
  case SIGQUIT:
  case SIGTERM:
  case SIGPIPE:
  case SIGXCPU:
    ::signal(signal, SIG_DFL);
    raise(signal);
    break;
  case SIGKILL:
    return report(absl::ResourceExhaustedError(
        "killed by the system, as it does when memory is short"));
  case SIGPROF:
    return refuseText("reading it takes more than " +
                      std::to_string(stage->seconds) +
                      " s, which no text of its size needs");
  }
  if (stage->isReading)
    return refuseText("reading it ended by signal " + name +
                      "; such text is no input of this tool");
  return report(absl::InternalError("ended by signal " + name));
}
} // namespace

bool isMemoryShort() {
  constexpr size_t probe = size_t{64} << 20; // malloc reserves it for a thread
  void *found = ::mmap(nullptr, probe, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
                       /*fd=*/-1, /*offset=*/0);
  return found == MAP_FAILED || ::munmap(found, probe) != 0;
}

void checkMemory() {
  if (isMemoryShort())
    outOfMemory();
}

int guarded(llvm::function_ref<int()> work) {
  void *shared = mmap(nullptr, sizeof(Stage), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pid_t parent = getpid();
  std::fflush(nullptr);
  int errors[2];
  bool isReady = shared != MAP_FAILED && pipe2(errors, O_CLOEXEC) == 0;
  pid_t child = isReady ? fork() : -1;
  if (child < 0)
    return report(absl::ResourceExhaustedError(
        std::string("cannot start a process: ") + std::strerror(errno)));
  stage = static_cast<Stage *>(shared);
  if (child == 0)
    runChild(work, parent, errors[1]);
  close(errors[1]);
  relay(errors[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : endedBy(WTERMSIG(status));
}

void beginReading(std::string_view name, int refusal, uint64_t bytes) {
  rlimit limit;
  getrlimit(RLIMIT_AS, &limit);
  outerLimit = limit.rlim_cur;
  std::snprintf(stage->name, sizeof(stage->name), "%s", quote(name).c_str());
  stage->refusal = refusal;
  stage->seconds = secondsOfAny + bytes / bytesASecond;
  stage->memory = memoryOfAny + bytes * memoryAByte;
  rlim_t ours = addressSpaceInUse() + stage->memory +
                std::thread::hardware_concurrency() * memoryOfThread;
  stage->isMemoryOurs = ours < outerLimit;
  if (stage->isMemoryOurs)
    limitMemory(ours);
  limitProcessorTime(stage->seconds);
  stage->isReading = true;
}

void endReading() {
  if (!stage->isReading)
    return;
  stage->isReading = false;
  limitProcessorTime(0);
  limitMemory(outerLimit);
}

} // namespace meshwork::driver
