#include <gtest/gtest.h>

#include "launch/cluster/link.hpp"

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
