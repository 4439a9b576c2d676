#pragma once

// The fuzz targets: each takes any bytes and feeds them to the parsers of one kind of foreign
// bytes. What breaks a promise of those parsers ends the process. One source file a target.

#include <string>
#include <string_view>

namespace kernelmill::fuzz {

using target_function = void (*)(std::string_view bytes);

void answer(std::string_view);       // policy servers: whole answers, errors, lists, metrics
void api(std::string_view);          // requests of the evaluation service, behind its router
void batch(std::string_view);        // NDJSON of candidates, of problems, and the head's documents
void bundle(std::string_view);       // bundles, packed and not
void compiler(std::string_view);     // words of compilers and linkers
void completion(std::string_view);   // what a model wrote
void config(std::string_view);       // configuration files, variables, overrides
void eval_results(std::string_view); // KernelBench's files
void frames(std::string_view);       // frames between our processes, and every message in them
void helpers(std::string_view);      // reports and artifacts of helpers that run candidates
void http(std::string_view);         // bytes on a connection of our HTTP server
void imports(std::string_view);      // runs of kernel_rl and bundles of gpu_rl
void launch_plan(std::string_view);  // launch lines of a candidate's source, and expressions
void parcels(std::string_view);      // what nodes send each other
void profilers(std::string_view);    // reports and traces of profilers, listings of code
void script(std::string_view);       // policy scripts, and what a scripted server is asked
void settings(std::string_view);     // clients, keys, licences and trainings of an operator
void store(std::string_view);        // records, artifacts and pages of a store
void stream(std::string_view);       // event streams of policy servers, cut anywhere
void task(std::string_view);         // task documents, and knowledge cards
void torch(std::string_view);        // answers of the torch referee
void ws(std::string_view);           // frames of OpenEnv's clients on a WebSocket

} // namespace kernelmill::fuzz
