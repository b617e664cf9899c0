#include "cli/command_line.hpp"

#include "base/escape.hpp"
#include "cli/admin_options.hpp"
#include "cli/command_options.hpp"
#include "cli/project_build.hpp"
#include "config/server_file.hpp"
#include "config/units.hpp"
#include "server/backups.hpp"
#include "server/supervisor.hpp"

#include <hearth/abi.h>

#include <boost/version.hpp>

#include <algorithm>
#include <memory>
#include <sstream>
#include <utility>

#include <CLI/CLI.hpp>

namespace hearth::cli {
namespace {

using Chosen = std::optional<Command>;

// Each text begins behind a line feed.
constexpr const char* kPurpose = R"(
Hearth serves stateful agents: long-lived objects, each with a name and its own database.
Clients reach them over WebSocket and HTTP. Their classes are shared libraries in a directory.
)";

constexpr const char* kExamples = R"(
Examples:
  hearth serve                              serve ./plugins, or the libraries of the install
  hearth serve --plugins build/plugins      serve these, on 127.0.0.1:8787
  hearth serve --config /etc/hearth/hearth.yaml --check-config
  hearth config --config /etc/hearth/hearth.yaml
                                            every setting, and where its value comes from
  hearth new greeter && cd greeter          begin a library of your own
  hearth dev                                build it, serve it, and again at each save
  hearth check build/plugins/greeter.so     does it keep the contract?
  hearth plugins                            the libraries that a running server serves

An agent is at ws://HOST:PORT/agents/CLASS/NAME, and over HTTP at the same path. The first
request makes it:
  curl -X POST http://127.0.0.1:8787/agents/counter/first

Exit status: 0 done, 1 could not be done, 2 a mistake in a flag or a configuration file. A
server also has 3 (a library's code did not return) and 4 (a library's code called exit()).
`hearth COMMAND --help` explains a command; see also README.md and config/README.md.)";

constexpr const char* kServeNotes = R"(
Prints one line on stdout when clients can connect: `hearth ready: listening on
127.0.0.1:8787`. Logs go to stderr. At SIGTERM or SIGINT running work may finish, clients are
told to reconnect, and databases are closed. A second signal ends the server at once.

With --supervised a server that crashes is restarted at once, and after growing waits if it
keeps crashing: for machines without systemd. The supervisor passes signals on to the server.

A flag wins over the configuration file, and the file over the defaults. Without --config no
server file is read: data, plugins and classes are then the directories of these names in the
current directory. Without a directory `plugins`, an installed hearth serves the libraries of
the install.)";

constexpr const char* kDevNotes = R"(
For a project as `hearth new` writes it. Builds its libraries with cmake (the preset `dev`, in
./build), and serves them as `hearth serve --supervised` does. Builds again whenever a source,
a CMakeLists.txt or a CMakePresets.json is saved.

A good build is copied from ./build/plugins to ./build/served, and the server replaces its
libraries while their clients stay connected. If the code does not compile or link, the output
says so, and the version before is still served. Class files (./classes) and flags are those
of `hearth serve`.

Examples:
  hearth new greeter && cd greeter && hearth dev
  hearth dev --listen 127.0.0.1:9000 --log-level debug)";

constexpr const char* kConfigNotes = R"(
Prints the value of each setting that `hearth serve` with the same flags would use: those of
the server, and of each class with a class file. A class without a file has the defaults;
--class prints them for any name. FROM is `default`, the flag, or the file and the line.
Values of a class's `options` may be secret: only their names are printed. Tokens are not
read. config/README.md explains the settings.

The command reads the files as they are now. A running server has read the server file at its
start, and reads class files again when they change. It lowers max_connections and
max_live_agents if the system allows too few open files (server.few_descriptors in its log).

Examples:
  hearth config                                       the values without any file
  hearth config --config /etc/hearth/hearth.yaml      and with this file
  hearth config --config hearth.yaml --class counter  for one class of agents
  hearth config --config hearth.yaml --json |
    jq '.server.settings[] | select(.from != "default")'

Exit status: 0 printed, 2 the files have mistakes, which are printed with their lines.)";

constexpr const char* kNewNotes = R"(
The project has one source, a test that needs no server, the class's settings, CMakeLists.txt
and README.md. It builds against the installed Hearth, or the one of the hearth in PATH.)";

constexpr const char* kCheckNotes = R"(
First reads the file without running it, then loads it in a child process, and then tries some
thirty cases, each in its own child: how the library starts and ends, and what its agents do
with events, results, deadlines and hosts that fail. It finds the methods to call among the
texts of the library. plugin-api/README.md explains it ("Check your library").

Examples:
  hearth check build/plugins/chat-room.so
  hearth check --json --seed $RANDOM chat-room.so > report.json    in the CI of a library
  hearth check --data /var/lib/hearth/data chat-room.so            for a server with
                                                                   require_checked

Exit status: 0 passed, 1 failed, 2 the library could not be tried.)";

constexpr const char* kQuarantineNotes = R"(
A class whose calls crashed the server more than three times in five minutes is not served any
more: its agents keep their data, its clients get 503, other classes are served. A library
with other content is served at once, and so is a class that is released. Both commands ask
the server that runs on the data directory. Without one they work on the directory itself.)";

constexpr const char* kAuditNotes = R"(
Each line has the time, the event, the actor, the class and the agent, and details. The server
keeps the entries (audit.max_entries, audit.keep), and appends them to audit.file if it is set.)";

constexpr const char* kTailNotes = R"(
Goes on until Ctrl-C. It connects again if the server restarts, and says if events were lost
meanwhile. You must be able to read the administrators' token in the data directory.)";

constexpr const char* kRepairNotes = R"(
For a stopped server. Reads the file of each agent, and corrects the directory of agents
(host.db): agents that it lacks are listed, and their schedules, queues and interrupted work
are put into the wake index. Run it after you have restored files of agents from a backup, or
have lost host.db. It does not change the agents' data.

If an agent has stored data and its file is gone, the command names the agent and leaves it:
the server answers 503 for it. Restore the file, or accept the loss with --forget-missing: the
next client then gets a new agent.

Exit status: 0 all is in order now, 1 you must decide about something, or the repair failed.)";

constexpr const char* kBackupNotes = R"(
The server makes a directory below DIR, named by the time, with a copy of each agent and of all
else, as they were at one moment, the mark: every write that was acknowledged before is there.
Files that have not changed are hard links to the last backup in DIR. Clients go on meanwhile.
Prints the new directory. Not in it: libraries, class files and the server file. It goes on if
this command ends; --cancel stops it.)";

constexpr const char* kRestoreNotes = R"(
DIR is a backup, or a directory of backups: then the newest. The data directory must not exist
or be empty; with --replace the old one stays beside it, as DATA.before-TIME. With --agent one
agent gets its copy, in a data directory that no server uses. What work the agents have goes on
when a server starts: stop the old one for ever, or the work is done twice.)";

constexpr const char* kVerifyNotes = R"(
DIR is a backup, or a directory of backups: then the newest. Compares each file with what was
copied, opens a copy of each database, and says how much work would resume.

Exit status: 0 the backup is whole, 1 it is not; what is damaged or missing is named.)";

Result<unsigned> parse_shards(const std::string& text) {
  const auto count = config::parse_count(text);
  if (!count || *count < 1 || *count > config::kMaxShards) {
    return Error{Errc::kInvalidArgument, "expected a whole number from 1 to " +
                                             std::to_string(config::kMaxShards) + ", found \"" +
                                             text + "\""};
  }
  return static_cast<unsigned>(*count);
}

Result<std::uint64_t> parse_rate(const std::string& text) {
  const auto rate = config::parse_size(text);
  if (rate && *rate >= server::Backups::kLeastRate) return *rate;
  return Error{Errc::kInvalidArgument, "expected a size, 16KiB at least, such as 64MiB"};
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

// What a command's options fill. It lives as long as the command, which chooses it.
template <class Given>
Given& given(CommandOptions& command, Chosen& chosen) {
  const auto made = std::make_shared<Given>();
  command.chosen([&chosen, made] { chosen = *made; });
  return *made;
}

void add_configuration(CommandOptions& command, ConfigurationFlags& flags) {
  command.option("--config", &flags.config, "FILE",
                 "Server file; its `classes` directory holds the class files");
  command.option("--listen", flags.listen, config::parse_listen_address, "HOST:PORT",
                 "Where clients connect (127.0.0.1:8787); port 0: the system chooses");
  command.option("--data", &flags.data, "DIR",
                 "Where databases are kept (data); one server at a time");
  command.list("--plugins", &flags.plugins, "DIR",
               "Directory of libraries (plugins); may be given more than once");
  command.option("--shards", flags.shards, parse_shards, "N",
                 "Event loops, each with a thread (one for each core)");
  const std::string levels = listed(config::log_levels()) + " (info)";
  command.option("--log-level", flags.log_level, one_of(config::log_levels()), "L", levels.c_str());
  command.option("--log-format", flags.log_format, one_of(config::log_formats()), "F",
                 "human, json, or auto: human on a terminal (auto)");
}

void add_serve(CLI::App& app, Chosen& chosen) {
  CommandOptions command(app, "serve", "Serve agents until SIGTERM or SIGINT", kServeNotes);
  auto& serve = given<ServeCommand>(command, chosen);
  add_configuration(command, serve);
  command.flag("--check-config", serve.check_config,
               "Only check the configuration, and print its mistakes");
  command
      .flag("--supervised", serve.supervised,
            "Run the server in a child process, and restart it when it crashes")
      .disable_flag_override();
  command
      .flag("--show-failures", serve.show_failures,
            "Show clients the text of every exception (show_failures), as `hearth dev` does")
      .disable_flag_override();
  command.option(server::kSupervisorOption, &serve.supervisor_descriptor, "", "")
      .group("");  // hidden
}

void add_dev(CLI::App& app, Chosen& chosen) {
  CommandOptions command(app, "dev", "Build your project, serve it, and build again at each save",
                         kDevNotes);
  add_configuration(command, given<DevCommand>(command, chosen));
}

void add_config(CLI::App& app, Chosen& chosen) {
  CommandOptions command(app, "config", "Print every setting, and where its value comes from",
                         kConfigNotes);
  auto& config = given<ConfigCommand>(command, chosen);
  command.option("--class", &config.agent_class, "CLASS",
                 "Only this class, as it is (ChatRoom) or as URLs spell it (chat-room)");
  command.flag("--json", config.json, "As one JSON object");
  add_configuration(command, config);
  // Hidden: for tests/lint/reference.py.
  CLI::Option& reference = command.option("--reference", &config.reference, "", "");
  CommandOptions::one_of(*reference.group(""), {"server", "class"});
}

void add_new(CLI::App& app, Chosen& chosen) {
  CommandOptions command(app, "new", "Begin a library of agents of your own", kNewNotes);
  auto& fresh = given<NewCommand>(command, chosen);
  command.operand(
      "NAME", &fresh.name,
      "Of the library and its class: lower-case letters, digits and -, such as chat-room");
  command.option("--dir", &fresh.directory, "DIR",
                 "Where to write it (./NAME); must not exist, or be empty");
}

void add_check(CLI::App& app, Chosen& chosen) {
  CommandOptions command(app, "check", "Check whether a library keeps the contract", kCheckNotes);
  auto& check = given<CheckCommand>(command, chosen);
  command.operand("LIB", &check.library, "The library (LIB.so)");
  command.flag("--json", check.json, "The report as one JSON object");
  command.flag("--only-failed", check.only_failed, "Print only what has failed");
  command.option("--data", &check.data, "DIR",
                 "Data directory of a server: record there that the library has passed");
  command.option("--seed", &check.seed, "N", "Seed of random values (1); repeats a failure");
  command.option("--time-limit", check.time_limit, config::parse_duration, "TIME",
                 "Time for one case (10s)");
  command.option("--options", &check.options, "JSON", "JSON that the agents are made with ({})");
  command.list("--call", &check.methods, "NAME",
               "A method to call, instead of those found; may be given more than once");
  command.option("--older", &check.older, "LIB",
                 "The version before: the library must migrate its agents' data");
  command.flag("--no-calls", check.calls_nothing, "Call no methods");
  command.list("--exclude", &check.excluded, "ID",
               "A rule or case to leave out (E9, T303); may be given more than once");
  command.list("--only", &check.only, "ID",
               "Only this one of the cases T101 to T501; may be given more than once");
}

void add_quarantine(CLI::App& app, Chosen& chosen) {
  CommandOptions command(
      app, "quarantine",
      "Classes that are not served because their code crashed the server too often",
      kQuarantineNotes);
  CommandOptions list = command.part("list", "The classes, since when and why");
  CommandOptions release = command.part("release", "Serve a class again, at once if a server runs");
  auto& of_release = given<QuarantineCommand>(release, chosen);
  release.operand("CLASS", &of_release.release, "As `list` names it");
  const auto add_common = [](CommandOptions& to, QuarantineCommand& quarantine) {
    to.flag("--json", quarantine.json, "As one JSON object");
    to.data(quarantine, "Where databases are kept (data)");
  };
  add_common(list, given<QuarantineCommand>(list, chosen));
  add_common(release, of_release);
}

void add_audit(CLI::App& app, Chosen& chosen) {
  CommandOptions command(app, "audit",
                         "What was done on a server: agents, libraries, settings, administrators",
                         kAuditNotes);
  auto& audit = given<AuditCommand>(command, chosen);
  command.option("-n,--lines", &audit.lines, "N", "How many of the last entries (100)")
      .check(CLI::Range(1, 1000))
      ->type_name("N");
  command.flag("-f,--follow", audit.follow, "Also print new entries, until Ctrl-C");
  command.option("--since", audit.since, config::parse_duration, "TIME",
                 "Not older than this, such as 30m or 24h");
  command.option("--event", &audit.event, "NAME", "Only this event, such as ReloadDone");
  command.option("--actor", &audit.actor, "ACTOR",
                 "server, administrator, console, agent or client");
  command.option("--class", &audit.agent_class, "CLASS", "Only this class (ChatRoom, chat-room)");
  command.option("--agent", &audit.agent, "NAME", "Only the agent of this name");
  command.flag("--json", audit.json, "Each entry as one JSON object");
  command.data(audit);
}

void add_tail(CLI::App& app, Chosen& chosen) {
  CommandOptions command(app, "tail", "The events of a running server's log as they happen",
                         kTailNotes);
  auto& tail = given<TailCommand>(command, chosen);
  command.operand("AGENT", &tail.agent, "Only this agent, CLASS/NAME, or this CLASS", false);
  command.option("--since", tail.since, config::parse_duration, "TIME",
                 "Also the last ones, not older than this, such as 10m");
  command.option("--trace", &tail.trace, "ID", "Only what a request with this trace id caused");
  CommandOptions::one_of(command.option("--level", &tail.level, "LEVEL", "The finest level (info)"),
                         {"trace", "debug", "info", "warn", "error"});
  command.flag("--json", tail.json, "Each event as one JSON object, as in the log");
  command.data(tail);
}

void add_repair(CLI::App& app, Chosen& chosen) {
  CommandOptions command(app, "repair",
                         "Rebuild the directory of agents from their files, while no server runs",
                         kRepairNotes);
  auto& repair = given<RepairCommand>(command, chosen);
  command.data(repair, "Where databases are kept (data)");
  command.flag("--forget-missing", repair.forget_missing,
               "Forget the agents whose files are gone: their data are lost");
}

void add_backup(CLI::App& app, Chosen& chosen) {
  using What = BackupCommand::What;
  CommandOptions backup(app, "backup", "Copy all data of a running server", kBackupNotes);
  auto& of_backup = given<BackupCommand>(backup, chosen);
  backup.operand("DIR", &of_backup.directory,
                 "Where backups are kept; the server makes it, as its user", false);
  backup.data(of_backup);
  backup.flag("--cancel", of_backup.cancel, "Stop the backup in progress; takes no DIR");
  backup.option("--rate", of_backup.rate, parse_rate, "SIZE",
                "How much it copies in a second (32MiB)");

  CommandOptions restore(app, "restore", "Make a data directory of a backup", kRestoreNotes);
  auto& of_restore = given<BackupCommand>(restore, chosen);
  of_restore.what = What::kRestore;
  restore.operand("DIR", &of_restore.directory, "The backup");
  restore.data(of_restore);
  restore.option("--agent", &of_restore.agent, "CLASS/NAME",
                 "Only this one, the class as it is: ChatRoom/lobby");
  restore.flag("--replace", of_restore.replace, "Keep what is there beside what is restored");

  CommandOptions verify(app, "verify", "Check whether a backup is whole, and what it would resume",
                        kVerifyNotes);
  auto& of_verify = given<BackupCommand>(verify, chosen);
  of_verify.what = What::kVerify;
  verify.operand("DIR", &of_verify.directory, "The backup");
}

// The version; that of the plugin ABI, which decides whether a library is served; the compiler and
// libraries of the build.
std::string version_text() {
#if defined(__clang__)
  const std::string compiler = "clang " __clang_version__;
#else
  const std::string compiler = "gcc " __VERSION__;
#endif
  return "hearth " HEARTH_VERSION "\nplugin ABI " + std::to_string(HEARTH_ABI_MAJOR) + "." +
         std::to_string(HEARTH_ABI_MINOR) + "\nbuilt with " + compiler + ", Boost " +
         std::to_string(BOOST_VERSION / 100'000) + "." +
         std::to_string(BOOST_VERSION / 100 % 1000) + "." + std::to_string(BOOST_VERSION % 100);
}

// The arguments of the server that serves what `hearth dev` builds.
std::vector<std::string> served_by_dev(int argc, const char* const* argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  *std::ranges::find(arguments, "dev") = "serve";
  arguments.insert(arguments.end(), {"--plugins", ProjectBuild::kServed, "--show-failures"});
  return arguments;
}

// For a shell, without --after.
std::string typed(int argc, const char* const* argv) {
  std::string all = "hearth";
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--after") {
      ++i;
    } else if (!word.starts_with("--after=")) {
      all += " " + shell_word(word);
    }
  }
  return all;
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
  CLI::App app(kPurpose + 1, "hearth");
  app.get_formatter()->column_width(24);
  app.get_formatter()->label("SUBCOMMAND", "COMMAND");
  app.get_formatter()->label("Subcommands", "Commands");
  app.set_version_flag("--version", version_text());
  Chosen chosen;
  for (const auto add : {add_serve, add_dev, add_config, add_new, add_quarantine, add_audit,
                         add_tail, add_repair, add_backup, add_check, add_admin_commands})
    add(app, chosen);
  app.require_subcommand(0, 1);  // `serve plugins` is a mistake, not two commands
  CommandOptions(app, "version", "Say which version this is").chosen([&chosen] {
    chosen = Answer{kExitClean, version_text() + "\n"};
  });
  app.footer(kExamples + 1);  // last: commands without notes of their own would copy it
  if (argc <= 1) return Answer{kExitBadUsage, app.help()};
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& stop) {
    return answer_of(app, stop);
  }
  if (!chosen) return Answer{kExitBadUsage, app.help()};
  if (auto* const fresh = std::get_if<NewCommand>(&*chosen); fresh && fresh->directory.empty())
    fresh->directory = fresh->name;
  if (auto* const admin = std::get_if<AdminCommand>(&*chosen)) admin->as_typed = typed(argc, argv);
  if (auto* const dev = std::get_if<DevCommand>(&*chosen))
    dev->child_arguments = served_by_dev(argc, argv);
  if (auto* const serve = std::get_if<ServeCommand>(&*chosen))
    serve->child_arguments = server::unsupervised(argc, argv);
  return *std::move(chosen);
}

}  // namespace hearth::cli
