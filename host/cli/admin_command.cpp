#include "cli/admin_command.hpp"

#include "base/clock.hpp"
#include "base/escape.hpp"
#include "cli/admin_client.hpp"
#include "cli/confirmation.hpp"
#include "cli/text_table.hpp"
#include "cli/why_text.hpp"
#include "config/diagnostic.hpp"
#include "config/parse.hpp"

#include <unistd.h>

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

namespace hearth::cli {
namespace {

// How often the command asks the server whether its agents have moved.
constexpr std::chrono::milliseconds kLookAgain{100};

AdminOutput failed(const std::string& why) {
  return {.status = kExitFailed, .out = {}, .err = "hearth: " + why + "\n"};
}

// ---- members of an answer; empty if missing or of another kind -

std::string text_in(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (found == object.end() || found->is_null()) return {};
  return found->is_string() ? found->get<std::string>() : dump_json(*found);
}

const Json& list_in(const Json& object, const char* key) {
  static const Json none = Json::array();
  if (!object.is_object()) return none;
  const auto found = object.find(key);
  return found != object.end() && found->is_array() ? *found : none;
}

std::string moment_in(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (found == object.end() || !found->is_number_integer()) return {};
  return moment_text(found->get<std::int64_t>());
}

std::string joined(const Json& texts) {
  std::string all;
  for (const Json& each : texts) {
    if (!each.is_string()) continue;
    all += (all.empty() ? "" : ", ") + each.get<std::string>();
  }
  return all;
}

std::string escaped(const std::string& text) {
  std::string safe;
  append_escaped(safe, text, EscapeStyle::kHuman);
  return safe;
}

// ---- the commands -------------------------------------------------------------------------------

std::string refused_file(const Json& file) {
  const std::string reason = text_in(file, "reason");
  // The message of a mistake in a class file has its place.
  if (text_in(file, "rule") == "config") return one_line(reason) + "\n";
  return escaped(text_in(file, "file") + " is refused by rule " + text_in(file, "rule") + ": " +
                 reason) +
         "\n";
}

std::string plugins_text(const Json& answer) {
  const Json& versions =
      answer.contains("plugins") ? list_in(answer, "plugins") : list_in(answer, "generations");
  TextTable table(
      {"PLUGIN", "VERSION", "GENERATION", "STATE", "CLASSES", "FILE", "PINNED BECAUSE"});
  for (const Json& each : versions) {
    table.add({text_in(each, "plugin"), text_in(each, "version"), text_in(each, "generation"),
               text_in(each, "state"), joined(list_in(each, "classes")), text_in(each, "file"),
               text_in(each, "pinned_because")});
  }
  std::string text = versions.empty() ? "no library is served\n" : table.text();
  for (const Json& each : list_in(answer, "refused")) text += refused_file(each);
  for (const Json& each : list_in(answer, "settings"))
    text += "settings of " + escaped(text_in(each, "class")) + ": " +
            escaped(text_in(each, "state")) + "\n";
  return text;
}

AdminOutput show_console(const AdminClient& client, const AdminCommand& command) {
  const auto answer = client.ask("POST", "/admin/console/link");
  if (!answer) return failed(answer.error().message);
  return {.out = (command.json ? dump_json(*answer) : text_in(*answer, "url")) + "\n", .err = {}};
}

AdminOutput show_plugins(const AdminClient& client, const AdminCommand& command) {
  const auto answer = client.ask("GET", command.all ? "/admin/generations" : "/admin/plugins");
  if (!answer) return failed(answer.error().message);
  return {.out = command.json ? dump_json(*answer) + "\n" : plugins_text(*answer), .err = {}};
}

std::string reloaded_text(const Json& file) {
  const std::string outcome = text_in(file, "outcome");
  std::string text = text_in(file, "file") + ": ";
  if (outcome == "new_version") {
    text += "version " + text_in(file, "version") + " (generation " + text_in(file, "generation") +
            ") is coming in";
  } else if (outcome == "new_settings") {
    text += "new settings of " + text_in(file, "class") + " (" + joined(list_in(file, "keys")) +
            ") are coming in";
  } else if (outcome == "refused") {
    const std::string reason = text_in(file, "reason");
    const bool says_where = reason.starts_with(text_in(file, "file") + ":");
    text = says_where ? "REFUSED: " + reason : text + "REFUSED: " + reason;
  } else {
    text += outcome;
  }
  if (const std::string note = text_in(file, "note"); !note.empty()) text += " (" + note + ")";
  return one_line(text) + "\n";
}

// The outcome of a rollout of a version; empty while it is in progress.
std::string fate_of(const Json& file, const Json& generations) {
  bool is_current = false;
  bool others_drain = false;
  for (const Json& each : generations) {
    if (text_in(each, "file") != text_in(file, "file")) continue;
    const std::string state = text_in(each, "state");
    const bool is_it = text_in(each, "generation") == text_in(file, "generation");
    if (is_it && (state == "current" || state == "on_trial")) is_current = true;
    if (!is_it && state == "draining") others_drain = true;
  }
  if (!is_current) return "FAILED: it was taken back or replaced; the server's log says why";
  return others_drain ? "" : "all agents have it";
}

// The same for settings.
std::string fate_of_settings(const Json& file, const Json& plugins) {
  for (const Json& each : list_in(plugins, "moving")) {
    if (each == text_in(file, "class")) return "";
  }
  for (const Json& each : list_in(plugins, "refused")) {
    if (text_in(each, "rule") == "R1" && text_in(each, "file") == text_in(file, "file"))
      return "FAILED: " + text_in(each, "reason");
  }
  return "all agents have them";
}

// Waits until the rollouts of these versions and settings are over.
void wait_for_agents(const AdminClient& client, const Json& files, AdminOutput& output) {
  for (const Json& file : files) {
    const std::string outcome = text_in(file, "outcome");
    const bool is_settings = outcome == "new_settings";
    if (outcome != "new_version" && !is_settings) continue;
    std::string fate;
    while (fate.empty()) {
      const auto answer = client.ask("GET", is_settings ? "/admin/plugins" : "/admin/generations");
      if (!answer) {
        fate = "FAILED: " + answer.error().message;
      } else {
        fate = is_settings ? fate_of_settings(file, *answer)
                           : fate_of(file, list_in(*answer, "generations"));
      }
      if (fate.empty()) std::this_thread::sleep_for(kLookAgain);
    }
    output.out += escaped(text_in(file, "file") + ": " + fate) + "\n";
    if (fate.starts_with("FAILED")) output.status = kExitFailed;
  }
}

AdminOutput reload(const AdminClient& client, const AdminCommand& command) {
  const std::string body =
      command.agent_class.empty() ? "" : dump_json({{"class", command.agent_class}});
  const auto answer = client.ask("POST", "/admin/plugins/reload", body);
  if (!answer) return failed(answer.error().message);
  AdminOutput output;
  for (const Json& file : list_in(*answer, "files")) {
    output.out += reloaded_text(file);
    if (text_in(file, "outcome") == "refused") output.status = kExitFailed;
  }
  if (output.out.empty()) output.out = "no library is there\n";
  if (command.wait) wait_for_agents(client, list_in(*answer, "files"), output);
  if (command.json) output.out = dump_json(*answer) + "\n";
  return output;
}

// The type of a value by its schema: "string", "integer or null", "any".
std::string type_in(const Json& schema) {
  if (const std::string type = text_in(schema, "type"); !type.empty()) return type;
  std::string types;
  for (const Json& each : list_in(schema, "anyOf"))
    types += (types.empty() ? "" : " or ") + type_in(each);
  return types.empty() ? "any" : types;
}

std::string arguments_in(const Json& method) {
  if (!method.contains("arguments")) return "not known";
  std::string types;
  for (const Json& each : list_in(method["arguments"], "prefixItems"))
    types += (types.empty() ? "" : ", ") + type_in(each);
  return types;
}

AdminOutput show_methods(const AdminClient& client, const AdminCommand& command) {
  const auto answer =
      client.ask("GET", "/admin/classes/" + url_encoded(command.agent_class) + "/methods");
  if (!answer) return failed(answer.error().message);
  if (command.json) return {.out = dump_json(*answer) + "\n", .err = {}};
  TextTable table({"METHOD", "ARGUMENTS", "KIND", "DESCRIPTION"});
  for (const Json& method : list_in(*answer, "methods")) {
    Json kinds = Json::array();
    for (const char* const each : {"streaming", "read_only", "idempotent", "exclusive"}) {
      if (method.value(each, false)) kinds.push_back(each);
    }
    table.add({text_in(method, "name"), arguments_in(method), joined(kinds),
               text_in(method, "description")});
  }
  const bool is_empty = list_in(*answer, "methods").empty();
  return {.out = is_empty ? "no methods are listed\n" : table.text(), .err = {}};
}

AdminOutput show_agents(const AdminClient& client, const AdminCommand& command) {
  std::string target = "/admin/agents?class=" + url_encoded(command.agent_class) +
                       "&limit=" + std::to_string(command.limit);
  if (!command.after.empty()) target += "&after=" + url_encoded(name_in_url(command.after));
  const auto answer = client.ask("GET", target);
  if (!answer) return failed(answer.error().message);
  if (command.json) return {.out = dump_json(*answer) + "\n", .err = {}};
  TextTable table({"NAME", "STATE", "CLIENTS", "VERSION", "CREATED", "WAKES"});
  for (const Json& agent : list_in(*answer, "agents")) {
    const std::string wakes = agent.value("working", false) ? "at once, if interrupted"
                                                            : moment_in(agent, "next_wake_ms");
    table.add({text_in(agent, "name"), text_in(agent, "state"), text_in(agent, "connections"),
               text_in(agent, "version"), moment_in(agent, "created_at_ms"), wakes});
  }
  if (list_in(*answer, "agents").empty()) return {.out = "no agents\n", .err = {}};
  std::string text = table.text();
  if (const std::string next = text_in(*answer, "next"); !next.empty()) {
    text += "more: hearth agents " + escaped(command.agent_class) + " --after '" + escaped(next) +
            "'\n";
  }
  return {.out = std::move(text), .err = {}};
}

AdminOutput evict(const AdminClient& client, const AdminCommand& command) {
  const std::string name = name_in_url(command.name);
  const auto answer = client.ask(
      "POST", "/admin/agents/" + url_encoded(command.agent_class) + "/" + name + "/evict");
  if (!answer) return failed(answer.error().message);
  if (command.json) return {.out = dump_json(*answer) + "\n", .err = {}};
  const std::string who = escaped(command.agent_class) + "/" + name;
  if (answer->value("evicted", false)) return {.out = who + " is evicted\n", .err = {}};
  return {.out = who + " is " + escaped(text_in(*answer, "state")) + ": nothing was done\n",
          .err = {}};
}

AdminOutput destroy(const AdminClient& client, const AdminCommand& command) {
  const std::string name = name_in_url(command.name);
  const std::string target = "/admin/agents/" + url_encoded(command.agent_class) + "/" + name;
  const std::string who = escaped(command.agent_class) + "/" + name;
  // Report a misspelled name before the question.
  if (const auto found = client.ask("GET", target); !found) return failed(found.error().message);
  if (!command.yes) {
    const std::string question =
        "Destroy " + who +
        " with its database, and close its clients? This cannot be undone [y/N] ";
    switch (ask_person(question, STDIN_FILENO, STDERR_FILENO)) {
      case Confirmation::kYes: break;
      case Confirmation::kNo: return failed("nothing was done");
      case Confirmation::kNobody:
        return {
            .status = kExitBadUsage,
            .out = {},
            .err = "hearth: there is no terminal to ask at: use --yes to destroy " + who + "\n"};
    }
  }
  const auto answer = client.ask("DELETE", target);
  if (!answer) return failed(answer.error().message);
  return {.out = command.json ? dump_json(*answer) + "\n" : who + " is destroyed\n", .err = {}};
}

// Prints only the result, so that programs can use it.
AdminOutput call_object(const AdminClient& client, const AdminCommand& command) {
  const auto answer =
      client.ask("POST",
                 "/objects/" + url_encoded(command.agent_class) + "/" + url_encoded(command.name) +
                     "/call/" + url_encoded(command.method),
                 command.arguments);
  if (!answer) return failed(answer.error().message);
  if (command.json) return {.out = dump_json(*answer) + "\n", .err = {}};
  return {.out = dump_json(answer->value("result", Json())) + "\n", .err = {}};
}

// The agents that the server could not look at.
void add_skipped(const Json& answer, AdminOutput& output) {
  for (const Json& each : list_in(answer, "skipped")) {
    const std::string agent_class = text_in(each, "class");
    const std::string who =
        agent_class.empty() ? "a part of the agents" : agent_class + "/" + text_in(each, "agent");
    output.err +=
        escaped("hearth: " + who + " was not looked at: " + text_in(each, "reason")) + "\n";
    output.status = kExitFailed;
  }
}

// ---- waits ----

std::int64_t now_ms() {
  return unix_millis(SystemClock().wall_now());
}

// "/admin/agents/CLASS/NAME" of the agent CLASS/NAME, or of a class and a name.
Result<std::string> agent_path(const AdminCommand& command) {
  std::string agent_class = command.agent_class;
  std::string name = command.name;
  if (const std::size_t slash = agent_class.find('/'); name.empty() && slash != std::string::npos) {
    name = agent_class.substr(slash + 1);
    agent_class.resize(slash);
  }
  if (name.empty()) return Error{Errc::kInvalidArgument, "name an agent: CLASS/NAME"};
  return "/admin/agents/" + url_encoded(agent_class) + "/" + name_in_url(name);
}

AdminOutput bad_usage(const std::string& why) {
  return {.status = kExitBadUsage, .out = {}, .err = "hearth: " + why + "\n"};
}

AdminOutput show_why(const AdminClient& client, const AdminCommand& command) {
  const auto path = agent_path(command);
  if (!path) return bad_usage(path.error().message);
  const auto answer = client.ask("GET", *path + "/why");
  if (!answer) return failed(answer.error().message);
  return {.out = command.json ? dump_json(*answer) + "\n" : why_text(*answer, now_ms()), .err = {}};
}

AdminOutput show_stuck(const AdminClient& client, const AdminCommand& command) {
  std::string target = "/admin/stuck?limit=" + std::to_string(command.limit);
  for (const auto& [key, value] :
       {std::pair("class", command.agent_class), std::pair("after", command.after)}) {
    if (!value.empty()) target += std::string("&") + key + "=" + url_encoded(value);
  }
  const auto answer = client.ask("GET", target);
  if (!answer) return failed(answer.error().message);
  if (command.json) return {.out = dump_json(*answer) + "\n", .err = {}};
  AdminOutput output;
  for (const Json& each : list_in(*answer, "agents")) output.out += why_text(each, now_ms());
  const std::string next = text_in(*answer, "next");
  if (output.out.empty() && next.empty()) output.out = "no agent is stuck\n";
  add_skipped(*answer, output);
  if (!next.empty()) output.out += "more: --after '" + escaped(next) + "'\n";
  return output;
}

// ---- operations ----

std::string operation_path(const AdminCommand& command) {
  return "/admin/operations/" + url_encoded(command.agent_class) + "/" + name_in_url(command.name) +
         "/" + url_encoded(command.id);
}

std::string operations_target(const AdminCommand& command) {
  std::string target = "/admin/operations?limit=" + std::to_string(command.limit);
  for (const auto& [key, value] :
       {std::pair("class", command.agent_class), std::pair("agent", name_in_url(command.name)),
        std::pair("kind", command.kind), std::pair("state", command.state),
        std::pair("after", command.after)}) {
    if (!value.empty()) target += std::string("&") + key + "=" + url_encoded(value);
  }
  if (command.older) {
    target += "&begun_before_ms=" + std::to_string(now_ms() - command.older->count());
  }
  return target;
}

AdminOutput show_operations(const AdminClient& client, const AdminCommand& command) {
  const bool is_one = !command.id.empty();
  const auto answer =
      client.ask("GET", is_one ? operation_path(command) : operations_target(command));
  if (!answer) return failed(answer.error().message);
  if (command.json || is_one) return {.out = dump_json(*answer) + "\n", .err = {}};
  TextTable table({"AGENT", "KIND", "STATE", "EFFECT", "STARTED", "ATTEMPTS", "ID", "NOTE"});
  for (const Json& each : list_in(*answer, "operations")) {
    table.add({text_in(each, "class") + "/" + text_in(each, "agent"), text_in(each, "kind"),
               text_in(each, "state"), text_in(each, "effect"), moment_in(each, "started_at"),
               text_in(each, "attempts"), text_in(each, "id"), text_in(each, "note")});
  }
  const std::string next = text_in(*answer, "next");
  AdminOutput output;
  if (!list_in(*answer, "operations").empty()) output.out = table.text();
  if (output.out.empty() && next.empty()) output.out = "no operations\n";
  add_skipped(*answer, output);
  if (!next.empty()) output.out += "more: --after '" + escaped(next) + "'\n";
  return output;
}

AdminOutput resolve_operation(const AdminClient& client, const AdminCommand& command) {
  Json body{{"outcome", command.state}};
  if (!command.note.empty()) body["note"] = command.note;
  if (!command.result.empty()) {
    auto result = parse_client_json(command.result);
    if (!result) return {.status = kExitBadUsage, .out = {}, .err = "hearth: --result is JSON\n"};
    body["result"] = *std::move(result);
  }
  const auto answer = client.ask("POST", operation_path(command) + "/resolve", dump_json(body));
  if (!answer) return failed(answer.error().message);
  if (command.json) return {.out = dump_json(*answer) + "\n", .err = {}};
  return {.out = "operation " + escaped(command.id) + " is " + escaped(text_in(*answer, "state")) +
                 "\n",
          .err = {}};
}

// ---- work and tables of an agent ----

AdminOutput show_work(const AdminClient& client, const AdminCommand& command,
                      const std::string& path) {
  std::string target = path + "?kind=" + command.kind + "&limit=" + std::to_string(command.limit);
  for (const auto& [key, value] :
       {std::pair("state", command.state), std::pair("after", command.after)}) {
    if (!value.empty()) target += std::string("&") + key + "=" + url_encoded(value);
  }
  const auto answer = client.ask("GET", target);
  if (!answer) return failed(answer.error().message);
  if (command.json) return {.out = dump_json(*answer) + "\n", .err = {}};
  TextTable table({"ID", "NAME", "STATE", "CREATED", "NEXT", "ERROR"});
  for (const Json& each : list_in(*answer, "work")) {
    table.add({text_in(each, "id"), text_in(each, "name"), text_in(each, "state"),
               moment_in(each, "created_at"), moment_in(each, "next_at"), text_in(each, "error")});
  }
  const std::string next = text_in(*answer, "next");
  std::string text = list_in(*answer, "work").empty() ? "" : table.text();
  if (text.empty() && next.empty()) text = "none\n";
  if (!next.empty()) text += "more: --after '" + escaped(next) + "'\n";
  return {.out = std::move(text), .err = {}};
}

AdminOutput ask_about_work(const AdminClient& client, const AdminCommand& command) {
  const auto agent = agent_path(command);
  if (!agent) return bad_usage(agent.error().message);
  std::string path = *agent + "/work";
  if (command.id.empty()) return show_work(client, command, path);
  path += "/" + command.kind + "/" + url_encoded(command.id);
  if (command.action.empty()) {
    const auto answer = client.ask("GET", path);
    if (!answer) return failed(answer.error().message);
    // ASCII, so that no control character of the agent's data reaches a terminal.
    return {.out = answer->dump(-1, ' ', true) + "\n", .err = {}};
  }
  Json body = Json::object();
  if (!command.note.empty()) body["note"] = command.note;
  if (command.action == "end") {
    body["outcome"] = {{"status", command.state}};
    if (command.state != "completed" && !command.note.empty())
      body["outcome"]["error"] = command.note;
    if (!command.result.empty()) {
      auto result = parse_client_json(command.result);
      if (!result) return bad_usage("--result is JSON");
      body["outcome"]["result"] = *std::move(result);
    }
  }
  const auto answer = client.ask("POST", path + "/" + command.action, dump_json(body));
  if (!answer) return failed(answer.error().message);
  if (command.json) return {.out = dump_json(*answer) + "\n", .err = {}};
  const bool is_gone =
      answer->is_object() && answer->contains("record") && answer->at("record").is_null();
  return {.out = command.kind + " " + escaped(command.id) + " is " +
                 (is_gone ? "removed" : escaped(text_in(*answer, "state"))) + "\n",
          .err = {}};
}

AdminOutput show_sql(const AdminClient& client, const AdminCommand& command) {
  const auto agent = agent_path(command);
  if (!agent) return bad_usage(agent.error().message);
  const auto answer = client.ask("POST", *agent + "/sql", dump_json({{"sql", command.arguments}}));
  if (!answer) return failed(answer.error().message);
  if (command.json) return {.out = dump_json(*answer) + "\n", .err = {}};
  const auto cells_of = [](const Json& values) {
    std::vector<std::string> cells;
    for (const Json& each : values)
      cells.push_back(each.is_string() ? each.get<std::string>()
                      : each.is_null() ? "null"
                                       : dump_json(each));
    return cells;
  };
  TextTable table(cells_of(list_in(*answer, "columns")));
  for (const Json& row : list_in(*answer, "rows")) table.add(cells_of(row));
  AdminOutput output{.out = table.text(), .err = {}};
  if (answer->value("truncated", false)) output.err = "hearth: there are more rows\n";
  return output;
}

}  // namespace

AdminOutput ask_server(const AdminCommand& command) {
  std::filesystem::path data;
  if (command.data) {
    data = std::filesystem::absolute(*command.data);
  } else {
    const config::ServerFileResult loaded = config::load_server_file(command.config);
    if (!loaded) {
      AdminOutput output{.status = kExitBadUsage, .out = {}, .err = {}};
      for (const config::Diagnostic& mistake : loaded.error())
        output.err += to_string(mistake) + "\n";
      return output;
    }
    data = loaded->data;
  }
  const auto client = AdminClient::on(data);
  if (!client) return failed(client.error().message);
  switch (command.what) {
    case AdminCommand::What::kConsole: return show_console(*client, command);
    case AdminCommand::What::kPlugins: return show_plugins(*client, command);
    case AdminCommand::What::kReload: return reload(*client, command);
    case AdminCommand::What::kMethods: return show_methods(*client, command);
    case AdminCommand::What::kAgents: return show_agents(*client, command);
    case AdminCommand::What::kEvict: return evict(*client, command);
    case AdminCommand::What::kDestroy: return destroy(*client, command);
    case AdminCommand::What::kCall: return call_object(*client, command);
    case AdminCommand::What::kWhy: return show_why(*client, command);
    case AdminCommand::What::kStuck: return show_stuck(*client, command);
    case AdminCommand::What::kOperations: return show_operations(*client, command);
    case AdminCommand::What::kResolve: return resolve_operation(*client, command);
    case AdminCommand::What::kWork: return ask_about_work(*client, command);
    case AdminCommand::What::kSql: return show_sql(*client, command);
  }
  return failed("this is not known");
}

}  // namespace hearth::cli
