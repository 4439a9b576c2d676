// What is said to ssh, and what it and a login say back.

#include <algorithm>

#include <gtest/gtest.h>

#include "launch/remote/connection.hpp"
#include "launch/remote/parcel.hpp"

namespace kernelmill::remote {

TEST(remote_hosts, that_are_no_hosts_are_refused) {
  for (const char* good :
       {"gpu", "me@gpu.example.org", "ssh://me@gpu:2222", "10.0.0.7", "me@[fe80::1%eth0]"})
    EXPECT_TRUE(check_host(good)) << good;
  for (const char* bad : {"", "-oProxyCommand=x", "a b", "a;b", "$(x)", "a'b", "gpu:7612", "a\nb"})
    EXPECT_FALSE(check_host(bad)) << bad;
  EXPECT_NE(check_host("gpu:7612").error().hint.find("--head"), std::string::npos);
}

TEST(remote_hosts, get_a_script_that_any_shell_passes_on) {
  for (const auto& script :
       {server_script(std::string(64, 'a'), "0.1.0 (abc)"), unpack_script(std::string(64, 'a'))}) {
    EXPECT_EQ(script.find_first_of("'!\n\\"), std::string::npos) << script;
    auto words = ssh_words("", "gpu", script);
    EXPECT_EQ(words.front(), "ssh");
    EXPECT_EQ(words.back(), "exec sh -c '" + script + "'");
    EXPECT_EQ(words[words.size() - 2], "gpu");
    EXPECT_NE(std::find(words.begin(), words.end(), "-oForwardAgent=no"), words.end());
  }
  auto own = ssh_words(" ssh  -F file ", "gpu", "true");
  EXPECT_EQ(own[0] + own[1] + own[2], "ssh-Ffile");
}

TEST(remote_hosts, that_refuse_are_told_from_those_that_are_away) {
  auto category = [](const char* words) { return ssh_failure("gpu", 255, words).category; };
  EXPECT_EQ(category("Host key verification failed.\n"), "remote_denied");
  EXPECT_EQ(category("me@gpu: Permission denied (publickey).\n"), "remote_denied");
  EXPECT_EQ(category("ssh: Could not resolve hostname gpu: Name or service not known\n"),
            "remote_denied");
  EXPECT_EQ(category("tar: x: Cannot write: No space left on device\n"), "disk_full");
  EXPECT_EQ(category("ssh: connect to host gpu port 22: No route to host\n"), "remote_unreachable");
  EXPECT_EQ(category("client_loop: send disconnect: Broken pipe\n"), "remote_unreachable");
  EXPECT_EQ(category(""), "remote_unreachable");
  EXPECT_EQ(ssh_failure("gpu", 255, "x\n\x1b[2Jy\n").message, "failed to reach gpu:  [2Jy");
  EXPECT_NE(ssh_failure("gpu", 255, "Permission denied").hint.find("`ssh gpu true`"),
            std::string::npos);
}

TEST(remote_greetings, stand_behind_what_a_login_prints) {
  std::string text = "Welcome\nkernelmill-remote";
  EXPECT_FALSE(read_greeting(text));
  text += " ready\n{\"verb\"";
  auto ready = read_greeting(text);
  ASSERT_TRUE(ready);
  EXPECT_TRUE(ready->ready);
  EXPECT_EQ(text, "{\"verb\"");
  text = "\nkernelmill-remote missing Linux aarch64\n";
  auto missing = read_greeting(text);
  ASSERT_TRUE(missing);
  EXPECT_FALSE(missing->ready);
  EXPECT_EQ(missing->machine, "aarch64");
}

TEST(parcels, have_what_runs_elsewhere) {
  EXPECT_TRUE(is_of_the_host("libc.so.6"));
  EXPECT_TRUE(is_of_the_host("libstdc++.so.6"));
  EXPECT_FALSE(is_of_the_host("libcaf_core.so.0.17.6"));
  EXPECT_FALSE(is_of_the_host("libcurl.so.4"));
  std::string program = "\x7f"
                        "ELF :::::::::::::::::::::::::\0 more";
  EXPECT_EQ(with_run_path(program).size(), program.size());
  EXPECT_NE(with_run_path(program).find("$ORIGIN/../lib/kernelmill"), std::string::npos);
}

TEST(parcels, are_archives_that_tar_reads) {
  auto header = tar_header("bin/kernelmill", 1234, true);
  ASSERT_EQ(header.size(), 512u);
  EXPECT_EQ(header.substr(0, 15), std::string("bin/kernelmill\0", 15));
  EXPECT_EQ(header.substr(100, 7), "0000755");
  EXPECT_EQ(header.substr(124, 11), "00000002322");
  EXPECT_EQ(header.substr(257, 8), std::string("ustar\0", 6) + "00");
  auto folder = "share/kernelmill/configs/" + std::string(60, 'd');
  auto longer = tar_header(folder + "/" + std::string(90, 'f'), 0, false);
  EXPECT_EQ(longer.substr(0, 90), std::string(90, 'f'));
  EXPECT_EQ(longer.substr(345, folder.size()), folder);
}

} // namespace kernelmill::remote
