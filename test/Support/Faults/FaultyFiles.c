/* Calls on files of one folder, counted, and one of them made to fail.
 *
 *   FAULT_FOLDER  the calls that count are those on files whose path has this
 * in it FAULT_LOG     gets a line for each, in order: "12 rename run/a.XX". A
 * write past the page cache is called write-direct there FAULT_AT      the
 * number, from 1, of the call that something happens to FAULT_CALLS   only
 * calls of these names count for FAULT_AT: "write,fsync" FAULT_DO      kill:
 * SIGKILL in its place, of a write when half is written; short: half of a write
 * is written; a number: it fails with that errno; with a + behind it, so do all
 * later ones. slow, slowN: every call takes 20 ms, N us, longer, whatever
 *                 FAULT_AT says
 *   FAULT_SIGNAL  a signal that the process gets when it first asks about its
 *                 streams, which is how a tool begins
 *   FAULT_RANK    only in the process of this rank of Open MPI
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_int counted;

static int isOther(void) {
  const char *rank = getenv("FAULT_RANK"),
             *own = getenv("OMPI_COMM_WORLD_RANK");
  return rank && (!own || strcmp(rank, own) != 0);
}

static void note(int number, const char *call, const char *how,
                 const char *path) {
  const char *log = getenv("FAULT_LOG");
  if (!log)
    return;
  char line[4352];
  int size =
      snprintf(line, sizeof(line), "%d %s%s %s\n", number, call, how, path);
  int file = (int)syscall(SYS_openat, AT_FDCWD, log,
                          O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file >= 0) {
    (void)!syscall(SYS_write, file, line, (size_t)size);
    syscall(SYS_close, file);
  }
}

enum { nothing = 0, death = -1, half = -2 };

/* What happens to a call on `path`, or an errno. */
static int fate(const char *call, const char *how, const char *path) {
  const char *folder = getenv("FAULT_FOLDER"), *calls = getenv("FAULT_CALLS"),
             *at = getenv("FAULT_AT"), *what = getenv("FAULT_DO");
  if (!folder || !strstr(path, folder) || isOther() ||
      (calls && !strstr(calls, call)))
    return nothing;
  int number = atomic_fetch_add(&counted, 1) + 1;
  note(number, call, how, path);
  if (what && strncmp(what, "slow", 4) == 0)
    usleep(what[4] ? atoi(what + 4) : 20000);
  if (!at || !what || number < atoi(at) ||
      (number > atoi(at) && !strchr(what, '+')))
    return nothing;
  if (strncmp(what, "short", 5) == 0)
    return half;
  return strcmp(what, "kill") == 0 ? death : atoi(what);
}

static void die(void) {
  syscall(SYS_kill, getpid(), SIGKILL);
  for (;;)
    pause();
}

static int fails(const char *call, const char *path) {
  int what = fate(call, "", path);
  if (what == death)
    die();
  if (what == half)
    return 0;
  errno = what;
  return what != 0;
}

static const char *pathOf(int file, char *path, size_t size) {
  char link[64];
  snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, size - 1);
  path[length < 0 ? 0 : length] = 0;
  return path;
}

#define NEXT(name)                                                             \
  static __typeof__(name) *next;                                               \
  if (!next)                                                                   \
  next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

ssize_t write(int file, const void *from, size_t bytes) {
  NEXT(write);
  char path[4096];
  const char *how = fcntl(file, F_GETFL) & O_DIRECT ? "-direct" : "";
  int what = getenv("FAULT_FOLDER")
                 ? fate("write", how, pathOf(file, path, sizeof(path)))
                 : nothing;
  if (what == death) {
    (void)!next(file, from, bytes / 2);
    die();
  }
  if (what == half)
    return next(file, from, bytes - bytes / 2);
  errno = what;
  return what ? -1 : next(file, from, bytes);
}

int fcntl(int file, int command, ...) {
  NEXT(fcntl);
  static atomic_int asked;
  va_list more;
  va_start(more, command);
  void *argument = va_arg(more, void *);
  va_end(more);
  const char *number = getenv("FAULT_SIGNAL");
  if (number && command == F_GETFD && atomic_fetch_add(&asked, 1) == 0)
    raise(atoi(number));
  return next(file, command, argument);
}

int fsync(int file) {
  NEXT(fsync);
  char path[4096];
  return fails("fsync", pathOf(file, path, sizeof(path))) ? -1 : next(file);
}

int rename(const char *from, const char *to) {
  NEXT(rename);
  return fails("rename", to) ? -1 : next(from, to);
}

int unlink(const char *path) {
  NEXT(unlink);
  return fails("unlink", path) ? -1 : next(path);
}

int rmdir(const char *path) {
  NEXT(rmdir);
  return fails("rmdir", path) ? -1 : next(path);
}

int mkdir(const char *path, mode_t mode) {
  NEXT(mkdir);
  return fails("mkdir", path) ? -1 : next(path, mode);
}

/* As the one without "at" is called, by the path of the file. */
static int failsAt(const char *call, int folder, const char *name) {
  char path[8192];
  pathOf(folder, path, 4096);
  snprintf(path + strlen(path), 4096, "/%s", name);
  return fails(call, path);
}

int renameat(int from, const char *name, int to, const char *newName) {
  NEXT(renameat);
  return failsAt("rename", to, newName) ? -1 : next(from, name, to, newName);
}

int unlinkat(int folder, const char *name, int flags) {
  NEXT(unlinkat);
  return failsAt("unlink", folder, name) ? -1 : next(folder, name, flags);
}

/* A file that is to come to be. */
int openat(int folder, const char *name, int flags, ...) {
  NEXT(openat);
  va_list more;
  va_start(more, flags);
  mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
  va_end(more);
  return flags & O_CREAT && failsAt("create", folder, name)
             ? -1
             : next(folder, name, flags, mode);
}
