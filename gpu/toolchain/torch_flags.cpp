#include "gpu/toolchain/torch_flags.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "messages/base/text.hpp"

namespace kernelmill {

namespace {

using words = std::vector<std::string>;

bool all_of(std::string_view x, std::string_view allowed) {
  return x.find_first_not_of(allowed) == x.npos;
}

constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr std::string_view option_characters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+.";

bool starts_with_any(std::string_view x, std::initializer_list<std::string_view> list) {
  return std::any_of(list.begin(), list.end(), [&](auto y) { return x.starts_with(y); });
}

// -f and -m of g++ that write files, load code, or change what comes out.
bool is_strange(std::string_view x) {
  return starts_with_any(x, {"-fplugin",
                             "-fdump",
                             "-fprofile",
                             "-fauto-profile",
                             "-ftest-coverage",
                             "-fsanitize",
                             "-flto",
                             "-fuse-ld",
                             "-fsyntax-only",
                             "-fpch",
                             "-fpreprocessed",
                             "-fcompare-debug",
                             "-fdiagnostics",
                             "-fcallgraph",
                             "-fstack-usage",
                             "-fmodule",
                             "-fopt-info",
                             "-fno-pic",
                             "-fno-PIC",
                             "-fpie",
                             "-fPIE",
                             "-frandom-seed",
                             "-fdirectives-only",
                             "-fworking",
                             "-ftime-report",
                             "-fmem-report",
                             "-foffload",
                             "-fself-test",
                             "-fdebug-prefix",
                             "-ffile-prefix",
                             "-fmacro-prefix",
                             "-fno-exceptions",
                             "-m32",
                             "-mx32",
                             "-m16",
                             "-fverbose-asm"});
}

bool is_macro(std::string_view x) {
  if (!starts_with_any(x, {"-D", "-U"}) || x.size() < 3) return false;
  auto name = x.substr(2, x.find_first_of("=(", 2) - 2);
  return !name.empty() &&
         all_of(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                      "0123456789_") &&
         std::none_of(x.begin(), x.end(), [](unsigned char c) { return c < 0x20; });
}

bool is_standard(std::string_view x) {
  return starts_with_any(x, {"-std=c++", "-std=gnu++"}) && all_of(x.substr(5), option_characters);
}

bool is_host_flag(std::string_view x) {
  if (is_strange(x)) return false;
  if (x == "-fopenmp" || x == "-pthread" || x == "-w" || x == "-g" || x == "-DNDEBUG") return true;
  if (is_macro(x) || is_standard(x)) return true;
  if (x.starts_with("-O")) return x.size() <= 6 && all_of(x.substr(2), "0123sgfatz");
  if (starts_with_any(x, {"-Wl,", "-Wa,", "-Wp,"})) return false;
  if (x.starts_with("-W")) return x.size() > 2 && all_of(x.substr(2), option_characters);
  if (starts_with_any(x, {"-f", "-m"})) return x.size() > 3 && all_of(x, option_characters);
  return false;
}

// Words that the next word belongs to.
bool takes_next(std::string_view x) {
  static constexpr auto list = std::to_array<std::string_view>({"-gencode",
                                                                "--generate-code",
                                                                "-arch",
                                                                "--gpu-architecture",
                                                                "-code",
                                                                "--gpu-code",
                                                                "-Xcompiler",
                                                                "--compiler-options",
                                                                "-Xptxas",
                                                                "--ptxas-options",
                                                                "-maxrregcount",
                                                                "--maxrregcount",
                                                                "-Xcudafe",
                                                                "--cudafe-options",
                                                                "-t",
                                                                "--threads",
                                                                "-diag-suppress",
                                                                "--diag-suppress",
                                                                "-I",
                                                                "-isystem",
                                                                "-include",
                                                                "-L",
                                                                "-l",
                                                                "-o",
                                                                "-x",
                                                                "-Xlinker",
                                                                "--linker-options",
                                                                "-ccbin",
                                                                "--compiler-bindir",
                                                                "--default-stream",
                                                                "-default-stream",
                                                                "-Xnvlink",
                                                                "-D",
                                                                "-U",
                                                                "-O",
                                                                "-std",
                                                                "--std"});
  return std::find(list.begin(), list.end(), x) != list.end();
}

bool is_simple_cuda(std::string_view x) {
  static constexpr auto list = std::to_array<std::string_view>(
      {"--use_fast_math", "-use_fast_math", "-lineinfo", "--generate-line-info", "-extended-lambda",
       "--extended-lambda", "--expt-extended-lambda", "-expt-extended-lambda",
       "--expt-relaxed-constexpr", "-expt-relaxed-constexpr", "--restrict", "-restrict", "-w",
       "--disable-warnings", "--extra-device-vectorization", "-extra-device-vectorization"});
  return std::find(list.begin(), list.end(), x) != list.end();
}

bool is_cuda_value(std::string_view x) {
  for (std::string_view name : {"ftz", "prec-div", "prec-sqrt", "fmad"})
    for (std::string_view dashes : {"-", "--"})
      for (std::string_view value : {"=true", "=false"})
        if (x == std::string{dashes}.append(name).append(value)) return true;
  for (std::string_view name : {"-maxrregcount=", "--maxrregcount="})
    if (x.starts_with(name))
      return x.size() > name.size() && all_of(x.substr(name.size()), "0123456789");
  for (std::string_view name : {"-diag-suppress=", "--diag-suppress="})
    if (x.starts_with(name)) return all_of(x.substr(name.size()), "0123456789,-D");
  if (x.starts_with("-O")) return x.size() == 3 && all_of(x.substr(2), "0123");
  return is_macro(x) || is_standard(x);
}

bool is_ptxas(std::string_view x) {
  return starts_with_any(x, {"-O", "-dlcm=", "-dscm=", "--def-load-cache=", "-allow-expensive-opt",
                             "--allow-expensive-opt", "-maxrregcount=", "-v", "--verbose",
                             "--warn-on-spills", "-warn-spills", "-warn-lmem-usage"}) &&
         all_of(x, option_characters);
}

std::string without_quotes(std::string x) {
  std::erase_if(x, [](char c) { return c == '\'' || c == '"'; });
  return x;
}

// "-Xcompiler=-O3,-fopenmp", "-Xptxas=-O3": each inner word apart.
bool take_nested(std::string_view name, const std::string& value, chosen_flags& out) {
  bool host = name == "-Xcompiler" || name == "--compiler-options";
  bool assembler = name == "-Xptxas" || name == "--ptxas-options";
  if (!host && !assembler) return false;
  for (auto& x : split(without_quotes(value), ',')) {
    if (x.empty()) continue;
    // A comma or a quote inside a macro's value would end it for nvcc.
    bool good = host ? is_host_flag(x) && !is_macro(x) : is_ptxas(x);
    auto whole = std::string{host ? "-Xcompiler=" : "-Xptxas="} + x;
    (good ? out.taken : out.ignored).push_back(whole);
  }
  return true;
}

// torch pastes the words into a shell's line: "-Xcompiler -O3" in one string is two.
words split_words(const words& flags) {
  words result;
  for (auto& flag : flags) {
    auto rest = trimmed(std::string_view{flag}, " \t\n");
    bool one = rest.find_first_of("'\"") != rest.npos;
    while (!rest.empty()) {
      auto end = one ? rest.npos : rest.find_first_of(" \t\n");
      result.emplace_back(rest.substr(0, end));
      rest = end == rest.npos ? std::string_view{} : trimmed(rest.substr(end), " \t\n");
    }
  }
  return result;
}

} // namespace

chosen_flags choose_host_flags(const words& flags) {
  chosen_flags result;
  auto all = split_words(flags);
  for (size_t i = 0; i < all.size(); ++i) {
    auto word = all[i];
    if ((word == "-D" || word == "-U") && i + 1 < all.size()) word += all[++i];
    (is_host_flag(word) ? result.taken : result.ignored).push_back(word);
  }
  return result;
}

chosen_flags choose_cuda_flags(const words& flags) {
  chosen_flags result;
  auto all = split_words(flags);
  for (size_t i = 0; i < all.size(); ++i) {
    auto word = all[i];
    auto equals = word.find('=');
    if (equals != word.npos && take_nested(word.substr(0, equals), word.substr(equals + 1), result))
      continue;
    if (takes_next(word) && i + 1 < all.size()) {
      auto& next = all[++i];
      if (take_nested(word, next, result)) continue;
      bool glued = word == "-D" || word == "-U" || word == "-O";
      word += glued ? next : '=' + next;
    }
    bool good = is_simple_cuda(word) || is_cuda_value(word);
    (good ? result.taken : result.ignored).push_back(word);
  }
  return result;
}

chosen_flags choose_link_flags(const words& flags, const words& folders) {
  static constexpr auto system =
      std::to_array<std::string_view>({"m", "pthread", "dl", "rt", "gomp", "stdc++"});
  static constexpr auto known = std::to_array<std::string_view>(
      {"cublas", "cublasLt", "cudnn", "curand", "cufft", "cusparse", "cusolver", "cudart", "cuda",
       "nvrtc", "c10", "c10_cuda", "torch", "torch_cpu", "torch_cuda", "torch_python"});
  chosen_flags result;
  for (auto& flag : split_words(flags)) {
    if (flag == "-fopenmp" || flag == "-pthread") {
      result.taken.push_back(flag);
      continue;
    }
    auto name = flag.starts_with("-l") ? flag.substr(2) : std::string{};
    bool good = std::find(system.begin(), system.end(), name) != system.end();
    if (std::find(known.begin(), known.end(), name) != known.end())
      for (auto& folder : folders) {
        std::error_code code;
        good = good || std::filesystem::exists(folder + "/lib" + name + ".so", code);
      }
    (good ? result.taken : result.ignored).push_back(flag);
  }
  return result;
}

std::string wanted_architecture(const words& cuda_flags, const std::string& architecture) {
  if (architecture.size() < 4 || all_of(architecture.substr(architecture.size() - 1), letters))
    return architecture;
  auto number = architecture.substr(architecture.find('_') + 1);
  for (auto& x : cuda_flags)
    for (auto* begin : {"sm_", "compute_"})
      if (x.find(begin + number + "a") != x.npos) return architecture + "a";
  return architecture;
}

} // namespace kernelmill
