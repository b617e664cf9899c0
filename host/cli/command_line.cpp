#include "cli/command_line.hpp"

#include "cli/admin_options.hpp"
#include "cli/project_build.hpp"
#include "cli/version.hpp"
#include "config/server_file.hpp"
#include "config/units.hpp"
#include "server/supervisor.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

#include <CLI/CLI.hpp>

namespace hearth::cli {
namespace {

constexpr const char* kPurpose =
    "Hearth serves stateful agents: long-lived objects, each with a name, a database of its own "
    "and its own\n"
    "clients over WebSocket and HTTP. Their classes are shared libraries in a directory.\n";

constexpr const char* kExamples =
    "Examples:\n"
    "  hearth serve                                  serve ./plugins, or else the libraries that "
    "came "
    "with hearth\n"
    "  hearth serve --plugins build/plugins          serve these, on 127.0.0.1:8787\n"
    "  hearth serve --config /etc/hearth/hearth.yaml --check-config\n"
    "  hearth config --config /etc/hearth/hearth.yaml  every setting, and where its value is from\n"
    "  hearth new greeter && cd greeter              begin a library of your own\n"
    "  hearth dev                                    build it, serve it, and again at each save\n"
    "  hearth check build/plugins/greeter.so         see whether it keeps the contract\n"
    "  hearth plugins                                what a running server serves\n"
    "\n"
    "An agent is at ws://HOST:PORT/agents/CLASS/NAME, and over HTTP at the same path; it comes to "
    "life when somebody\n"
    "asks for it:\n"
    "  curl -X POST http://127.0.0.1:8787/agents/counter/first\n"
    "\n"
    "Exit status: 0 done, 1 could not be done, 2 asked wrongly (a flag or a configuration file); "
    "of "
    "a server also 3, a\n"
    "library's code did not return, and 4, it called exit().\n"
    "`hearth COMMAND --help` explains a command; README.md and config/README.md tell the rest.";

constexpr const char* kServeNotes =
    "Prints one line on stdout when clients can connect: `hearth ready: listening on "
    "127.0.0.1:8787`. Logs go to\n"
    "stderr. At SIGTERM or SIGINT running work may finish, clients are told to come back, and "
    "databases are closed; a\n"
    "second signal ends the server at once.\n"
    "\n"
    "With --supervised a server that crashes is started again at once, and ever more slowly if it "
    "keeps crashing: for\n"
    "people without systemd. Signals go to the supervisor, which passes them on.\n"
    "\n"
    "A flag wins over the configuration file, and the file over the defaults. Without --config no "
    "server file is\n"
    "read: data, plugins and classes are then the directories of these names below the current "
    "one. Where there is\n"
    "no directory `plugins`, an installed hearth serves the libraries that were installed with "
    "it.";

constexpr const char* kDevNotes =
    "In a project such as `hearth new` writes: builds its libraries with cmake (the preset `dev`, "
    "in ./build), serves\n"
    "them as `hearth serve --supervised` does, and builds again whenever a source, a "
    "CMakeLists.txt or a\n"
    "CMakePresets.json is saved. A good build is copied from ./build/plugins to ./build/served, "
    "and the server replaces\n"
    "its libraries while their clients stay connected. What does not compile or link is told, and "
    "the version before\n"
    "goes on. Class files (./classes) and flags are those of `hearth serve`.\n"
    "\n"
    "Examples:\n"
    "  hearth new greeter && cd greeter && hearth dev\n"
    "  hearth dev --listen 127.0.0.1:9000 --log-level debug";

constexpr const char* kConfigNotes =
    "Says what `hearth serve` with the same flags would use, setting by setting: the server's, and "
    "those of each class that\n"
    "has a class file. A class without one has the defaults; --class prints them for any name. "
    "FROM is `default`, the\n"
    "flag, or the file and the line. Of a class's `options`, which may hold secrets, only the "
    "names are printed; tokens are\n"
    "not read at all. What each setting means stands in config/README.md.\n"
    "\n"
    "This reads the files as they are now. A running server has what stood there when it started; "
    "class files it reads\n"
    "again when they change. And it lowers max_connections and max_live_agents if the system "
    "allows it too few open files\n"
    "(server.few_descriptors in its log).\n"
    "\n"
    "Examples:\n"
    "  hearth config                                           what holds without any file\n"
    "  hearth config --config /etc/hearth/hearth.yaml          and with this one\n"
    "  hearth config --config hearth.yaml --class counter      for one class of agents\n"
    "  hearth config --config hearth.yaml --json | jq '.server.settings[] | select(.from != "
    "\"default\")'\n"
    "\n"
    "Exit status: 0 printed, 2 the files have mistakes, each of which is printed with its "
    "line.";

constexpr const char* kNewNotes =
    "The project has one source, a test that needs no server, the class's settings, CMakeLists.txt "
    "and README.md, and\n"
    "builds against Hearth where it is installed, or beside the hearth that is in PATH.";

constexpr const char* kCheckNotes =
    "Reads the file without running it, loads it in a child process, and then tries some thirty "
    "cases with it, each in "
    "a child of\n"
    "its own: how it starts and ends, what its agents do with events, results, deadlines and hosts "
    "that fail. Methods "
    "that are\n"
    "called are found among the texts of the library. plugin-api/README.md, \"Check your "
    "library\", explains it.\n"
    "\n"
    "Examples:\n"
    "  hearth check build/plugins/chat-room.so\n"
    "  hearth check --json --seed $RANDOM chat-room.so > report.json     in the CI of a library\n"
    "  hearth check --data /var/lib/hearth chat-room.so                  for a server with "
    "require_checked\n"
    "\n"
    "Exit status: 0 it has passed, 1 it has not, 2 it could not be tried.";

constexpr const char* kQuarantineNotes =
    "A class of a library whose calls ended the server more than three times in five minutes is "
    "not served from then\n"
    "on: its agents keep their data, clients are answered 503, other classes go on. A library with "
    "other content in its\n"
    "place is served at once, and so is the class when it is released. Both commands ask the "
    "server that runs on the data\n"
    "directory, and without one look into the directory itself.";

constexpr const char* kAuditNotes =
    "Each line: when, what, who, the class and the agent, and what else is known. The server keeps "
    "the entries\n"
    "(audit.max_entries, audit.keep), and appends them to audit.file if that is set.";

constexpr const char* kRepairNotes =
    "For a stopped server. Reads the file of each agent, and makes the directory of agents "
    "(host.db) "
    "say what they say:\n"
    "agents that are not in it are listed, and their schedules, queues and interrupted work are "
    "put "
    "into the wake index.\n"
    "Run it after you have put files of agents back from a backup, or lost host.db. The data of "
    "agents are not changed.\n"
    "\n"
    "An agent that has stored data and whose file is gone is named and left as it is: the server "
    "answers 503 for it. Put\n"
    "its file back, or accept the loss with --forget-missing: then its next client meets a new "
    "agent.\n"
    "\n"
    "Exit status: 0 all is in order now, 1 something is left that only you can decide, or it could "
    "not be done.";

// Takes the text of an option through a parser of the configuration, so that both are spelled
// alike.
template <class Target, class Parse>
auto into(Target& target, const char* option, Parse parse) {
  return [&target, option, parse = std::move(parse)](const std::string& text) {
    auto value = parse(text);
    if (!value) throw CLI::ValidationError(option, value.error().message);
    target = *std::move(value);
  };
}

Result<unsigned> parse_shards(const std::string& text) {
  const auto count = config::parse_count(text);
  if (!count || *count < 1 || *count > config::kMaxShards) {
    return Error{Errc::kInvalidArgument, "expected a whole number from 1 to " +
                                             std::to_string(config::kMaxShards) + ", found \"" +
                                             text + "\""};
  }
  return static_cast<unsigned>(*count);
}

// "debug, info or warn"
template <class T>
std::string listed(const config::Words<T>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
    text += words[i].first;
  }
  return text;
}

template <class T>
auto one_of(const config::Words<T>& words) {
  return [&words](const std::string& text) -> Result<T> {
    for (const auto& [word, value] : words) {
      if (text == word) return value;
    }
    return Error{Errc::kInvalidArgument, "expected " + listed(words) + ", found \"" + text + "\""};
  };
}

void add_configuration(CLI::App& command, ConfigurationFlags& flags) {
  command
      .add_option("--config", flags.config,
                  "Server file; its `classes` directory holds the class files")
      ->type_name("FILE");
  command
      .add_option_function<std::string>(
          "--listen", into(flags.listen, "--listen", config::parse_listen_address),
          "Where clients connect (127.0.0.1:8787); port 0 takes a free one")
      ->type_name("HOST:PORT");
  command.add_option("--data", flags.data, "Where databases are kept (data); one server at a time")
      ->type_name("DIR");
  command
      .add_option("--plugins", flags.plugins,
                  "Directory of libraries (plugins); may be given more than once")
      ->type_name("DIR")
      ->allow_extra_args(false);
  command
      .add_option_function<std::string>("--shards", into(flags.shards, "--shards", parse_shards),
                                        "Event loops, each with a thread (one a core)")
      ->type_name("N");
  command
      .add_option_function<std::string>(
          "--log-level", into(flags.log_level, "--log-level", one_of(config::log_levels())),
          listed(config::log_levels()) + " (info)")
      ->type_name("L");
  command
      .add_option_function<std::string>(
          "--log-format", into(flags.log_format, "--log-format", one_of(config::log_formats())),
          "human, json, or auto: human on a terminal (auto)")
      ->type_name("F");
}

void add_serve(CLI::App& app, ServeCommand& serve) {
  CLI::App& command = *app.add_subcommand("serve", "Serve agents until SIGTERM or SIGINT");
  command.footer(kServeNotes);
  add_configuration(command, serve);
  command.add_flag("--check-config", serve.check_config,
                   "Only say what is wrong with the configuration");
  command
      .add_flag("--supervised", serve.supervised,
                "Run the server in a child process, and restart it when it crashes")
      ->disable_flag_override();
  command.add_option(server::kSupervisorOption, serve.supervisor_descriptor)->group("");  // hidden
}

void add_dev(CLI::App& app, DevCommand& dev) {
  CLI::App& command =
      *app.add_subcommand("dev", "Build your project, serve it, and build again at each save");
  command.footer(kDevNotes);
  add_configuration(command, dev);
}

void add_config(CLI::App& app, ConfigCommand& config) {
  CLI::App& command =
      *app.add_subcommand("config", "Print every setting, and where its value is from");
  command.footer(kConfigNotes);
  command
      .add_option("--class", config.agent_class,
                  "Only this class, as it is (ChatRoom) or as URLs spell it (chat-room)")
      ->type_name("CLASS");
  command.add_flag("--json", config.json, "As one JSON object");
  add_configuration(command, config);
  using Reference = ConfigCommand::Reference;
  command
      .add_option_function<std::string>("--reference",
                                        [&config](const std::string& of) {
                                          config.reference = of == "class" ? Reference::kClass
                                                                           : Reference::kServer;
                                        })
      ->check(CLI::IsMember({"server", "class"}))
      ->group("");  // hidden: for tests/lint/reference.py
}

void add_new(CLI::App& app, NewCommand& fresh) {
  CLI::App& command = *app.add_subcommand("new", "Begin a library of agents of your own");
  command.footer(kNewNotes);
  command
      .add_option(
          "NAME", fresh.name,
          "Of the library and its class: lower-case letters, digits and -, such as chat-room")
      ->required()
      ->type_name("");
  command
      .add_option("--dir", fresh.directory,
                  "Where to write it (./NAME); must not exist, or be empty")
      ->type_name("DIR");
}

void add_check(CLI::App& app, CheckCommand& check) {
  CLI::App& command = *app.add_subcommand("check", "Try whether a library keeps the contract");
  command.footer(kCheckNotes);
  command.add_option("LIB", check.library, "The library (LIB.so)")->required()->type_name("");
  command.add_flag("--json", check.json, "The report as one JSON object");
  command.add_flag("--only-failed", check.only_failed, "Say only what has failed");
  command
      .add_option("--data", check.data,
                  "Data directory of a server: write there that the library has passed")
      ->type_name("DIR");
  command.add_option("--seed", check.seed, "Of what is random (1); a failure comes back with it")
      ->type_name("N");
  command
      .add_option_function<std::string>(
          "--time-limit", into(check.time_limit, "--time-limit", config::parse_duration),
          "Of one case (10s)")
      ->type_name("TIME");
  command.add_option("--options", check.options, "JSON that the agents are made with ({})")
      ->type_name("JSON");
  command
      .add_option("--call", check.methods,
                  "A method to call, instead of those that are found; may be given more than once")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command
      .add_option("--older", check.older,
                  "The version before: its agents' data must be brought to this one's")
      ->type_name("LIB");
  command.add_flag_callback("--no-calls", [&check] { check.may_call = false; }, "Call no methods");
  command
      .add_option("--exclude", check.excluded,
                  "A rule or case to leave out (E9, T303); may be given more than once")
      ->type_name("ID")
      ->allow_extra_args(false);
  command
      .add_option("--only", check.only,
                  "Of the cases T101 to T501 only this one; may be given more than once")
      ->type_name("ID")
      ->allow_extra_args(false);
}

void add_quarantine(CLI::App& app, QuarantineCommand& quarantine) {
  CLI::App& command = *app.add_subcommand(
      "quarantine", "Classes that are not served because their code ended the server too often");
  command.footer(kQuarantineNotes);
  command.require_subcommand(1);
  CLI::App& list = *command.add_subcommand("list", "Say which, since when and why");
  CLI::App& release =
      *command.add_subcommand("release", "Serve one again, at once if a server runs");
  release.add_option("CLASS", quarantine.release, "As `list` names it")->required()->type_name("");
  for (CLI::App* const each : {&list, &release}) {
    each->add_flag("--json", quarantine.json, "As one JSON object");
    each->add_option("--config", quarantine.config, "Server file, which says where data is kept")
        ->type_name("FILE");
    each->add_option("--data", quarantine.data, "Where databases are kept (data)")
        ->type_name("DIR");
  }
}

void add_audit(CLI::App& app, AuditCommand& audit) {
  CLI::App& command = *app.add_subcommand(
      "audit", "What was done on a server: agents, libraries, settings, administrators");
  command.footer(kAuditNotes);
  command.add_option("-n,--lines", audit.lines, "The last so many (100)")
      ->check(CLI::Range(1, 1000))
      ->type_name("N");
  command.add_flag("-f,--follow", audit.follow, "Go on with what comes, until Ctrl-C");
  command
      .add_option_function<std::string>("--since",
                                        into(audit.since, "--since", config::parse_duration),
                                        "Not older than this, such as 30m or 24h")
      ->type_name("TIME");
  command.add_option("--event", audit.event, "Only these, such as ReloadDone")->type_name("NAME");
  command.add_option("--actor", audit.actor, "server, administrator, agent or client")
      ->type_name("WHO");
  command.add_option("--class", audit.agent_class, "Of this class (ChatRoom, chat-room)")
      ->type_name("CLASS");
  command.add_option("--agent", audit.agent, "Of the agent of this name")->type_name("NAME");
  command.add_flag("--json", audit.json, "Each entry as one JSON object");
  command.add_option("--config", audit.config, "Server file, which says where data is kept")
      ->type_name("FILE");
  command.add_option("--data", audit.data, "Data directory of the server (data)")->type_name("DIR");
}

void add_repair(CLI::App& app, RepairCommand& repair) {
  CLI::App& command = *app.add_subcommand(
      "repair", "Rebuild the directory of agents from their files, while no server runs");
  command.footer(kRepairNotes);
  command.add_option("--config", repair.config, "Server file, which says where data is kept")
      ->type_name("FILE");
  command.add_option("--data", repair.data, "Where databases are kept (data)")->type_name("DIR");
  command.add_flag("--forget-missing", repair.forget_missing,
                   "Forget the agents whose files are gone: their data are lost");
}

// Of the server that serves what `hearth dev` builds.
std::vector<std::string> served_by_dev(int argc, const char* const* argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  *std::ranges::find(arguments, "dev") = "serve";
  arguments.insert(arguments.end(), {"--plugins", ProjectBuild::kServed});
  return arguments;
}

// Help asked for is an answer; anything else that stops CLI11 is a mistake.
Answer answer_of(const CLI::App& app, const CLI::ParseError& stop) {
  std::ostringstream out;
  std::ostringstream mistakes;
  if (app.exit(stop, out, mistakes) == 0) return Answer{kExitClean, out.str()};
  return Answer{kExitBadUsage, "hearth: " + mistakes.str()};
}

}  // namespace

Command parse_command_line(int argc, const char* const* argv) {
  CLI::App app(kPurpose, "hearth");
  app.footer(kExamples);
  app.get_formatter()->column_width(24);
  app.get_formatter()->label("SUBCOMMAND", "COMMAND");
  app.get_formatter()->label("Subcommands", "Commands");
  app.set_version_flag("--version", version_text());
  ServeCommand serve;
  NewCommand fresh;
  add_serve(app, serve);
  DevCommand dev;
  add_dev(app, dev);
  ConfigCommand config;
  add_config(app, config);
  add_new(app, fresh);
  QuarantineCommand quarantine;
  add_quarantine(app, quarantine);
  AuditCommand audit;
  add_audit(app, audit);
  RepairCommand repair;
  add_repair(app, repair);
  CheckCommand check;
  add_check(app, check);
  AdminCommand admin;
  add_admin_commands(app, admin);
  app.require_subcommand(0, 1);  // `serve plugins` is a mistake, not two commands
  const CLI::App* const version = app.add_subcommand("version", "Say which version this is");
  if (argc <= 1) return Answer{kExitBadUsage, app.help()};
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& stop) {
    return answer_of(app, stop);
  }
  if (version->parsed()) return Answer{kExitClean, version_text() + "\n"};
  if (app.got_subcommand("new")) {
    if (fresh.directory.empty()) fresh.directory = fresh.name;
    return fresh;
  }
  for (const char* const each : {"plugins", "reload", "methods", "agents", "evict", "destroy",
                                 "call", "operations", "resolve"}) {
    if (app.got_subcommand(each)) return admin;
  }
  if (app.got_subcommand("quarantine")) return quarantine;
  if (app.got_subcommand("audit")) return audit;
  if (app.got_subcommand("repair")) return repair;
  if (app.got_subcommand("check")) return check;
  if (app.got_subcommand("config")) return config;
  if (app.got_subcommand("dev")) {
    dev.child_arguments = served_by_dev(argc, argv);
    return dev;
  }
  if (app.got_subcommand("serve")) {
    serve.child_arguments = server::unsupervised(argc, argv);
    return serve;
  }
  return Answer{kExitBadUsage, app.help()};
}

}  // namespace hearth::cli
