#include "runtime/comm/Address.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <arpa/inet.h>
#include <dlfcn.h>
#include <memory>
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

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

absl::StatusOr<Addresses> resolve(const std::string &host, uint16_t port) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_DGRAM;
  std::string name = host;
  if (absl::StartsWith(name, "[") && absl::EndsWith(name, "]"))
    name = name.substr(1, name.size() - 2);
  if (int error = ::getaddrinfo(name.c_str(), absl::StrCat(port).c_str(),
                                &hints, &found))
    return absl::UnavailableError(
        absl::StrCat("the host of rank 0, \"", host,
                     "\", is not found: ", ::gai_strerror(error)));
  return Addresses(found, &::freeaddrinfo);
}

/// "" where there is none.
std::string addressText(const sockaddr *address, socklen_t size) {
  char text[NI_MAXHOST] = "";
  if (::getnameinfo(address, size, text, sizeof(text), nullptr, 0,
                    NI_NUMERICHOST) != 0)
    return "";
  return address->sa_family == AF_INET6 ? absl::StrCat("[", text, "]") : text;
}

/// The address of this end of a connection; "" where there is none.
std::string ownAddress(int socket) {
  sockaddr_storage own{};
  socklen_t size = sizeof(own);
  auto *address = reinterpret_cast<sockaddr *>(&own);
  return ::getsockname(socket, address, &size) == 0 ? addressText(address, size)
                                                    : "";
}
} // namespace

bool isLoopback(const std::string &host) {
  return host == "localhost" || host == "::1" || host == "[::1]" ||
         absl::StartsWith(host, "127.");
}

std::string loopbackOf(const std::string &host) {
  if (isLoopback(host))
    return "";
  absl::StatusOr<Addresses> found = resolve(host, 0);
  if (!found.ok())
    return "";
  std::string text = addressText((*found)->ai_addr,
                                 static_cast<socklen_t>((*found)->ai_addrlen));
  return isLoopback(text) ? text : "";
}

std::string loopbackAdvice(const std::string &host) {
  std::string address = loopbackOf(host);
  return address.empty()
             ? ""
             : absl::StrCat(
                   "; here MASTER_ADDR \"", host, "\" means ", address,
                   ", this host itself (see /etc/hosts): for ranks on several "
                   "hosts, set it to an address of rank 0's host that all "
                   "reach");
}

/// A datagram's socket that is connected sends nothing, but has a way.
absl::StatusOr<std::string> addressTowards(const std::string &host,
                                           uint16_t port) {
  absl::StatusOr<Addresses> found = resolve(host, port);
  if (!found.ok())
    return found.status();
  for (const addrinfo *one = found->get(); one; one = one->ai_next) {
    Socket way{::socket(one->ai_family, SOCK_DGRAM, 0)};
    if (way.number < 0 ||
        ::connect(way.number, one->ai_addr, one->ai_addrlen) != 0)
      continue;
    if (std::string own = ownAddress(way.number); !own.empty())
      return own;
  }
  return absl::UnavailableError(
      absl::StrCat("no interface of this host leads to ", host));
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
