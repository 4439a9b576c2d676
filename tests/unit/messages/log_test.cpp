#include <filesystem>
#include <fstream>
#include <future>
#include <sstream>
#include <thread>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "messages/base/json_value.hpp"
#include "messages/log/logger.hpp"

namespace kernelmill {

namespace log_test {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr std::chrono::system_clock::time_point moment{
    std::chrono::milliseconds{1'763'887'091'042}};

class log_files : public testing::Test {
protected:
  log_files() {
    std::string pattern = fs::temp_directory_path() / "kernelmill-log-XXXXXX";
    folder = ::mkdtemp(pattern.data());
  }
  ~log_files() override {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }

  std::string text(const std::string& name = "run.log") const {
    std::ifstream in{folder + "/" + name};
    return (std::ostringstream{} << in.rdbuf()).str();
  }

  log_options options(log_level level = log_level::info) const {
    log_options result;
    result.level = level;
    result.file = folder + "/run.log";
    return result;
  }

  std::string folder;
};

TEST(log_line, text_says_when_how_grave_where_and_what) {
  EXPECT_EQ(log_line(log_format::text, moment, log_level::warn,
                     {"policy-client", "first", "g0.e1", 2}, "attempt 1 failed"),
            "2025-11-23T08:38:11.042Z warn  actor=policy-client run=first episode=g0.e1 turn=2 | "
            "attempt 1 failed");
  EXPECT_EQ(log_line(log_format::text, moment, log_level::info, {}, "x"),
            "2025-11-23T08:38:11.042Z info  | x");
}

TEST(log_line, json_is_one_object_without_what_is_not_known) {
  auto line = log_line(log_format::json, moment, log_level::error, {"run", "first", {}, {}}, "x");
  EXPECT_EQ(line, R"({"time":"2025-11-23T08:38:11.042Z","level":"error","actor":"run",)"
                  R"("run":"first","message":"x"})");
  auto turn = log_line(log_format::json, moment, log_level::error, {{}, {}, "g0.e0", 0}, "x");
  EXPECT_EQ(nlohmann::json::parse(turn)["turn"], 0);
}

TEST(log_line, foreign_text_moves_no_cursor_and_begins_no_line) {
  const std::string evil = "\x1b[2J\r\nerror forged\x07\x7f\xc2\x9b"
                           "1A\xe2\x80\xae\xff\xed\xa0\x80 \xc3\xa4";
  auto text = log_line(log_format::text, moment, log_level::info, {"a b=c", {}, {}, {}}, evil);
  EXPECT_THAT(text, HasSubstr(R"(\x1b[2J\r\nerror forged\x07\x7f\u009b1A\u202e\xff\xed\xa0\x80 )"
                              "\xc3\xa4"));
  EXPECT_THAT(text, HasSubstr("actor=\"a b=c\""));
  auto json = log_line(log_format::json, moment, log_level::info, {evil, {}, {}, {}}, evil);
  for (const auto& line : {text, json})
    for (unsigned char c : line) EXPECT_GE(c, 0x20) << line;
  for (unsigned char c : json) EXPECT_LT(c, 0x7f) << json;
  EXPECT_THAT(nlohmann::json::parse(json)["message"].get<std::string>(),
              StartsWith("\x1b[2J\r\nerror forged"));
}

TEST(log_line, a_long_message_is_cut_between_characters) {
  auto line = log_line(log_format::text, moment, log_level::info, {},
                       std::string(4095, 'x') + "\xc3\xa4" + std::string(10, 'y'));
  EXPECT_THAT(line, HasSubstr("xxx ... (12 bytes more)"));
}

TEST(log_line, levels_have_the_names_of_the_configuration) {
  for (auto x :
       {log_level::trace, log_level::debug, log_level::info, log_level::warn, log_level::error})
    EXPECT_EQ(parse_log_level(to_string(x)), x);
  EXPECT_FALSE(parse_log_level("loud"));
}

TEST_F(log_files, lines_below_the_level_are_left_out_and_a_silent_logger_takes_none) {
  auto log = logger::open(options(log_level::warn)).value();
  EXPECT_TRUE(log.takes(log_level::error));
  EXPECT_FALSE(log.takes(log_level::info));
  log.info({}, "quiet");
  log.warn({}, "loud");
  log.close();
  log.error({}, "late");
  EXPECT_THAT(text(), AllOf(HasSubstr("loud"), Not(HasSubstr("quiet")), Not(HasSubstr("late"))));
  logger silent;
  EXPECT_FALSE(silent.takes(log_level::error));
  silent.error({}, "no reader hears it");
  silent.close();
}

TEST_F(log_files, files_are_rotated_and_the_oldest_goes) {
  auto wanted = options();
  wanted.file_bytes = 4096;
  wanted.files = 3;
  auto log = logger::open(wanted).value();
  for (int i = 0; i < 400; ++i) log.info({}, "line " + std::to_string(i) + std::string(100, '.'));
  log.close();
  std::vector<std::string> names;
  for (const auto& x : fs::directory_iterator{folder}) {
    names.push_back(x.path().filename());
    EXPECT_LE(fs::file_size(x), 4096u);
  }
  std::sort(names.begin(), names.end());
  EXPECT_THAT(names, ElementsAre("run.1.log", "run.2.log", "run.log"));
  EXPECT_THAT(text(), HasSubstr("line 399"));
}

TEST_F(log_files, a_log_that_is_opened_again_goes_on) {
  for (const auto* line : {"first", "second"}) {
    auto log = logger::open(options()).value();
    log.info({}, line);
    log.close();
  }
  EXPECT_THAT(text(), AllOf(HasSubstr("first"), HasSubstr("second")));
}

TEST_F(log_files, a_file_that_cannot_be_opened_is_an_error_with_its_name) {
  auto wanted = options();
  wanted.file = folder;
  auto log = logger::open(wanted);
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().category, "io_error");
  EXPECT_THAT(log.error().message, HasSubstr(folder));
}

TEST_F(log_files, a_secret_is_taken_out_of_every_line_while_its_owner_lives) {
  std::string shown;
  auto wanted = options();
  wanted.show = [&](std::string_view line) { shown += line; };
  std::string above;
  auto parent_options = log_options{};
  parent_options.show = [&](std::string_view line) { above += line; };
  wanted.parent = logger::open(parent_options).value();
  auto log = logger::open(wanted).value();
  auto hides = std::make_shared<const log_redaction>([](std::string x) {
    auto at = x.find("sk-1\"2");
    return at == x.npos ? x : x.replace(at, 6, "[key]");
  });
  log.hide(hides);
  log.error({}, "the server said: bad key sk-1\"2");
  hides.reset();
  log.error({}, "an unknown sk-1\"2");
  log.close();
  wanted.parent.close();
  for (const auto& x : {text(), shown, above})
    EXPECT_THAT(x, AllOf(HasSubstr("bad key [key]"), HasSubstr("an unknown sk-1")));
}

TEST_F(log_files, people_see_warnings_only_and_the_first_of_a_flood) {
  std::vector<std::string> shown;
  auto wanted = options(log_level::debug);
  wanted.format = log_format::json;
  wanted.show = [&](std::string_view line) { shown.emplace_back(line); };
  auto log = logger::open(wanted).value();
  log.info({}, "for the file");
  for (int i = 0; i < 100; ++i) log.warn({}, "warning " + std::to_string(i));
  log.close();
  ASSERT_EQ(shown.size(), 9u);
  EXPECT_THAT(shown.front(), HasSubstr("warn  | warning 0"));
  EXPECT_EQ(shown.back(), "92 more warnings are in the log");
  EXPECT_THAT(text(), AllOf(HasSubstr("for the file"), HasSubstr("warning 99")));
}

TEST_F(log_files, a_reader_that_hangs_is_not_waited_for_and_losses_are_counted) {
  std::promise<void> released;
  auto wanted = options();
  wanted.show_all = true;
  wanted.show = [gate = released.get_future().share()](std::string_view) { gate.wait(); };
  auto log = logger::open(wanted).value();
  // Far more than the queue holds, while its only reader stands still.
  for (int i = 0; i < 20'000; ++i) log.info({}, "line " + std::to_string(i));
  released.set_value();
  log.close();
  EXPECT_THAT(text(), AllOf(HasSubstr("lines were lost"), HasSubstr("line 19999")));
}

TEST_F(log_files, a_disk_that_takes_nothing_is_told_of_once_and_ends_no_process) {
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "there is no /dev/full";
  fs::create_symlink("/dev/full", folder + "/run.log");
  std::vector<std::string> shown;
  auto wanted = options();
  wanted.show = [&](std::string_view line) { shown.emplace_back(line); };
  auto log = logger::open(wanted).value();
  for (int i = 0; i < 10; ++i) log.info({}, std::string(1000, 'x'));
  log.close();
  ASSERT_EQ(shown.size(), 1u);
  EXPECT_THAT(shown.front(), HasSubstr("failed to write the log"));
}

TEST_F(log_files, many_threads_write_whole_lines_while_one_closes) {
  auto log = logger::open(options()).value();
  std::vector<std::jthread> all;
  for (int i = 0; i < 4; ++i)
    all.emplace_back([log] {
      for (int n = 0; n < 500; ++n) log.info({"a", "r", {}, {}}, "whole");
    });
  log.close();
  all.clear();
  std::istringstream lines{text()};
  for (std::string line; std::getline(lines, line);)
    EXPECT_THAT(line, testing::EndsWith("actor=a run=r | whole"));
}

} // namespace log_test

} // namespace kernelmill
