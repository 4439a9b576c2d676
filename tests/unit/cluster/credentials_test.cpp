#include "launch/cluster/credentials.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/ec.h>
#include <openssl/x509v3.h>

#include "launch/cluster/certificates.hpp"
#include "tests/unit/toolchain/temporary_directory.hpp"

namespace kernelmill {
namespace credentials_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr long one_day = 24 * 60 * 60;

std::string read(const std::string& path) {
  std::ifstream in{path};
  return {std::istreambuf_iterator<char>{in}, {}};
}

unsigned mode(const std::string& path) {
  struct stat about {};
  return ::stat(path.c_str(), &about) == 0 ? about.st_mode & 07777u : 0;
}

std::vector<std::string> names_in(const std::string& directory) {
  std::set<std::string> result;
  for (const auto& entry : fs::directory_iterator{directory})
    result.insert(entry.path().filename().string());
  return {result.begin(), result.end()};
}

class credentials : public testing::Test {
protected:
  void SetUp() override { ASSERT_TRUE(make_credentials(directory).has_value()); }

  std::string file(const std::string& name) const { return directory + "/" + name; }

  error fault() const {
    auto found = find_credentials(directory);
    return found ? error{fault_class::none, "found", "", ""} : found.error();
  }

  void overwrite(const std::string& name, const std::string& text) {
    std::ofstream{file(name), std::ios::trunc} << text;
  }

  certificates::identity authority() const {
    return {std::move(*certificates::read_key(file("ca.key"))),
            std::move(*certificates::read_certificate(file("ca.pem")))};
  }

  /// Replaces a certificate by one that `change` touched, signed again by the authority.
  template <class Change>
  void remake(const std::string& name, Change change) {
    auto x = std::move(*certificates::read_certificate(file(name)));
    change(x.get());
    ASSERT_GT(X509_sign(x.get(), authority().key.get(), EVP_sha256()), 0);
    fs::remove(file(name));
    ASSERT_TRUE(certificates::write(file(name), x.get()).has_value());
  }

  temporary_directory root;
  std::string directory = root.path() + "/state/cluster";
};

// -- make ---------------------------------------------------------------------------------------

TEST_F(credentials, are_four_files_that_only_their_owner_may_read) {
  EXPECT_EQ(mode(directory), 0700u);
  EXPECT_THAT(names_in(directory),
              testing::ElementsAre("ca.key", "ca.pem", "node.key", "node.pem"));
  for (const auto& name : names_in(directory)) EXPECT_EQ(mode(file(name)), 0600u) << name;
  EXPECT_THAT(names_in(root.path() + "/state"), testing::ElementsAre("cluster"));
}

TEST_F(credentials, just_made_are_found) {
  auto found = find_credentials(directory + "/");
  ASSERT_TRUE(found.has_value()) << render(found.error());
  EXPECT_EQ(found->directory, directory);
  EXPECT_EQ(found->ca, file("ca.pem"));
  EXPECT_EQ(found->certificate, file("node.pem"));
  EXPECT_EQ(found->key, file("node.key"));
}

TEST_F(credentials, are_found_without_the_key_of_the_authority) {
  fs::remove(file("ca.key"));
  EXPECT_EQ(fault().category, "found");
}

TEST_F(credentials, name_what_each_certificate_is_for) {
  auto ca = std::move(*certificates::read_certificate(file("ca.pem")));
  auto node = std::move(*certificates::read_certificate(file("node.pem")));
  EXPECT_EQ(X509_get_extension_flags(ca.get()) & EXFLAG_CA, unsigned{EXFLAG_CA});
  EXPECT_EQ(X509_get_pathlen(ca.get()), 0);
  EXPECT_EQ(X509_get_key_usage(ca.get()), unsigned{KU_KEY_CERT_SIGN | KU_CRL_SIGN});
  EXPECT_EQ(X509_get_extension_flags(node.get()) & EXFLAG_CA, 0u);
  EXPECT_EQ(X509_get_key_usage(node.get()), unsigned{KU_DIGITAL_SIGNATURE});
  EXPECT_EQ(X509_get_extended_key_usage(node.get()), unsigned{XKU_SSL_SERVER | XKU_SSL_CLIENT});
}

TEST_F(credentials, last_ten_and_two_years) {
  for (auto [name, low, high] : {std::tuple{"ca.pem", 3650, 3653}, {"node.pem", 729, 731}}) {
    auto x = std::move(*certificates::read_certificate(file(name)));
    int days = 0, seconds = 0;
    ASSERT_EQ(ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(x.get())), 1);
    EXPECT_GE(days, low) << name;
    EXPECT_LE(days, high) << name;
    EXPECT_LT(X509_cmp_current_time(X509_get0_notBefore(x.get())), 0) << name;
  }
}

TEST_F(credentials, made_twice_share_nothing) {
  auto other = root.path() + "/other";
  ASSERT_TRUE(make_credentials(other).has_value());
  for (const auto* name : {"ca.pem", "node.pem"}) {
    auto one = std::move(*certificates::read_certificate(file(name)));
    auto two = std::move(*certificates::read_certificate(other + "/" + name));
    EXPECT_NE(
        ASN1_INTEGER_cmp(X509_get0_serialNumber(one.get()), X509_get0_serialNumber(two.get())), 0);
  }
  EXPECT_NE(read(file("node.key")), read(other + "/node.key"));
  EXPECT_NE(read(file("ca.key")), read(file("node.key")));
}

TEST_F(credentials, are_never_made_over_others) {
  auto before = read(file("node.key"));
  auto again = make_credentials(directory);
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().category, "credentials_exist");
  EXPECT_THAT(again.error().message, HasSubstr(directory));
  EXPECT_EQ(read(file("node.key")), before);
}

TEST_F(credentials, are_made_in_an_empty_directory_but_not_in_place_of_a_file) {
  auto empty = root.path() + "/empty";
  fs::create_directory(empty);
  ASSERT_TRUE(make_credentials(empty).has_value());
  EXPECT_EQ(mode(empty), 0700u);
  auto taken = root.path() + "/file";
  std::ofstream{taken} << "mine";
  EXPECT_EQ(make_credentials(taken).error().category, "credentials_exist");
  EXPECT_EQ(read(taken), "mine");
  auto link = root.path() + "/link";
  fs::create_symlink(root.path() + "/nowhere", link);
  EXPECT_EQ(make_credentials(link).error().category, "credentials_exist");
}

TEST_F(credentials, of_two_makers_at_once_one_is_refused) {
  auto contested = root.path() + "/contested";
  std::vector<int> made(4);
  {
    std::vector<std::jthread> makers;
    for (auto& x : made)
      makers.emplace_back([&] { x = make_credentials(contested).has_value() ? 1 : 0; });
  }
  EXPECT_EQ(std::count(made.begin(), made.end(), 1), 1);
  EXPECT_TRUE(find_credentials(contested).has_value());
  EXPECT_THAT(names_in(root.path()), testing::ElementsAre("contested", "state"));
}

TEST_F(credentials, that_cannot_be_made_leave_nothing_behind) {
  auto under_file = file("ca.pem") + "/cluster";
  auto made = make_credentials(under_file);
  ASSERT_FALSE(made.has_value());
  EXPECT_THAT(made.error().message, HasSubstr("ca.pem"));
  EXPECT_EQ(names_in(directory).size(), 4u);
}

// -- find ---------------------------------------------------------------------------------------

TEST_F(credentials, that_lack_a_file_are_told_which) {
  for (const auto* name : {"ca.pem", "node.pem", "node.key"}) {
    fs::rename(file(name), file("away"));
    auto x = fault();
    EXPECT_EQ(x.category, "credentials_missing") << name;
    EXPECT_THAT(x.message, HasSubstr(file(name)));
    EXPECT_THAT(x.hint, HasSubstr("kernelmill cluster init"));
    fs::rename(file("away"), file(name));
  }
  EXPECT_EQ(find_credentials(root.path() + "/none").error().category, "credentials_missing");
  EXPECT_EQ(find_credentials("").error().category, "credentials_missing");
}

TEST_F(credentials, whose_key_others_may_use_are_refused) {
  for (auto bits : {0640, 0604, 0620, 0601}) {
    ASSERT_EQ(::chmod(file("node.key").c_str(), static_cast<mode_t>(bits)), 0);
    auto x = fault();
    EXPECT_EQ(x.category, "credentials_exposed") << std::oct << bits;
    EXPECT_THAT(x.message, HasSubstr(file("node.key")));
    EXPECT_THAT(x.hint, HasSubstr("chmod 600 " + file("node.key")));
  }
  ASSERT_EQ(::chmod(file("node.key").c_str(), 0400), 0);
  ASSERT_EQ(::chmod(file("ca.pem").c_str(), 0644), 0); // a certificate is no secret
  EXPECT_EQ(fault().category, "found");
}

TEST_F(credentials, that_this_user_may_not_read_are_told_so) {
  // Root reads everything, so another user asks.
  bool root_asks = ::geteuid() == 0;
  for (const auto& path : {root.path(), root.path() + "/state", directory})
    ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  for (const auto* name : {"ca.pem", "node.pem"}) ::chmod(file(name).c_str(), 0644);
  if (root_asks) {
    ASSERT_EQ(::seteuid(65534), 0);
  } else {
    ASSERT_EQ(::chmod(file("node.key").c_str(), 0), 0);
  }
  auto x = fault();
  if (root_asks) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  EXPECT_EQ(x.category, "credentials_unreadable");
  EXPECT_THAT(x.message, HasSubstr(file("node.key")));
}

TEST_F(credentials, of_another_authority_are_refused) {
  auto other = root.path() + "/other";
  ASSERT_TRUE(make_credentials(other).has_value());
  overwrite("ca.pem", read(other + "/ca.pem"));
  auto x = fault();
  EXPECT_EQ(x.category, "credentials_untrusted");
  EXPECT_THAT(x.message, HasSubstr(file("node.pem")));
  EXPECT_THAT(x.message, HasSubstr(file("ca.pem")));
  EXPECT_FALSE(x.hint.empty());
}

TEST_F(credentials, whose_key_is_of_another_certificate_are_refused) {
  overwrite("node.key", read(file("ca.key")));
  auto x = fault();
  EXPECT_EQ(x.category, "credentials_mismatch");
  EXPECT_THAT(x.message, HasSubstr(file("node.key")));
}

TEST_F(credentials, that_have_expired_name_file_and_day) {
  remake("node.pem", [](X509* x) { X509_gmtime_adj(X509_getm_notAfter(x), -one_day); });
  auto x = fault();
  EXPECT_EQ(x.category, "credentials_expired");
  EXPECT_THAT(x.message, HasSubstr(file("node.pem") + ": it expired on 2"));
  EXPECT_THAT(x.hint, HasSubstr("cluster init"));
}

TEST_F(credentials, whose_authority_has_expired_name_the_authority) {
  remake("ca.pem", [](X509* x) { X509_gmtime_adj(X509_getm_notAfter(x), -one_day); });
  auto x = fault();
  EXPECT_EQ(x.category, "credentials_expired");
  EXPECT_THAT(x.message, HasSubstr(file("ca.pem")));
}

TEST_F(credentials, that_begin_tomorrow_point_at_the_clock) {
  remake("node.pem", [](X509* x) { X509_gmtime_adj(X509_getm_notBefore(x), one_day); });
  auto x = fault();
  EXPECT_EQ(x.category, "credentials_expired");
  EXPECT_THAT(x.message, HasSubstr("valid from 2"));
  EXPECT_THAT(x.hint, HasSubstr("clock"));
}

TEST_F(credentials, for_one_end_of_a_connection_alone_are_refused) {
  for (const auto* purpose : {"serverAuth", "clientAuth"}) {
    remake("node.pem", [&](X509* x) {
      int at = X509_get_ext_by_NID(x, NID_ext_key_usage, -1);
      X509_EXTENSION_free(X509_delete_ext(x, at));
      auto* made = X509V3_EXT_conf_nid(nullptr, nullptr, NID_ext_key_usage, purpose);
      X509_add_ext(x, made, at);
      X509_EXTENSION_free(made);
    });
    EXPECT_EQ(fault().category, "credentials_untrusted") << purpose;
  }
}

TEST_F(credentials, with_a_node_for_an_authority_are_refused) {
  overwrite("ca.pem", read(file("node.pem")));
  EXPECT_EQ(fault().category, "credentials_untrusted");
}

TEST_F(credentials, that_are_no_pem_name_the_file) {
  for (const auto* name : {"ca.pem", "node.pem", "node.key"})
    for (const std::string text : {"", "hello\n", "-----BEGIN CERTIFICATE-----\nAAAA\n"}) {
      auto before = read(file(name));
      overwrite(name, text);
      auto x = fault();
      EXPECT_EQ(x.category, "credentials_damaged") << name << ' ' << text;
      EXPECT_THAT(x.message, HasSubstr(file(name)));
      overwrite(name, before);
    }
  EXPECT_EQ(fault().category, "found");
}

TEST_F(credentials, that_are_a_directory_are_refused) {
  fs::remove(file("ca.pem"));
  fs::create_directory(file("ca.pem"));
  EXPECT_EQ(fault().category, "credentials_damaged");
}

TEST_F(credentials, never_show_the_key_in_an_error) {
  auto text = read(file("node.key"));
  overwrite("node.key", text.substr(0, text.size() / 2));
  ::chmod(file("node.key").c_str(), 0600);
  auto x = fault();
  EXPECT_EQ(x.category, "credentials_damaged");
  EXPECT_EQ(render(x).find(text.substr(60, 16)), std::string::npos);
}

// -- where --------------------------------------------------------------------------------------

TEST(credentials_directory, follows_the_environment) {
  ::unsetenv("KERNELMILL_CREDENTIALS");
  ::unsetenv("XDG_STATE_HOME");
  ::setenv("HOME", "/home/ada", 1);
  EXPECT_EQ(default_credentials_directory(), "/home/ada/.local/state/kernelmill/cluster");
  ::setenv("XDG_STATE_HOME", "relative", 1);
  EXPECT_EQ(default_credentials_directory(), "/home/ada/.local/state/kernelmill/cluster");
  ::setenv("XDG_STATE_HOME", "/state", 1);
  EXPECT_EQ(default_credentials_directory(), "/state/kernelmill/cluster");
  ::setenv("KERNELMILL_CREDENTIALS", "/secret", 1);
  EXPECT_EQ(default_credentials_directory(), "/secret");
}

} // namespace credentials_test
} // namespace kernelmill
