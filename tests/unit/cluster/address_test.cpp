#include <gtest/gtest.h>

#include "launch/cluster/link.hpp"
#include "launch/config/address.hpp"

namespace kernelmill {
namespace address_test {

TEST(network_address, is_read_with_and_without_a_port) {
  EXPECT_EQ(parse_head_address("10.0.0.1:80")->text(), "10.0.0.1:80");
  EXPECT_EQ(parse_head_address("head.example")->text(), "head.example:7612");
  EXPECT_EQ(parse_head_address("[::1]:7")->text(), "[::1]:7");
  EXPECT_EQ(parse_head_address("[::1]")->host, "::1");
  for (auto* bad : {"", ":1", "a:", "a:b", "a:70000", "::1:7", "[::1", "[]:1", "a:1x"})
    EXPECT_FALSE(parse_head_address(bad)) << bad;
}

TEST(listen_address, is_an_address_or_a_port_and_no_word) {
  EXPECT_EQ(parse_listen_address("--listen", "7700")->text(), "127.0.0.1:7700");
  EXPECT_EQ(parse_listen_address("--listen", "localhost")->text(), "localhost:0");
  EXPECT_EQ(parse_listen_address("--listen", "0.0.0.0")->text(), "0.0.0.0:0");
  EXPECT_EQ(parse_listen_address("--listen", "[::1]")->text(), "[::1]:0");
  EXPECT_EQ(parse_listen_address("--listen", "host.example:80")->text(), "host.example:80");
  for (auto* bad : {"x", "7758x", "", "127.0.0.1:99999", "70000"}) {
    auto refused = parse_listen_address("--listen", bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().category, "usage");
    EXPECT_NE(refused.error().message.find("--listen"), std::string::npos) << bad;
  }
}

TEST(network_address, that_is_not_loopback_needs_credentials) {
  link_options options;
  options.credentials = "/nowhere";
  options.insecure_loopback = true;
  for (auto* near : {"127.0.0.1:1", "127.8.8.8:1", "[::1]:1", "localhost:1"})
    EXPECT_TRUE(choose_link(options, *parse_head_address(near))) << near;
  for (auto* far : {"0.0.0.0:1", "10.0.0.1:1", "[::]:1", "head.example:1"})
    EXPECT_EQ(choose_link(options, *parse_head_address(far)).error().category, "insecure_link")
        << far;
  options.insecure_loopback = false;
  EXPECT_FALSE(choose_link(options, *parse_head_address("127.0.0.1:1")))
      << "credentials are missing";
}

} // namespace address_test
} // namespace kernelmill
