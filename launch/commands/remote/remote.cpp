// `kernelmill remote ls`, `attach` and `close`, and the far end's own hidden command.

#include <algorithm>

#include "launch/cli/exit_code.hpp"
#include "launch/cli/terminal.hpp"
#include "launch/cluster/build_id.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/options.hpp"
#include "launch/commands/remote/near_end.hpp"
#include "launch/remote/far_server.hpp"
#include "launch/remote/supervisor.hpp"
#include "messages/base/json_fields.hpp"
#include "messages/base/json_value.hpp"

namespace kernelmill::commands {

namespace {

constexpr size_t most_sessions = 10'000;

cli::argument_spec host_word() {
  return {"HOST", "The host, as --on names it.", true, false, cli::completes::nothing, {}};
}

cli::argument_spec session_word() {
  return {"SESSION", "Id of a session.", true, false, cli::completes::nothing, {}};
}

expected<int> list_sessions(const invocation& in) {
  KM_TRY(remote::check_host(in.value("HOST")));
  expected<nlohmann::json> found;
  {
    near_end here;
    found = remote::sessions_on(here.options(in.value("HOST")));
  }
  KM_TRY(found);
  if (!found->is_array() || found->size() > most_sessions)
    return remote::broken_rules("its list of sessions is none");
  auto list = nlohmann::ordered_json::array();
  std::vector<std::vector<std::string>> rows;
  for (const auto& x : *found) {
    if (!x.is_object()) continue;
    auto id = text_in(x, "session");
    if (!remote::is_session_id(id)) continue;
    auto state = cli::clean(text_in(x, "state")), command = cli::clean(text_in(x, "command"));
    auto age = number_in(x, "age_s");
    bool ours = remote::find_record(id).has_value();
    list.push_back({{"session", id},
                    {"state", state},
                    {"command", command},
                    {"age_s", age},
                    {"started_here", ours}});
    rows.push_back({id, state, cli::format_seconds(age), ours ? "yes" : "no", command});
  }
  if (in.json)
    cli::print_json({{"host", in.value("HOST")}, {"sessions", list}});
  else if (rows.empty())
    cli::talk("no sessions");
  else
    cli::print(cli::format_table({"SESSION", "STATE", "AGE>", "FROM HERE", "COMMAND"}, rows));
  return cli::exit_ok;
}

expected<int> attach(const invocation& in) {
  KM_TRY(remote::check_host(in.value("HOST")));
  auto known = remote::find_record(in.value("SESSION"));
  KM_TRY(known);
  near_end here;
  remote::near_session session{here.options(in.value("HOST")), known->session};
  return session.attach(*known);
}

expected<int> close(const invocation& in) {
  KM_TRY(remote::check_host(in.value("HOST")));
  {
    near_end here;
    remote::near_session session{here.options(in.value("HOST")), in.value("SESSION")};
    KM_TRY(session.close());
  }
  if (in.json)
    cli::print_json({{"host", in.value("HOST")}, {"closed", in.value("SESSION")}});
  else
    cli::talk("closed " + in.value("SESSION"));
  return cli::exit_ok;
}

expected<int> far_end(const invocation& in) {
  const auto& verb = in.value("VERB");
  const auto& folder = in.value("FOLDER");
  if (verb == "build") {
    cli::print(build_id() + "\n");
    return cli::exit_ok;
  }
  auto done = verb == "serve" ? remote::serve_near_end(folder, build_id(), 0, 1)
                              : remote::supervise(folder);
  KM_TRY(done);
  return cli::exit_ok;
}

} // namespace

cli::command remote_ls_row() {
  return {"remote ls",
          "Lists the sessions that --on left on a host.",
          "kernelmill remote ls gpu-box",
          "A session stays while its command runs, and until what it left was fetched. A host "
          "removes sessions that never\n"
          "started after an hour and those that ended after a week.",
          {host_word()},
          {},
          list_sessions};
}

cli::command remote_attach_row() {
  return without_tables(
      {"remote attach",
       "Takes up a session: prints its output, fetches what it left, and closes it.",
       "kernelmill remote attach gpu-box 3f0c9a52d1e8b764",
       "Where it was started. Its output is printed from its beginning. The exit code is the "
       "command's.",
       {host_word(), session_word()},
       {},
       attach});
}

cli::command remote_close_row() {
  return without_tables(
      {"remote close",
       "Ends a session's command, if it runs, and removes what it left on the host.",
       "kernelmill remote close gpu-box 3f0c9a52d1e8b764",
       "",
       {host_word(), session_word()},
       {},
       close});
}

cli::command remote_far_row() {
  return {"__remote",
          "The far end of --on.",
          "kernelmill __remote serve ~/.cache/kernelmill/remote",
          "",
          {{"VERB", "", true, false, cli::completes::nothing, {"serve", "supervise", "build"}},
           {"FOLDER", "", false, false, cli::completes::nothing, {}}},
          {},
          far_end,
          true};
}

} // namespace kernelmill::commands
