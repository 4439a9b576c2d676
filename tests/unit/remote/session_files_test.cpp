// Names and lists of files that the other end of a session sends, and orders.

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "launch/remote/file_list.hpp"
#include "launch/remote/order.hpp"
#include "messages/base/digest.hpp"

namespace kernelmill::remote {

namespace {

namespace fs = std::filesystem;

std::string list_of(const std::string& path, const std::string& more = "") {
  return "[{\"path\": \"" + path + "\", \"size\": 1, \"sha256\": \"" + std::string(64, 'a') +
         "\"}" + more + "]";
}

std::string problem_in_file(const std::string& text) {
  auto x = read_files(text);
  return x ? "" : x.error().category;
}

} // namespace

TEST(session_files, keep_paths_below_their_folder) {
  for (const char* good : {"a", "a/b", ".hidden/x", "a b/c", "runs/x/g0.e0", "..a", "a..", "é"})
    EXPECT_TRUE(safe_path(good)) << good;
  for (const char* bad : {"", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/..", "./a",
                          "a\n", "a\x1b[2J", "a\\b"})
    EXPECT_FALSE(safe_path(bad)) << bad;
  EXPECT_FALSE(safe_path(std::string(201, 'a')));
  EXPECT_FALSE(safe_path(std::string("a\0b", 3)));
  EXPECT_TRUE(lies_in("runs/x/y", "runs/x"));
  EXPECT_TRUE(lies_in("runs/x", "runs/x"));
  EXPECT_FALSE(lies_in("runs/xy", "runs/x"));
}

TEST(session_files, of_hostile_lists_are_refused) {
  EXPECT_EQ(problem_in_file(list_of("runs/x")), "");
  const std::string entry = list_of("runs/x").substr(1, list_of("runs/x").size() - 2);
  const std::string hostile[] = {
      "",
      "{}",
      "[7]",
      "[[]]",
      list_of("../../.ssh/authorized_keys"),
      list_of("/etc/passwd"),
      list_of("runs/\\u0000x"),
      list_of("runs/\\u001b[2J"),
      "[" + entry + "," + entry + "]",
      "[" + entry + "," + list_of("runs/x/y").substr(1),
      "[{\"path\": \"x\", \"size\": 1, \"sha256\": \"abc\"}]",
      "[{\"path\": \"x\", \"size\": -1, \"sha256\": \"" + std::string(64, 'a') + "\"}]",
      "[{\"path\": \"x\", \"sha256\": \"" + std::string(64, 'a') + "\"}]",
      "[{\"path\": \"x\", \"size\": 1e30, \"sha256\": \"" + std::string(64, 'a') + "\"}]",
      std::string(1000, '['),
  };
  for (const auto& x : hostile)
    EXPECT_EQ(problem_in_file(x), "remote_protocol") << x.substr(0, 100);
}

TEST(session_files, of_a_folder_leave_out_links_that_lead_out) {
  auto folder = fs::temp_directory_path() / ("session_files_" + new_session_id());
  fs::create_directories(folder / "sub");
  std::ofstream{folder / "sub" / "b"} << "text";
  std::ofstream{folder / "a"} << "";
  fs::create_symlink("sub/b", folder / "inside");
  fs::create_symlink("/etc/passwd", folder / "outside");
  auto found = list_folder(folder.string(), "out");
  ASSERT_TRUE(found);
  ASSERT_EQ(found->files.size(), 3u);
  EXPECT_EQ(found->files[0].path, "out/a");
  EXPECT_EQ(found->files[1].path, "out/inside");
  EXPECT_EQ(found->files[2].path, "out/sub/b");
  EXPECT_EQ(found->files[2].sha256, sha256_hex("text"));
  EXPECT_EQ(found->left_out, 1u);
  fs::remove_all(folder);
}

TEST(remote_orders, come_back_as_they_were_sent) {
  order x;
  x.words = {"eval", "--task=native/row_sum", "k.cpp"};
  x.inputs = {{"k.cpp", 4, std::string(64, 'b'), true}};
  x.outputs = {"found"};
  x.terminal = {true, false, 132, 43, "xterm-256color"};
  auto back = read_order(to_json(x).dump());
  ASSERT_TRUE(back);
  EXPECT_EQ(to_json(*back), to_json(x));
}

TEST(remote_orders, that_lead_out_or_lack_parts_are_refused) {
  auto good = to_json(order{{"eval"}, {}, {}, {}, {}});
  ASSERT_TRUE(read_order(good.dump()));
  auto with = [&](const char* key, nlohmann::json value) {
    auto x = good;
    x[key] = std::move(value);
    return x.dump();
  };
  for (const auto& x :
       {std::string{"[]"}, std::string{"{}"}, with("words", nlohmann::json::array()),
        with("words", {7}), with("words", {std::string("a\0b", 3)}), with("outputs", {"../x"}),
        with("outputs", {"/x"}), with("outputs", 7), with("input", "../x"), with("inputs", 7)})
    EXPECT_FALSE(read_order(x)) << x;
  auto terminal = read_order(with("terminal", {{"columns", 1e9}, {"type", "a;b"}}));
  ASSERT_TRUE(terminal);
  EXPECT_EQ(terminal->terminal.type, "");
  EXPECT_TRUE(is_session_id(new_session_id()));
  EXPECT_FALSE(is_session_id("../../../../etc."));
}

} // namespace kernelmill::remote
