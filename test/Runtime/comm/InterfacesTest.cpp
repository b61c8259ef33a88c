// Which interface others reach this host by.
#include "runtime/comm/Interfaces.h"
#include <gtest/gtest.h>

namespace meshwork::runtime {
namespace {

std::string chosen(const std::string &wanted) {
  static const Interface all[] = {{"lo", "127.0.0.1", true},
                                  {"docker0", "172.17.0.1", false},
                                  {"eth0", "10.0.0.1", false},
                                  {"eth01", "10.0.1.1", false},
                                  {"ib0", "[fd00::1]", false}};
  const Interface *one = chooseInterface(all, wanted);
  return one ? one->name : "none";
}

TEST(Interfaces, asNcclNamesThem) {
  for (auto [wanted, name] :
       {std::pair("eth", "eth0"), std::pair("eth01", "eth01"),
        std::pair("=eth0", "eth0"), std::pair("=eth", "none"),
        std::pair("ib,eth", "eth0"), std::pair("lo", "lo"),
        std::pair("^docker", "eth0"), std::pair("^docker,eth", "ib0"),
        std::pair("^=docker0,eth0", "eth01"), std::pair("wlan", "none")})
    EXPECT_EQ(chosen(wanted), name) << wanted;
}

TEST(Interfaces, theOptionComesFirst) {
  auto variables = [](const char *name) -> const char * {
    return std::string(name) == "GLOO_SOCKET_IFNAME" ? "l" : nullptr;
  };
  EXPECT_EQ(*interfaceAddress("lo", variables), "127.0.0.1");
  std::string why(interfaceAddress("", variables).status().message());
  EXPECT_NE(why.find("GLOO_SOCKET_IFNAME \"=l\" names no interface"),
            std::string::npos)
      << why;
  EXPECT_NE(why.find("lo (127.0.0.1)"), std::string::npos) << why;
  EXPECT_EQ(*interfaceAddress(
                "", [](const char *) -> const char * { return nullptr; }),
            "");
}

} // namespace
} // namespace meshwork::runtime
