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
    "Hearth serves stateful agents: long-lived objects, each with a name and its own database.\n"
    "Clients reach them over WebSocket and HTTP. Their classes are shared libraries in a "
    "directory.\n";

constexpr const char* kExamples =
    "Examples:\n"
    "  hearth serve                              serve ./plugins, or the libraries of the install\n"
    "  hearth serve --plugins build/plugins      serve these, on 127.0.0.1:8787\n"
    "  hearth serve --config /etc/hearth/hearth.yaml --check-config\n"
    "  hearth config --config /etc/hearth/hearth.yaml\n"
    "                                            every setting, and where its value comes from\n"
    "  hearth new greeter && cd greeter          begin a library of your own\n"
    "  hearth dev                                build it, serve it, and again at each save\n"
    "  hearth check build/plugins/greeter.so     does it keep the contract?\n"
    "  hearth plugins                            the libraries that a running server serves\n"
    "\n"
    "An agent is at ws://HOST:PORT/agents/CLASS/NAME, and over HTTP at the same path. The first\n"
    "request makes it:\n"
    "  curl -X POST http://127.0.0.1:8787/agents/counter/first\n"
    "\n"
    "Exit status: 0 done, 1 could not be done, 2 a mistake in a flag or a configuration file. A\n"
    "server also has 3 (a library's code did not return) and 4 (a library's code called exit()).\n"
    "`hearth COMMAND --help` explains a command; see also README.md and config/README.md.";

constexpr const char* kServeNotes =
    "Prints one line on stdout when clients can connect: `hearth ready: listening on\n"
    "127.0.0.1:8787`. Logs go to stderr. At SIGTERM or SIGINT running work may finish, clients "
    "are\n"
    "told to reconnect, and databases are closed. A second signal ends the server at once.\n"
    "\n"
    "With --supervised a server that crashes is restarted at once, and after growing waits if it\n"
    "keeps crashing: for machines without systemd. The supervisor passes signals on to the "
    "server.\n"
    "\n"
    "A flag wins over the configuration file, and the file over the defaults. Without --config no\n"
    "server file is read: data, plugins and classes are then the directories of these names in "
    "the\n"
    "current directory. Without a directory `plugins`, an installed hearth serves the libraries "
    "of\n"
    "the install.";

constexpr const char* kDevNotes =
    "For a project as `hearth new` writes it. Builds its libraries with cmake (the preset `dev`, "
    "in\n"
    "./build), and serves them as `hearth serve --supervised` does. Builds again whenever a "
    "source,\n"
    "a CMakeLists.txt or a CMakePresets.json is saved.\n"
    "\n"
    "A good build is copied from ./build/plugins to ./build/served, and the server replaces its\n"
    "libraries while their clients stay connected. If the code does not compile or link, the "
    "output\n"
    "says so, and the version before is still served. Class files (./classes) and flags are those\n"
    "of `hearth serve`.\n"
    "\n"
    "Examples:\n"
    "  hearth new greeter && cd greeter && hearth dev\n"
    "  hearth dev --listen 127.0.0.1:9000 --log-level debug";

constexpr const char* kConfigNotes =
    "Prints the value of each setting that `hearth serve` with the same flags would use: those of\n"
    "the server, and of each class with a class file. A class without a file has the defaults;\n"
    "--class prints them for any name. FROM is `default`, the flag, or the file and the line.\n"
    "Values of a class's `options` may be secret: only their names are printed. Tokens are not\n"
    "read. config/README.md explains the settings.\n"
    "\n"
    "The command reads the files as they are now. A running server has read the server file at "
    "its\n"
    "start, and reads class files again when they change. It lowers max_connections and\n"
    "max_live_agents if the system allows too few open files (server.few_descriptors in its log).\n"
    "\n"
    "Examples:\n"
    "  hearth config                                       the values without any file\n"
    "  hearth config --config /etc/hearth/hearth.yaml      and with this file\n"
    "  hearth config --config hearth.yaml --class counter  for one class of agents\n"
    "  hearth config --config hearth.yaml --json |\n"
    "    jq '.server.settings[] | select(.from != \"default\")'\n"
    "\n"
    "Exit status: 0 printed, 2 the files have mistakes, which are printed with their lines.";

constexpr const char* kNewNotes =
    "The project has one source, a test that needs no server, the class's settings, "
    "CMakeLists.txt\n"
    "and README.md. It builds against the installed Hearth, or the one of the hearth in PATH.";

constexpr const char* kCheckNotes =
    "First reads the file without running it, then loads it in a child process, and then tries "
    "some\n"
    "thirty cases, each in its own child: how the library starts and ends, and what its agents do\n"
    "with events, results, deadlines and hosts that fail. It finds the methods to call among the\n"
    "texts of the library. plugin-api/README.md explains it (\"Check your library\").\n"
    "\n"
    "Examples:\n"
    "  hearth check build/plugins/chat-room.so\n"
    "  hearth check --json --seed $RANDOM chat-room.so > report.json    in the CI of a library\n"
    "  hearth check --data /var/lib/hearth chat-room.so                 for a server with\n"
    "                                                                   require_checked\n"
    "\n"
    "Exit status: 0 passed, 1 failed, 2 the library could not be tried.";

constexpr const char* kQuarantineNotes =
    "A class whose calls crashed the server more than three times in five minutes is not served "
    "any\n"
    "more: its agents keep their data, its clients get 503, other classes are served. A library\n"
    "with other content is served at once, and so is a class that is released. Both commands ask\n"
    "the server that runs on the data directory. Without one they work on the directory itself.";

constexpr const char* kAuditNotes =
    "Each line has the time, the event, the actor, the class and the agent, and details. The "
    "server\n"
    "keeps the entries (audit.max_entries, audit.keep), and appends them to audit.file if it is "
    "set.";

constexpr const char* kTailNotes =
    "Goes on until Ctrl-C. It connects again if the server restarts, and says if events were lost\n"
    "meanwhile. You must be able to read the administrators' token in the data directory.";

constexpr const char* kRepairNotes =
    "For a stopped server. Reads the file of each agent, and corrects the directory of agents\n"
    "(host.db): agents that it lacks are listed, and their schedules, queues and interrupted work\n"
    "are put into the wake index. Run it after you have restored files of agents from a backup, "
    "or\n"
    "have lost host.db. It does not change the agents' data.\n"
    "\n"
    "If an agent has stored data and its file is gone, the command names the agent and leaves it:\n"
    "the server answers 503 for it. Restore the file, or accept the loss with --forget-missing: "
    "the\n"
    "next client then gets a new agent.\n"
    "\n"
    "Exit status: 0 all is in order now, 1 you must decide about something, or the repair failed.";

constexpr const char* kBackupNotes =
    "The server makes a directory below DIR, named by the time, with a copy of each agent and of "
    "all\n"
    "else, as they were at one moment, the mark: every write that was acknowledged before is "
    "there.\n"
    "Files that have not changed are hard links to the last backup in DIR. Clients go on "
    "meanwhile.\n"
    "Prints the new directory. Not in it: libraries, class files and the server file.";

constexpr const char* kRestoreNotes =
    "DIR is a backup, or a directory of backups: then the newest. The data directory must not "
    "exist\n"
    "or be empty; with --replace the old one stays beside it, as DATA.before-TIME. With --agent "
    "one\n"
    "agent gets its copy, in a data directory that no server uses. What work the agents have goes "
    "on\n"
    "when a server starts: stop the old one for ever, or the work is done twice.";

constexpr const char* kVerifyNotes =
    "DIR is a backup, or a directory of backups: then the newest. Compares each file with what "
    "was\n"
    "copied, opens a copy of each database, and says how much work would resume.\n"
    "\n"
    "Exit status: 0 the backup is whole, 1 it is not; what is damaged or missing is named.";

// Parses the text of an option with a parser of the configuration, so that both have the same form.
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
          "Where clients connect (127.0.0.1:8787); port 0: the system chooses")
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
                                        "Event loops, each with a thread (one for each core)")
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
                   "Only check the configuration, and print its mistakes");
  command
      .add_flag("--supervised", serve.supervised,
                "Run the server in a child process, and restart it when it crashes")
      ->disable_flag_override();
  command
      .add_flag("--show-failures", serve.show_failures,
                "Show clients the text of every exception (show_failures), as `hearth dev` does")
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
      *app.add_subcommand("config", "Print every setting, and where its value comes from");
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
  CLI::App& command = *app.add_subcommand("check", "Check whether a library keeps the contract");
  command.footer(kCheckNotes);
  command.add_option("LIB", check.library, "The library (LIB.so)")->required()->type_name("");
  command.add_flag("--json", check.json, "The report as one JSON object");
  command.add_flag("--only-failed", check.only_failed, "Print only what has failed");
  command
      .add_option("--data", check.data,
                  "Data directory of a server: record there that the library has passed")
      ->type_name("DIR");
  command.add_option("--seed", check.seed, "Seed of random values (1); repeats a failure")
      ->type_name("N");
  command
      .add_option_function<std::string>(
          "--time-limit", into(check.time_limit, "--time-limit", config::parse_duration),
          "Time for one case (10s)")
      ->type_name("TIME");
  command.add_option("--options", check.options, "JSON that the agents are made with ({})")
      ->type_name("JSON");
  command
      .add_option("--call", check.methods,
                  "A method to call, instead of those found; may be given more than once")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command
      .add_option("--older", check.older,
                  "The version before: the library must migrate its agents' data")
      ->type_name("LIB");
  command.add_flag_callback("--no-calls", [&check] { check.may_call = false; }, "Call no methods");
  command
      .add_option("--exclude", check.excluded,
                  "A rule or case to leave out (E9, T303); may be given more than once")
      ->type_name("ID")
      ->allow_extra_args(false);
  command
      .add_option("--only", check.only,
                  "Only this one of the cases T101 to T501; may be given more than once")
      ->type_name("ID")
      ->allow_extra_args(false);
}

void add_quarantine(CLI::App& app, QuarantineCommand& quarantine) {
  CLI::App& command = *app.add_subcommand(
      "quarantine", "Classes that are not served because their code crashed the server too often");
  command.footer(kQuarantineNotes);
  command.require_subcommand(1);
  CLI::App& list = *command.add_subcommand("list", "The classes, since when and why");
  CLI::App& release =
      *command.add_subcommand("release", "Serve a class again, at once if a server runs");
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
  command.add_option("-n,--lines", audit.lines, "How many of the last entries (100)")
      ->check(CLI::Range(1, 1000))
      ->type_name("N");
  command.add_flag("-f,--follow", audit.follow, "Also print new entries, until Ctrl-C");
  command
      .add_option_function<std::string>("--since",
                                        into(audit.since, "--since", config::parse_duration),
                                        "Not older than this, such as 30m or 24h")
      ->type_name("TIME");
  command.add_option("--event", audit.event, "Only this event, such as ReloadDone")
      ->type_name("NAME");
  command.add_option("--actor", audit.actor, "server, administrator, console, agent or client")
      ->type_name("ACTOR");
  command.add_option("--class", audit.agent_class, "Only this class (ChatRoom, chat-room)")
      ->type_name("CLASS");
  command.add_option("--agent", audit.agent, "Only the agent of this name")->type_name("NAME");
  command.add_flag("--json", audit.json, "Each entry as one JSON object");
  command.add_option("--config", audit.config, "Server file, which says where data is kept")
      ->type_name("FILE");
  command.add_option("--data", audit.data, "Data directory of the server (data)")->type_name("DIR");
}

void add_tail(CLI::App& app, TailCommand& tail) {
  CLI::App& command =
      *app.add_subcommand("tail", "The events of a running server's log as they happen");
  command.footer(kTailNotes);
  command.add_option("AGENT", tail.agent, "Only this agent, CLASS/NAME, or this CLASS")
      ->type_name("");
  command
      .add_option_function<std::string>("--since",
                                        into(tail.since, "--since", config::parse_duration),
                                        "Also the last ones, not older than this, such as 10m")
      ->type_name("TIME");
  command.add_option("--trace", tail.trace, "Only what a request with this trace id caused")
      ->type_name("ID");
  command.add_option("--level", tail.level, "The finest level (info)")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error"}))
      ->type_name("LEVEL");
  command.add_flag("--json", tail.json, "Each event as one JSON object, as in the log");
  command.add_option("--config", tail.config, "Server file, which says where data is kept")
      ->type_name("FILE");
  command.add_option("--data", tail.data, "Data directory of the server (data)")->type_name("DIR");
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

void add_backup(CLI::App& app, BackupCommand& backup) {
  using What = BackupCommand::What;
  const auto add = [&](What what, const char* name, const char* purpose, const char* notes,
                       const char* directory) {
    CLI::App& command = *app.add_subcommand(name, purpose);
    command.footer(notes);
    command.parse_complete_callback([&backup, what] { backup.what = what; });
    command.add_option("DIR", backup.directory, directory)->required()->type_name("");
    if (what == What::kVerify) return &command;
    command.add_option("--config", backup.config, "Server file, which says where data is kept")
        ->type_name("FILE");
    command.add_option("--data", backup.data, "Data directory of the server (data)")
        ->type_name("DIR");
    return &command;
  };
  add(What::kBackup, "backup", "Copy all data of a running server", kBackupNotes,
      "Where backups are kept; the server makes it, as its user")
      ->add_option_function<std::string>(
          "--rate",
          [&backup](const std::string& text) {
            const auto rate = config::parse_size(text);
            if (!rate || *rate == 0)
              throw CLI::ValidationError("--rate", "expected a size, such as 64MiB");
            backup.rate = *rate;
          },
          "How much it copies in a second (32MiB)")
      ->type_name("SIZE");
  CLI::App& restore = *add(What::kRestore, "restore", "Make a data directory of a backup",
                           kRestoreNotes, "The backup");
  restore.add_option("--agent", backup.agent, "Only this one, the class as it is: ChatRoom/lobby")
      ->type_name("CLASS/NAME");
  restore.add_flag("--replace", backup.replace, "Keep what is there beside what is restored");
  add(What::kVerify, "verify", "Check whether a backup is whole, and what it would resume",
      kVerifyNotes, "The backup");
}

// The arguments of the server that serves what `hearth dev` builds.
std::vector<std::string> served_by_dev(int argc, const char* const* argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  *std::ranges::find(arguments, "dev") = "serve";
  arguments.insert(arguments.end(), {"--plugins", ProjectBuild::kServed, "--show-failures"});
  return arguments;
}

// A request for help is answered. Anything else that stops CLI11 is a mistake.
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
  TailCommand tail;
  add_tail(app, tail);
  RepairCommand repair;
  add_repair(app, repair);
  BackupCommand backup;
  add_backup(app, backup);
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
  for (const char* const each :
       {"console", "plugins", "reload", "methods", "agents", "evict", "destroy", "call", "why",
        "stuck", "operations", "resolve", "fibers", "schedules", "queue", "sql"}) {
    if (app.got_subcommand(each)) return admin;
  }
  if (app.got_subcommand("quarantine")) return quarantine;
  if (app.got_subcommand("audit")) return audit;
  if (app.got_subcommand("tail")) return tail;
  if (app.got_subcommand("repair")) return repair;
  for (const char* const each : {"backup", "restore", "verify"}) {
    if (app.got_subcommand(each)) return backup;
  }
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
