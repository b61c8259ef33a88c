#include "runtime/comm/Address.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

namespace meshwork::runtime {
namespace {
constexpr size_t keyBytes = 32, keyText = 41; // with the end of the text

/// Closed at its end.
struct Socket {
  int number;
  ~Socket() {
    if (number >= 0)
      ::close(number);
  }
};

/// The address of this end of a connection; "" where there is none.
std::string ownAddress(int socket) {
  sockaddr_storage own{};
  socklen_t size = sizeof(own);
  char text[NI_MAXHOST] = "";
  auto *address = reinterpret_cast<sockaddr *>(&own);
  if (::getsockname(socket, address, &size) != 0 ||
      ::getnameinfo(address, size, text, sizeof(text), nullptr, 0,
                    NI_NUMERICHOST) != 0)
    return "";
  return own.ss_family == AF_INET6 ? absl::StrCat("[", text, "]") : text;
}
} // namespace

bool isLoopback(const std::string &host) {
  return host == "localhost" || host == "::1" || host == "[::1]" ||
         absl::StartsWith(host, "127.");
}

/// A datagram's socket that is connected sends nothing, but has a way.
absl::StatusOr<std::string> addressTowards(const std::string &host,
                                           uint16_t port) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_DGRAM;
  std::string name = host;
  if (absl::StartsWith(name, "[") && absl::EndsWith(name, "]"))
    name = name.substr(1, name.size() - 2);
  if (int error = ::getaddrinfo(name.c_str(), absl::StrCat(port).c_str(),
                                &hints, &found))
    return absl::UnavailableError(
        absl::StrCat("MASTER_ADDR \"", host, "\": ", ::gai_strerror(error)));
  std::string own;
  for (addrinfo *one = found; one && own.empty(); one = one->ai_next) {
    Socket way{::socket(one->ai_family, SOCK_DGRAM, 0)};
    if (way.number >= 0 &&
        ::connect(way.number, one->ai_addr, one->ai_addrlen) == 0)
      own = ownAddress(way.number);
  }
  ::freeaddrinfo(found);
  if (own.empty())
    return absl::UnavailableError(
        absl::StrCat("no interface of this host leads to ", host));
  return own;
}

absl::StatusOr<ZmqKeys> keysOf(const ZmqLibrary &zmq,
                               const std::string &secret) {
  using Hash = int (*)(unsigned char *, size_t, const unsigned char *,
                       unsigned long long, const unsigned char *, size_t);
  void *sodium = ::dlopen("libsodium.so.23", RTLD_NOW | RTLD_LOCAL);
  auto hash = reinterpret_cast<Hash>(
      sodium ? ::dlsym(sodium, "crypto_generichash") : nullptr);
  if (!hash || !zmq.has("curve"))
    return absl::FailedPreconditionError(
        "a secret of the job needs libzmq with CURVE and libsodium.so.23; on "
        "Debian, install libzmq5");
  unsigned char key[keyBytes];
  hash(key, sizeof(key), reinterpret_cast<const unsigned char *>(secret.data()),
       secret.size(), nullptr, 0);
  char hidden[keyText] = "", open[keyText] = "";
  zmq.z85_encode(hidden, key, sizeof(key));
  if (zmq.curve_public(open, hidden) != 0)
    return zmq.failed("making a key of the job's secret");
  return ZmqKeys{open, hidden};
}

} // namespace meshwork::runtime
