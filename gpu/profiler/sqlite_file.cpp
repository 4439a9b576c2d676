#include "gpu/profiler/sqlite_file.hpp"

#include <chrono>
#include <cmath>
#include <utility>

#include <sqlite3.h>

#include "messages/base/text.hpp"

namespace kernelmill {

namespace {

constexpr int steps_a_look = 1000;
constexpr sqlite3_int64 most_heap = 256 << 20;

// Far above what nsys and rocprofv3 write, far below SQLite's own limits.
constexpr std::pair<int, int> sqlite_limits[] = {{SQLITE_LIMIT_LENGTH, 4 << 20},
                                                 {SQLITE_LIMIT_SQL_LENGTH, 256 << 10},
                                                 {SQLITE_LIMIT_COLUMN, 512},
                                                 {SQLITE_LIMIT_EXPR_DEPTH, 100},
                                                 {SQLITE_LIMIT_COMPOUND_SELECT, 50},
                                                 {SQLITE_LIMIT_VDBE_OP, 100'000},
                                                 {SQLITE_LIMIT_FUNCTION_ARG, 32},
                                                 {SQLITE_LIMIT_ATTACHED, 0},
                                                 {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 100},
                                                 {SQLITE_LIMIT_VARIABLE_NUMBER, 8},
                                                 {SQLITE_LIMIT_TRIGGER_DEPTH, 1},
                                                 {SQLITE_LIMIT_WORKER_THREADS, 0}};

// Queries read; whatever else a statement or a view would do is refused.
int allow_reading(void*, int action, const char* name, const char*, const char*, const char*) {
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_FUNCTION:
    case SQLITE_RECURSIVE: return SQLITE_OK;
    case SQLITE_PRAGMA:
      return name != nullptr && std::string_view{name} == "table_info" ? SQLITE_OK : SQLITE_DENY;
    default: return SQLITE_DENY;
  }
}

// Names within a URI: all but plain characters as %XX.
std::string uri_of(const std::string& path) {
  static constexpr char digits[] = "0123456789ABCDEF";
  std::string result = path.starts_with("/") ? "file://" : "file:";
  for (char c : path) {
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 c == '/' || c == '.' || c == '-' || c == '_';
    if (plain) {
      result += c;
      continue;
    }
    auto byte = static_cast<unsigned char>(c);
    result += {'%', digits[byte >> 4], digits[byte & 15]};
  }
  // Immutable: no lock is taken, and no journal beside the file is looked for or rolled back.
  return result + "?mode=ro&immutable=1";
}

} // namespace

struct sqlite_file::state {
  sqlite3* db = nullptr;
  std::string trouble;
  uint64_t looks_left = 0;
  std::chrono::steady_clock::time_point end;

  ~state() { sqlite3_close_v2(db); }

  static int look(void* self) {
    auto& x = *static_cast<state*>(self);
    if (x.looks_left == 0 || std::chrono::steady_clock::now() > x.end) return 1;
    --x.looks_left;
    return 0;
  }

  bool run(const char* sql) {
    if (sqlite3_exec(db, sql, nullptr, nullptr, nullptr) == SQLITE_OK) return true;
    trouble = sqlite3_errmsg(db);
    return false;
  }

  bool harden() {
    for (auto [which, most] : sqlite_limits) (void)sqlite3_limit(db, which, most);
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    // Views may call no function that could do harm. SQLite 3.40 counts those of JSON among them;
    // no view that is read here calls one.
    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, nullptr);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
    // Virtual tables bring readers of their own for the file's bytes (full-text search, R-trees).
    // The tools' files have none.
    sqlite3_drop_modules(db, nullptr);
    sqlite3_progress_handler(db, steps_a_look, look, this);
    if (!run("PRAGMA cell_size_check=ON; PRAGMA mmap_size=0; PRAGMA temp_store=MEMORY;"))
      return false;
    sqlite3_set_authorizer(db, allow_reading, nullptr);
    return true;
  }
};

// -- rows -----------------------------------------------------------------------------------------

void sqlite_rows::closer::operator()(sqlite3_stmt* x) const {
  sqlite3_finalize(x);
}

bool sqlite_rows::next() {
  if (!statement_) return false;
  auto step = sqlite3_step(statement_.get());
  if (step == SQLITE_ROW) return true;
  if (step != SQLITE_DONE && trouble_->empty())
    *trouble_ = step == SQLITE_INTERRUPT ? "its tables take too long to read" : sqlite3_errmsg(db_);
  statement_.reset();
  return false;
}

std::optional<int64_t> sqlite_rows::integer(int column) const {
  if (sqlite3_column_type(statement_.get(), column) != SQLITE_INTEGER) return std::nullopt;
  return sqlite3_column_int64(statement_.get(), column);
}

std::optional<double> sqlite_rows::number(int column) const {
  auto type = sqlite3_column_type(statement_.get(), column);
  if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) return std::nullopt;
  auto value = sqlite3_column_double(statement_.get(), column);
  if (!std::isfinite(value)) return std::nullopt;
  return value;
}

std::string sqlite_rows::text(int column, size_t most) const {
  if (sqlite3_column_type(statement_.get(), column) != SQLITE_TEXT) return {};
  auto* bytes = sqlite3_column_text(statement_.get(), column);
  if (bytes == nullptr) return {};
  auto size = static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column));
  return {reinterpret_cast<const char*>(bytes), std::min(size, most)};
}

// -- the file -------------------------------------------------------------------------------------

sqlite_file::sqlite_file(std::unique_ptr<state> x) : state_(std::move(x)) {
  // nop
}

sqlite_file::sqlite_file(sqlite_file&&) noexcept = default;
sqlite_file& sqlite_file::operator=(sqlite_file&&) noexcept = default;
sqlite_file::~sqlite_file() = default;

expected<sqlite_file> sqlite_file::open(const std::string& path, sqlite_budget budget) {
  auto x = std::make_unique<state>();
  x->looks_left = budget.steps / steps_a_look;
  x->end = std::chrono::steady_clock::now() + std::chrono::seconds{budget.seconds};
  // Of the whole process, which is the only scope that SQLite has for it. Nothing else here uses
  // SQLite.
  sqlite3_hard_heap_limit64(most_heap);
  auto flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  auto opened = sqlite3_open_v2(uri_of(path).c_str(), &x->db, flags, nullptr);
  if (opened == SQLITE_OK && x->harden()) return sqlite_file{std::move(x)};
  auto words = !x->trouble.empty() ? x->trouble
               : x->db != nullptr  ? sqlite3_errmsg(x->db)
                                   : sqlite3_errstr(opened);
  return configuration_error("bad_report", "failed to open " + path + ": " + words,
                             "export it again: nsys export --type sqlite, or rocprofv3 "
                             "--output-format rocpd");
}

sqlite_rows sqlite_file::prepare(const std::string& sql) {
  sqlite_rows result;
  result.db_ = state_->db;
  result.trouble_ = &state_->trouble;
  sqlite3_stmt* statement = nullptr;
  auto done = sqlite3_prepare_v2(state_->db, sql.c_str(), static_cast<int>(sql.size()), &statement,
                                 nullptr);
  result.statement_.reset(statement);
  if (done != SQLITE_OK && state_->trouble.empty()) state_->trouble = sqlite3_errmsg(state_->db);
  return result;
}

std::set<std::string, std::less<>> sqlite_file::columns(std::string_view table) {
  std::set<std::string, std::less<>> result;
  auto rows = prepare("PRAGMA table_info(\"" + std::string{table} + "\")");
  while (rows.next()) result.insert(lowered(rows.text(1, 200)));
  return result;
}

sqlite_rows sqlite_file::select(std::string_view table,
                                const std::vector<std::string_view>& names) {
  auto there = columns(table);
  std::string sql;
  for (auto name : names) {
    sql += sql.empty() ? "SELECT " : ", ";
    // Of a name that it does not know SQLite would make a text.
    sql += there.contains(lowered(name)) ? "\"" + std::string{name} + "\"" : "NULL";
  }
  return prepare(sql + " FROM \"" + std::string{table} + "\"");
}

sqlite_rows sqlite_file::select(std::string_view table, const std::vector<std::string_view>& names,
                                std::string_view key, int64_t value) {
  std::string sql;
  for (auto name : names) sql += (sql.empty() ? "SELECT \"" : ", \"") + std::string{name} + "\"";
  auto result = prepare(sql + " FROM \"" + std::string{table} + "\" WHERE \"" + std::string{key} +
                        "\" = ?1 LIMIT 1");
  if (result.statement_) sqlite3_bind_int64(result.statement_.get(), 1, value);
  return result;
}

const std::string& sqlite_file::trouble() const {
  return state_->trouble;
}

bool is_sqlite(std::string_view first_bytes) {
  using namespace std::string_view_literals;
  return first_bytes.starts_with("SQLite format 3\0"sv);
}

} // namespace kernelmill
