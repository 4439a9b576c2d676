#pragma once

// Databases as a profiler would write them, made by a test.

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <stdlib.h>

namespace kernelmill {

/// A file of its own in the tests' folder, removed at the end.
class made_file {
public:
  made_file() {
    path_ = testing::TempDir() + "kernelmill-trace-XXXXXX";
    int fd = ::mkstemp(path_.data());
    EXPECT_GE(fd, 0);
    ::close(fd);
  }
  explicit made_file(const std::string& bytes) : made_file() { write(bytes); }
  ~made_file() { std::remove(path_.c_str()); }
  made_file(const made_file&) = delete;
  made_file& operator=(const made_file&) = delete;

  const std::string& path() const { return path_; }

  void write(const std::string& bytes) const {
    std::ofstream{path_, std::ios::binary | std::ios::trunc} << bytes;
  }

  std::string bytes() const {
    std::ifstream in{path_, std::ios::binary};
    return {std::istreambuf_iterator<char>{in}, {}};
  }

private:
  std::string path_;
};

/// A database of these statements.
class made_database : public made_file {
public:
  explicit made_database(const std::string& sql) { run(sql); }

  void run(const std::string& sql) const {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(path().c_str(), &db), SQLITE_OK);
    char* words = nullptr;
    EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &words), SQLITE_OK)
        << (words != nullptr ? words : "") << "\n"
        << sql;
    sqlite3_free(words);
    sqlite3_close(db);
  }
};

/// The tables of an nsys export, by its "SQLite Schema Reference" (nsys 2021.5; 2026.1 adds columns
/// such as mangledName, and tells EXPORT_SCHEMA_VERSION 3.24).
inline const char* const nsys_schema = R"(
  CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
  INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_PRODUCT_VERSION', '2026.1.1.204'),
    ('EXPORT_SCHEMA_VERSION', '3.24.14');
  CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
  INSERT INTO StringIds VALUES (1, 'row_sum(float const*, float*, int)'), (2, 'row_sum'),
    (3, 'scale(float*, int)'), (4, 'scale'), (5, 'cudaLaunchKernel_v7000');
  CREATE TABLE TARGET_INFO_GPU (vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT,
    smCount INTEGER, computeMajor INTEGER, computeMinor INTEGER);
  INSERT INTO TARGET_INFO_GPU VALUES (0, 0, 'NVIDIA H200', 132, 9, 0);
  CREATE TABLE ENUM_CUDA_MEMCPY_OPER (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
  INSERT INTO ENUM_CUDA_MEMCPY_OPER VALUES (1, 'CUDA_MEMCPY_KIND_HTOD', 'Host-to-Device'),
    (2, 'CUDA_MEMCPY_KIND_DTOH', 'Device-to-Host');
  CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL,
    deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT NULL,
    correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL,
    shortName INTEGER NOT NULL, mangledName INTEGER, launchType INTEGER, cacheConfig INTEGER,
    registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL,
    gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL,
    blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL,
    dynamicSharedMemory INTEGER NOT NULL, localMemoryPerThread INTEGER NOT NULL,
    localMemoryTotal INTEGER NOT NULL, gridId INTEGER NOT NULL);
  CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL,
    deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT NULL,
    correlationId INTEGER, globalPid INTEGER, bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL);
  CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER NOT NULL, end INTEGER NOT NULL,
    deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT NULL,
    correlationId INTEGER, value INTEGER NOT NULL, bytes INTEGER NOT NULL);
)";

/// One row of CUPTI_ACTIVITY_KIND_KERNEL: times, the id of its name, its grid.
inline std::string nsys_launch(long start, long end, int name, int grid = 264, int device = 0) {
  auto text = [](auto x) { return std::to_string(x); };
  return "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (" + text(start) + "," + text(end) + "," +
         text(device) + ",1,7,100,0," + text(name) + "," + text(name + 1) + ",0,0,0,32," +
         text(grid) + ",1,1,256,1,1,1024,512,0,0,1);";
}

} // namespace kernelmill
