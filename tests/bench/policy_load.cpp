// What tests/bench/policy_bench.py starts: the server of the benchmark, and two of its clients.
//   policy_load body                  prints the request that all clients send
//   policy_load serve LATENCY_MS      the scripted server; prints its port, and for each line on
//                                     stdin the peak of requests in flight since the one before
//   policy_load http|actor URL N LATENCY_MS SECONDS
// A client prints one line of JSON a phase. "cold": a new process asks N times at once, which
// opens N connections. "warm": N askers, whose beginnings are spread over one latency, each ask
// again as soon as they are answered, for SECONDS. Processor time is that of the whole process.

#include <charconv>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <thread>

#include <sys/resource.h>
#include <unistd.h>

#include "actors/policy_client/http/open_files.hpp"
#include "launch/server/scripted/scripted_server.hpp"
#include "tests/bench/policy_askers.hpp"

namespace kernelmill::bench {
namespace {

using std::chrono::milliseconds;

// Lines as kernels have them: about one in thirty bytes is one that JSON has to escape.
std::string program_text(size_t bytes) {
  const std::string lines[] = {
      "#include \"kernel.hpp\"\n",
      "extern \"C\" void run(const float* x, float* y, long rows, long columns) {\n",
      "#pragma omp parallel for schedule(static)\n",
      "  for (long i = 0; i < rows; ++i) {\n",
      "    const float* row = x + i * columns;\n",
      "    float sum = 0.0f;\n",
      "    for (long j = 0; j < columns; ++j) sum += row[j] * row[j];\n",
      "    y[i] = sum > 0 ? 1.0f / std::sqrt(sum) : 0.0f; // norm of row i\n",
      "  }\n}\n\n",
  };
  std::string result;
  for (size_t i = 0; result.size() < bytes; ++i) result += lines[i % std::size(lines)];
  return result;
}

int serve(uint32_t latency_ms) {
  policy_script script;
  script.latency.ms = latency_ms;
  scripted_reply reply;
  reply.text = program_text(answer_bytes);
  script.replies.push_back(reply);
  auto server = scripted_server::start(std::move(script));
  if (!server) {
    std::fprintf(stderr, "policy_load: %s\n", server.error().message.c_str());
    return 1;
  }
  std::printf("%u\n", (*server)->port());
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    std::printf("%llu\n", static_cast<unsigned long long>((*server)->take_peak()));
    std::fflush(stdout);
  }
  return 0;
}

double processor_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  auto seconds = [](const timeval& x) {
    return static_cast<double>(x.tv_sec) + static_cast<double>(x.tv_usec) * 1e-6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

long peak_rss_kib() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return used.ru_maxrss;
}

struct reading {
  std::chrono::steady_clock::time_point time = std::chrono::steady_clock::now();
  double cpu = processor_seconds();
  uint64_t answered;
  uint64_t failed;

  explicit reading(const tally& x) : answered(x.answered.load()), failed(x.failed.load()) {}
};

void report(const char* phase, const reading& from, const reading& to) {
  std::printf("{\"phase\":\"%s\",\"seconds\":%.6f,\"cpu\":%.6f,\"answered\":%llu,\"failed\":%llu,"
              "\"rss_kib\":%ld}\n",
              phase, std::chrono::duration<double>(to.time - from.time).count(), to.cpu - from.cpu,
              static_cast<unsigned long long>(to.answered - from.answered),
              static_cast<unsigned long long>(to.failed - from.failed), peak_rss_kib());
  std::fflush(stdout);
}

void measure(askers& who, uint64_t count, milliseconds latency, double seconds) {
  auto& sum = who.sum();
  reading start{sum};
  for (uint64_t i = 0; i < count; ++i) who.ask();
  while (sum.ended() < count) std::this_thread::sleep_for(milliseconds{1});
  report("cold", start, reading{sum});

  sum.again.store(true);
  auto begin = std::chrono::steady_clock::now();
  for (uint64_t i = 0; i < count; ++i) {
    auto due = begin + latency * static_cast<int64_t>(i) / static_cast<int64_t>(count);
    if (due > std::chrono::steady_clock::now() + milliseconds{1})
      std::this_thread::sleep_until(due);
    who.ask();
  }
  std::this_thread::sleep_for(latency);
  std::printf("{\"phase\":\"warm-up\"}\n");
  std::fflush(stdout);
  reading steady{sum};
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  report("warm", steady, reading{sum});
}

template <class T>
T number(const char* text) {
  T result{};
  std::from_chars(text, text + std::strlen(text), result);
  return result;
}

int run(int argc, char** argv) {
  std::string what = argc > 1 ? argv[1] : "";
  if (what == "body") {
    std::fputs(request_body(program_text(prompt_bytes)).c_str(), stdout);
    return 0;
  }
  if (what == "serve" && argc == 3) {
    return serve(number<uint32_t>(argv[2]));
  }
  if ((what == "http" || what == "actor") && argc == 6) {
    auto count = number<uint32_t>(argv[3]);
    allow_open_files(open_files_for(count));
    auto prompt = program_text(prompt_bytes);
    auto who =
        what == "http" ? http_askers(argv[2], prompt, count) : actor_askers(argv[2], prompt, count);
    measure(*who, count, milliseconds{number<uint32_t>(argv[4])}, number<double>(argv[5]));
    // What is still in flight is not worth waiting for.
    std::fflush(stdout);
    ::_exit(0);
  }
  std::fputs("usage: policy_load body | serve LATENCY_MS | http|actor URL N LATENCY_MS SECONDS\n",
             stderr);
  return 2;
}

} // namespace
} // namespace kernelmill::bench

int main(int argc, char** argv) {
  return kernelmill::bench::run(argc, argv);
}
