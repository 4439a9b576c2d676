#pragma once

// What a run is told, as plain values. One table (launch/config/keys.cpp) binds every member to a
// key of the JSON files, with its range and its sentence of documentation; the member initializers
// here are the defaults; what parts below launch/ need too stands in messages/defaults.hpp.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "messages/defaults.hpp"

namespace kernelmill {

struct run_section {
  std::string name; ///< empty: made from the first configuration file's name and the time
  std::string dir;  ///< empty: runs/NAME below the working directory
  uint64_t seed = 1;
  int64_t priority = 0;
  double max_infrastructure = defaults::max_infrastructure;
  std::vector<std::string> accepted_terms; ///< of sources; see configs/licences
};

struct tasks_section {
  std::string root; ///< empty: configs/tasks of the installation, and what the user imported
  std::vector<std::string> ids = {"*"};
  std::string split = "all"; ///< "train" or "dev": those that split_of() puts there
  uint32_t groups = 1;
  uint32_t group_size = defaults::group_size;
  uint32_t quorum = 0;
  uint32_t max_turns = defaults::max_turns;
};

struct sampling_section {
  double temperature = 1.0;
  double top_p = 1.0;
  uint32_t max_tokens = 4096;
  int64_t seed = -1;
  std::vector<std::string> stop;
  bool logprobs = false;
};

struct policy_section {
  std::string kind = "openai";
  std::string base_url;
  std::string model;
  std::string licence; ///< of the model; empty: not known
  std::string script;
  std::string api_key_env;
  std::string api_key_file;
  bool stream = false;
  std::string tokens = "chat";
  uint32_t max_in_flight = defaults::policy_max_in_flight;
  uint32_t timeout_ms = defaults::policy_timeout_ms;
  uint32_t connect_timeout_ms = defaults::policy_connect_timeout_ms;
  uint32_t first_contact_ms = defaults::policy_first_contact_ms; ///< 0: no limit
  uint32_t stall_ms = defaults::policy_stall_ms;                 ///< of a stream; 0: no limit
  uint64_t max_response_bytes = defaults::policy_max_response_bytes;
  std::string ca_file; ///< empty: the system's certificates
  sampling_section sampling;
};

struct embedder_section {
  std::string kind = "hashed";
  uint32_t dimension = 0; ///< 0: that of the index, or of the built-in embedder
  std::string base_url;
  std::string model;
  std::string api_key_env;
  std::string api_key_file;
  uint32_t timeout_ms = 30'000;
};

struct retrieval_section {
  bool enabled = true;
  std::string index;  ///< empty: built in memory from the corpus when the run starts
  std::string corpus; ///< empty: configs/knowledge of the installation
  uint32_t count = 2;
  bool live = false; ///< kernels that this run verifies become examples as it goes
  double code_weight = 0.7;
  double words_weight = 2;
  embedder_section embedder;
};

struct compile_section {
  uint32_t slots = 0; ///< 0: one per core
  uint32_t deadline_ms = defaults::build_deadline_ms;
  uint32_t torch_deadline_ms = defaults::torch_build_deadline_ms;
  uint32_t memory_mb = 4096;
  std::string cache_dir; ///< empty: $XDG_CACHE_HOME/kernelmill/build
  std::string compiler = "/usr/bin/g++";
};

struct timing_section {
  bool enabled = true;
  double half_width = 0.03;
  double widest = 0.5; ///< half of a wider interval, relative: a factor of 1.6 either way
};

struct evaluation_section {
  std::string backend = "auto";
  std::string contract = "native";
  std::string python; ///< empty: see launch/machine/python.hpp
  std::string torch_mode = "honest";
  std::string language = "any";
  std::string float32 = "ieee";
  std::string baseline = "eager"; ///< or compile, compile_max_autotune, best, or a file
  std::string best_kernels;       ///< a run, or a folder of runs
  uint32_t shapes = 0; ///< variants of a problem in Python that an evaluation judges; 0: all
  std::string clock = "device";
  uint32_t slots = 0;            ///< 0: as many as fit the cores
  uint32_t threads_per_slot = 0; ///< 0: the cores divided by the slots
  uint32_t deadline_ms = defaults::evaluate_deadline_ms;
  uint32_t torch_deadline_ms = defaults::torch_evaluate_deadline_ms;
  uint32_t determinism_runs = defaults::determinism_runs;
  std::string seed; ///< empty: drawn by the referee after the candidate is loaded
  std::string sanitize = "off";
  uint32_t sanitize_ms = 40'000;
  timing_section timing;
  std::vector<std::string> required_layers = {"namespaces", "seccomp", "rlimits", "no_network"};
};

struct profile_section {
  bool enabled = true;
  std::string when = "accepted";
  std::string feedback = "card";
  double share = 0; ///< of the accepted turns, that keep reports of tools
};

struct episode_section {
  std::string mode = "refine";
  bool patches = false;
  double gamma = defaults::gamma;
  bool stop_on_correct = false;
  double stop_speedup = 0; ///< 0: never
  uint32_t feedback_bytes = defaults::feedback_bytes;
  uint32_t turn_deadline_ms = defaults::turn_deadline_ms;
  uint32_t deadline_ms = defaults::episode_deadline_ms;
  uint32_t max_live = defaults::max_live;
};

struct tools_section {
  std::string calls = "native";
  uint32_t steps = defaults::tool_steps;
  double gpu_seconds = defaults::tool_gpu_seconds;
  uint32_t hidden_evaluations = defaults::tool_hidden_evaluations;
  double half_width = 0.1;
  double gamma = 1;
  uint32_t observation_bytes = defaults::tool_observation_bytes;
};

struct search_section {
  std::string strategy = "off";
  uint32_t beam = 4;
  uint32_t islands = 2;
  uint32_t migration = 4;
  double exploration = 0.5;
  double fresh = 0.1;
  uint32_t ledger = 12;
  uint32_t evaluations = 3; ///< of the winner, when the search has ended
  double gpu_minutes = 0;   ///< 0: no limit
  uint64_t tokens = 0;      ///< 0: no limit
  double dollars = 0;       ///< 0: no limit
  double prompt_price = 0;
  double completion_price = 0;

  bool on() const { return strategy != "off"; }
};

/// A weight that is not given comes from the preset.
struct reward_section {
  std::string preset = "kevin";
  std::optional<double> format;
  std::optional<double> build;
  std::optional<double> partial;
  std::optional<double> correct;
  std::optional<double> speed;
  std::optional<double> speed_cap;
  std::optional<double> unchanged_speed;
  std::optional<double> diagnosis;
  std::optional<double> thinking;
  std::optional<double> length;
  std::optional<double> sol;
  std::optional<double> success;
  std::optional<double> correctness;
  std::optional<double> determinism;
  std::optional<double> performance;
  std::optional<double> integrity_penalty;
  std::string shaping = "preset";
  std::string memory_safety = "preset";
  double minimum_speedup = 1.0;
  double significant_speedup = 1.02;
};

struct storage_section {
  std::string store; ///< empty: lineage/ of the run's directory
  bool durable = true;
};

struct log_section {
  std::string level = "info";
  std::string format = "text";
  uint64_t file_bytes = uint64_t{16} << 20;
  uint32_t files = 4; ///< with the one that is being written
};

struct hooks_section {
  std::string url;     ///< empty: none
  std::string url_env; ///< variable that holds it, where the address itself is a secret
  std::vector<std::string> command;
  std::string token_env;
  std::string token_file;
  std::vector<std::string> on = {"*"};
  double no_progress_minutes = 30;    ///< 0: never
  double infrastructure_share = 0.05; ///< 0: never
  double findings_share = 0.1;        ///< 0: never
  uint32_t timeout_ms = 5000;
};

struct trackers_section {
  bool tensorboard = true; ///< event files in tensorboard/ of the run's directory
};

struct otlp_section {
  std::string endpoint;    ///< empty: OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or ..._ENDPOINT, else none
  std::string headers_env; ///< variable that holds headers; empty: OTEL_EXPORTER_OTLP_HEADERS
  std::string service;     ///< empty: OTEL_SERVICE_NAME, else "kernelmill"
  bool content = false;    ///< prompts and completions too
  double share = 1;        ///< of the episodes
  uint32_t timeout_ms = 5000;
};

struct run_config {
  run_section run;
  tasks_section tasks;
  policy_section policy;
  retrieval_section retrieval;
  compile_section compile;
  evaluation_section evaluation;
  profile_section profile;
  episode_section episode;
  tools_section tools;
  search_section search;
  reward_section reward;
  std::string advantage = "mean_centered";
  storage_section storage;
  log_section log;
  hooks_section hooks;
  trackers_section trackers;
  otlp_section otlp;

  /// Of each evaluation that sanitizers look at; 0: none. An agent may ask for it by a tool.
  uint32_t sanitized_ms() const {
    return evaluation.sanitize == "off" && episode.mode != "tools" ? 0 : evaluation.sanitize_ms;
  }
};

} // namespace kernelmill
