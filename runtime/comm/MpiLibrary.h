// The functions of libmpi that are used, found at run time: nothing links MPI,
// so that one build runs where there is none. Written for Open MPI 4 and 5,
// whose handles are addresses of the library's own objects.
#pragma once

#include "absl/status/statusor.h"
#include <cstddef>
#include <string>

namespace meshwork::runtime {

struct MpiLibrary {
  using Comm = void *;
  using Request = void *;
  /// As Open MPI lays it out.
  struct Status {
    int source, tag, error, cancelled;
    size_t count;
  };
  static constexpr int anySource = -1, anyTag = -1, threadMultiple = 3;

  int (*Init_thread)(int *, char ***, int, int *);
  int (*Finalize)();
  int (*Abort)(Comm, int);
  int (*Comm_rank)(Comm, int *);
  int (*Comm_size)(Comm, int *);
  int (*Comm_dup)(Comm, Comm *);
  int (*Comm_set_errhandler)(Comm, void *);
  int (*Isend)(const void *, int, void *, int, int, Comm, Request *);
  int (*Irecv)(void *, int, void *, int, int, Comm, Request *);
  int (*Test)(Request *, int *, Status *);
  int (*Cancel)(Request *);
  int (*Request_free)(Request *);
  int (*Iprobe)(int, int, Comm, int *, Status *);
  int (*Recv)(void *, int, void *, int, int, Comm, Status *);
  int (*Error_string)(int, char *, int *);
  int (*Get_library_version)(char *, int *);

  Comm world;
  void *byte, *errorsReturn;

  /// Opened once for the life of the process. unavailable (exit code 69) tells
  /// what is missing.
  static absl::StatusOr<const MpiLibrary *> open();
  std::string errorText(int code) const;
};

} // namespace meshwork::runtime
