#include "runtime/comm/Interfaces.h"
#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "meshwork/Text/Escape.h"
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

namespace meshwork::runtime {
namespace {
/// Nothing where it is none of the family, or of the link alone.
std::string addressText(const sockaddr *address, int family) {
  if (!address || address->sa_family != family)
    return "";
  bool isSix = family == AF_INET6;
  auto *six = reinterpret_cast<const sockaddr_in6 *>(address);
  if (isSix && IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr))
    return "";
  char text[NI_MAXHOST] = "";
  ::getnameinfo(address, isSix ? sizeof(sockaddr_in6) : sizeof(sockaddr_in),
                text, sizeof(text), nullptr, 0, NI_NUMERICHOST);
  return isSix ? absl::StrCat("[", text, "]") : text;
}

absl::StatusOr<std::string> addressOf(const std::string &source,
                                      const std::string &wanted) {
  std::vector<Interface> all = interfacesHere();
  if (const Interface *one = chooseInterface(all, wanted))
    return one->address;
  auto add = [](std::string *text, const Interface &one) {
    absl::StrAppend(text, one.name, " (", one.address, ")");
  };
  return absl::InvalidArgumentError(absl::StrCat(
      source, " ", quote(wanted),
      " names no interface of this host that is up and has an address, which "
      "are: ",
      absl::StrJoin(all, ", ", add)));
}
} // namespace

std::vector<Interface> interfacesHere() {
  ifaddrs *first = nullptr;
  std::vector<Interface> all;
  if (::getifaddrs(&first) != 0)
    return all;
  for (int family : {AF_INET, AF_INET6})
    for (const ifaddrs *one = first; one; one = one->ifa_next)
      if (std::string text = addressText(one->ifa_addr, family);
          (one->ifa_flags & IFF_UP) && !text.empty())
        all.push_back(
            {one->ifa_name, text, (one->ifa_flags & IFF_LOOPBACK) != 0});
  ::freeifaddrs(first);
  return all;
}

const Interface *chooseInterface(absl::Span<const Interface> all,
                                 const std::string &wanted) {
  absl::string_view text = wanted;
  bool excludes = absl::ConsumePrefix(&text, "^"),
       isWhole = absl::ConsumePrefix(&text, "=");
  std::vector<std::string> names = absl::StrSplit(text, ',', absl::SkipEmpty());
  auto isWanted = [&](const Interface &one) {
    bool isNamed = absl::c_any_of(names, [&](const std::string &name) {
      return isWhole ? one.name == name : absl::StartsWith(one.name, name);
    });
    return excludes ? !isNamed && !one.isLoopback : isNamed;
  };
  auto found = absl::c_find_if(all, isWanted);
  return found == all.end() ? nullptr : &*found;
}

absl::StatusOr<std::string> interfaceAddress(
    const std::string &option,
    absl::FunctionRef<const char *(const char *name)> environment) {
  if (!option.empty())
    return addressOf("--interface", option);
  for (auto [name, form] : {std::pair("NCCL_SOCKET_IFNAME", ""),
                            std::pair("GLOO_SOCKET_IFNAME", "=")})
    if (const char *value = environment(name); value && *value)
      return addressOf(name, absl::StrCat(form, value));
  return "";
}

} // namespace meshwork::runtime
