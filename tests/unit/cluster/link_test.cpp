#include <filesystem>

#include <gtest/gtest.h>

#include "launch/cluster/link.hpp"
#include "storage/files.hpp"
#include "tests/unit/toolchain/temporary_directory.hpp"

namespace kernelmill {
namespace {

TEST(cluster_config, keeps_credentials_whose_files_vanish_while_a_node_redials) {
  temporary_directory root;
  ASSERT_TRUE(make_credentials(root.path() + "/made"));
  auto found = find_credentials(root.path() + "/made");
  ASSERT_TRUE(found);
  auto key = read_file(found->key).value_or(""),
       certificate = read_file(found->certificate).value_or(""),
       ca = read_file(found->ca).value_or("");
  ASSERT_FALSE(key.empty() || certificate.empty() || ca.empty());
  cluster_config config{*found};
  std::filesystem::remove_all(root.path() + "/made");
  for (int i = 0; i < 2; ++i) { // CAF reads them for each connection
    EXPECT_EQ(read_file(config.openssl_key).value_or(""), key);
    EXPECT_EQ(read_file(config.openssl_certificate).value_or(""), certificate);
    EXPECT_EQ(read_file(config.openssl_cafile).value_or(""), ca);
  }
}

} // namespace
} // namespace kernelmill
