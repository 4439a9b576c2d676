// Databases that were made to do harm, cut off, or are of another program.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/profiler/trace_database.hpp"
#include "tests/unit/profiler/made_database.hpp"

using namespace kernelmill;
using testing::AnyOf;
using testing::HasSubstr;

namespace sqlite_file_test {

const std::string no_rocpd_rows = "CREATE TABLE t (x);";

void expect_refused(const std::string& path, const std::string& why, sqlite_budget budget = {}) {
  auto x = read_trace_database(path, budget);
  ASSERT_FALSE(x);
  EXPECT_EQ(x.error().cls, fault_class::configuration);
  EXPECT_EQ(x.error().category, "bad_report");
  EXPECT_THAT(x.error().message, HasSubstr(path));
  EXPECT_THAT(x.error().message, HasSubstr(why));
  EXPECT_THAT(x.error().hint, HasSubstr("nsys export"));
}

TEST(ForeignDatabase, AMissingFileIsNamed) {
  auto x = read_trace_database("/nonexistent/trace.sqlite");
  ASSERT_FALSE(x);
  EXPECT_THAT(x.error().message, HasSubstr("/nonexistent/trace.sqlite"));
}

TEST(ForeignDatabase, ADatabaseOfAnotherProgramSaysWhatWasExpected) {
  made_database file{no_rocpd_rows};
  expect_refused(file.path(), "CUPTI_ACTIVITY_KIND_KERNEL");
}

TEST(ForeignDatabase, BytesThatAreNoneAreRefused) {
  made_file file{"SQLite format 3" + std::string(5000, '\0')};
  auto x = read_trace_database(file.path());
  ASSERT_FALSE(x);
  EXPECT_EQ(x.error().category, "bad_report");
}

TEST(ForeignDatabase, ACutFileIsRefused) {
  std::string sql{nsys_schema};
  for (long i = 0; i < 2000; ++i) sql += nsys_launch(i * 100, i * 100 + 50, 1);
  made_database file{"BEGIN;" + sql + "COMMIT;"};
  auto whole = file.bytes();
  ASSERT_TRUE(read_trace_database(file.path()));
  for (size_t size : {size_t{100}, size_t{4096}, whole.size() / 2}) {
    file.write(whole.substr(0, size));
    auto x = read_trace_database(file.path());
    ASSERT_FALSE(x) << size;
    EXPECT_EQ(x.error().category, "bad_report");
  }
}

TEST(ForeignDatabase, ChangedBytesNeverDoMoreThanFail) {
  std::string sql{nsys_schema};
  for (long i = 0; i < 50; ++i) sql += nsys_launch(i * 100, i * 100 + 50, 1);
  made_database file{"BEGIN;" + sql + "COMMIT;"};
  auto whole = file.bytes();
  for (size_t at = 16; at < whole.size(); at += 97) {
    auto changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x55);
    file.write(changed);
    auto x = read_trace_database(file.path(), {10'000'000, 10});
    EXPECT_TRUE(x || x.error().category == "bad_report") << at;
  }
}

TEST(ForeignDatabase, AViewWithoutEndIsStopped) {
  made_database file{"CREATE VIEW kernels AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL "
                     "SELECT i + 1 FROM n) SELECT i AS start, i AS end, 'k' AS name FROM n "
                     "WHERE i < 0"};
  expect_refused(file.path(), "take too long", {5'000'000, 60});
}

// With the usual budget it ends when two million launches are read.
TEST(ForeignDatabase, AViewWithRowsWithoutEndIsStopped) {
  made_database file{"CREATE VIEW kernels AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL "
                     "SELECT i + 1 FROM n) SELECT i AS start, i + 1 AS end, 'k' AS name FROM n"};
  expect_refused(file.path(), "take too long", {5'000'000, 60});
}

TEST(ForeignDatabase, AViewOfItselfIsRefused) {
  made_database file{"CREATE VIEW a AS SELECT 1 AS start; CREATE VIEW kernels AS SELECT * FROM a;"
                     "DROP VIEW a; CREATE VIEW a AS SELECT * FROM kernels"};
  expect_refused(file.path(), "circular");
}

TEST(ForeignDatabase, AViewThatWantsMemoryIsRefused) {
  made_database file{"CREATE VIEW kernels AS SELECT length(hex(zeroblob(500000000))) AS start, "
                     "2 AS end, 'k' AS name"};
  expect_refused(file.path(), "too big");
}

TEST(ForeignDatabase, AViewThatGathersMemoryIsRefused) {
  made_database file{
      "CREATE VIEW kernels AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
      "WHERE i < 100000000) SELECT i AS start, i + 1 AS end, zeroblob(100000) AS name FROM n "
      "ORDER BY randomblob(8)"};
  auto x = read_trace_database(file.path());
  ASSERT_FALSE(x);
  EXPECT_THAT(x.error().message,
              AnyOf(HasSubstr("memory"), HasSubstr("too long"), HasSubstr("unsafe use")));
}

TEST(ForeignDatabase, AViewCannotLoadCode) {
  made_database file{"CREATE VIEW kernels AS SELECT load_extension('/tmp/x.so') AS start"};
  expect_refused(file.path(), "load_extension");
}

// Full-text search reads its own structures out of the file.
TEST(ForeignDatabase, VirtualTablesAreRefused) {
  made_database file{"CREATE VIRTUAL TABLE kernels USING fts4(start, name)"};
  expect_refused(file.path(), "no such module");
}

TEST(ForeignDatabase, NothingIsWrittenAndNoJournalIsRolledBack) {
  made_database file{nsys_schema + nsys_launch(0, 10, 1)};
  auto before = file.bytes();
  std::ofstream{file.path() + "-journal"} << std::string(4096, 'j');
  std::ofstream{file.path() + "-wal"} << std::string(4096, 'w');
  EXPECT_TRUE(read_trace_database(file.path()));
  EXPECT_EQ(file.bytes(), before);
  EXPECT_TRUE(std::filesystem::exists(file.path() + "-journal"));
  std::filesystem::remove(file.path() + "-journal");
  std::filesystem::remove(file.path() + "-wal");
}

TEST(ForeignDatabase, APathIsNoUri) {
  auto folder = testing::TempDir() + "kernelmill trace?mode=rwc#%41";
  std::filesystem::create_directories(folder);
  {
    made_database file{nsys_schema + nsys_launch(0, 10, 1)};
    std::filesystem::copy_file(file.path(), folder + "/x&y.sqlite",
                               std::filesystem::copy_options::overwrite_existing);
  }
  EXPECT_TRUE(read_trace_database(folder + "/x&y.sqlite"));
  std::filesystem::remove_all(folder);
}

} // namespace sqlite_file_test
