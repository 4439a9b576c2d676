#include "launch/remote/parcel.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>

#include <link.h>

#include "launch/config/paths.hpp"
#include "messages/base/digest.hpp"
#include "messages/base/files.hpp"

namespace kernelmill::remote {

namespace {

namespace fs = std::filesystem;

constexpr const char* programs[] = {"kernelmill-spawner", "kernelmill-referee",
                                    "kernelmill-candidate", "kernelmill-nvrtc"};
constexpr const char* free_run_path = ":::::::::::::::::::::::::";
constexpr const char* run_path = "$ORIGIN/../lib/kernelmill";

int add_library(dl_phdr_info* info, size_t, void* into) {
  std::string path = info->dlpi_name ? info->dlpi_name : "";
  auto name = fs::path{path}.filename().string();
  if (path.starts_with('/') && !is_of_the_host(name))
    (*static_cast<std::map<std::string, std::string>*>(into))["lib/kernelmill/" + name] = path;
  return 0;
}

bool is_cache(const std::string& path) {
  return path.find("/__pycache__/") != std::string::npos;
}

/// What lies in the parcel, and where it lies here.
expected<std::map<std::string, std::string>> places() {
  std::map<std::string, std::string> result;
  std::error_code code;
  result["bin/kernelmill"] = fs::read_symlink("/proc/self/exe", code).string();
  for (const char* name : programs)
    if (auto path = helper_program(name); !path.empty()) result[std::string{"bin/"} + name] = path;
  ::dl_iterate_phdr(add_library, &result);
  fs::path program = program_directory();
  if (auto own = program / ".." / "lib" / "kernelmill"; fs::is_directory(own, code))
    for (const auto& x : fs::directory_iterator{own, code})
      if (x.is_regular_file(code))
        result["lib/kernelmill/" + x.path().filename().string()] = x.path().string();
  if (auto bwrap = program / ".." / "libexec" / "kernelmill" / "bwrap"; fs::exists(bwrap, code))
    result["libexec/kernelmill/bwrap"] = bwrap.string();
  auto data = data_directory();
  auto python = fs::is_directory(data + "/python", code) ? data + "/python/kernelmill_torch"
                                                         : data + "/gpu/torch/kernelmill_torch";
  const std::pair<std::string, std::string> folders[] = {
      {data + "/configs", "share/kernelmill/configs"},
      {python, "share/kernelmill/python/kernelmill_torch"}};
  for (const auto& [from, to] : folders) {
    auto i = fs::recursive_directory_iterator{from, code};
    for (; !code && i != fs::recursive_directory_iterator{}; i.increment(code))
      if (auto path = i->path().string(); i->is_regular_file(code) && !is_cache(path))
        result[to + "/" + i->path().lexically_relative(from).string()] = path;
    if (code)
      return configuration_error("missing_file", "failed to read " + from + ": " + code.message(),
                                 "set KERNELMILL_HOME to the folder that holds configs/");
  }
  return result;
}

} // namespace

bool is_of_the_host(const std::string& library) {
  static constexpr const char* stems[] = {
      "ld-linux-x86-64", "ld-linux-aarch64", "libc",      "libm",      "libdl",
      "librt",           "libpthread",       "libresolv", "libstdc++", "libgcc_s"};
  return std::any_of(std::begin(stems), std::end(stems),
                     [&](const std::string& stem) { return library.starts_with(stem + ".so"); });
}

std::string with_run_path(std::string program) {
  auto at = program.find(free_run_path);
  if (at != std::string::npos)
    program.replace(at, std::string_view{free_run_path}.size(), run_path);
  return program;
}

expected<parcel> own_parcel() {
  auto where = places();
  KM_TRY(where);
  parcel result;
  sha256_stream all;
  for (auto& [path, source] : *where) {
    auto entry = describe_file(source, path);
    KM_TRY(entry);
    all.add(entry->path + "\n" + entry->sha256 + (entry->executable ? " x\n" : "\n"));
    result.bytes += entry->size;
    result.files.push_back(std::move(*entry));
    result.sources.push_back(source);
  }
  result.sha256 = all.hex();
  return result;
}

std::string tar_header(const std::string& path, uint64_t size, bool executable) {
  std::string result(512, '\0');
  auto put = [&](size_t at, const std::string& text) { result.replace(at, text.size(), text); };
  auto octal = [&](size_t at, size_t digits, uint64_t number) {
    char text[32];
    std::snprintf(text, sizeof text, "%0*llo", static_cast<int>(digits),
                  static_cast<unsigned long long>(number));
    put(at, text);
  };
  // A long path has its folders in `prefix`, 155 bytes.
  auto name = path;
  if (name.size() > 100) {
    auto cut = path.find('/', path.size() - 101);
    put(345, path.substr(0, cut));
    name = path.substr(cut + 1);
  }
  put(0, name);
  octal(100, 7, executable ? 0755 : 0644);
  octal(108, 7, 0);
  octal(116, 7, 0);
  octal(124, 11, size);
  octal(136, 11, 0);
  result[156] = '0';
  put(257, std::string{"ustar\0", 6} + "00");
  put(148, "        ");
  unsigned sum = 0;
  for (unsigned char c : result) sum += c;
  octal(148, 6, sum);
  result[154] = '\0';
  return result;
}

expected<void> write_tar(const parcel& x,
                         const std::function<expected<void>(std::string_view)>& write) {
  for (size_t i = 0; i < x.files.size(); ++i) {
    auto text = read_whole(x.sources[i]);
    if (!text || text->size() != x.files[i].size)
      return configuration_error("missing_file", "failed to read " + x.sources[i],
                                 "it changed meanwhile: start the command again");
    if (x.files[i].path.starts_with("bin/")) *text = with_run_path(std::move(*text));
    KM_TRY(write(tar_header(x.files[i].path, text->size(), x.files[i].executable)));
    text->resize((text->size() + 511) / 512 * 512, '\0');
    KM_TRY(write(*text));
  }
  return write(std::string(1024, '\0'));
}

} // namespace kernelmill::remote
