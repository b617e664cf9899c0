#include "base/escape.hpp"
#include "cli/admin_client.hpp"
#include "cli/commands.hpp"
#include "cli/text_table.hpp"
#include "json/json.hpp"
#include "plugins/versions/version_files.hpp"
#include "plugins/versions/version_ledger.hpp"
#include "server/admin_desk.hpp"
#include "server/server_record.hpp"
#include "storage/data_directory.hpp"

#include <string>
#include <utility>

namespace hearth::cli {
namespace {

constexpr std::size_t kMaxQuoted = 4096;

Answer listed(const QuarantineCommand& command, const Json& answer) {
  if (command.json) return Answer{kExitClean, dump_json(answer) + "\n"};
  const Json& list = list_in(answer, "quarantined");
  if (list.empty()) return Answer{kExitClean, "no class is in quarantine\n"};
  std::string text;
  for (const Json& each : list) {
    const std::string line = text_member(each, "class") + "  since " +
                             moment_text(number_in(each, "since_ms").value_or(0)) + "  " +
                             text_member(each, "reason") + " in " + text_member(each, "call") +
                             "  " + text_member(each, "library") + "  sha256 " +
                             text_member(each, "sha256");
    append_escaped(text, line, EscapeStyle::kHuman);
    text += '\n';
  }
  return Answer{kExitClean, std::move(text)};
}

// ---- with a server ----

std::string fate(const Json& file) {
  std::string text;
  append_escaped(text, text_member(file, "file"), EscapeStyle::kHuman);
  const std::string outcome = text_member(file, "outcome");
  if (outcome == "new_version")
    return text + ": version " + text_member(file, "version") + " is coming in\n";
  if (outcome != "refused") return {};
  text += ": REFUSED: ";
  append_escaped(text, text_member(file, "reason"), EscapeStyle::kHuman);
  return text + "\n";
}

// The outcome of a release by a server, with the class's libraries.
Answer released(const QuarantineCommand& command, const Json& answer) {
  const Json& files = list_in(answer, "files");
  bool is_refused = false;
  bool is_served = false;
  for (const Json& file : files) {
    const std::string outcome = text_member(file, "outcome");
    is_refused = is_refused || outcome == "refused";
    is_served = is_served || (outcome != "refused" && outcome != "removed");
  }
  const int status = is_refused ? kExitFailed : kExitClean;
  if (command.json) return Answer{status, dump_json(answer) + "\n"};
  std::string text =
      "the class " + quote_text(text_member(answer, "released"), kMaxQuoted) + " is released";
  if (is_served) {
    text += " and served again\n";
  } else {
    text += is_refused ? "; its library is refused\n" : "; no library has it now\n";
  }
  for (const Json& each : files) text += fate(each);
  return Answer{status, std::move(text)};
}

Answer ask(const QuarantineCommand& command, const AdminClient& client) {
  if (command.release.empty()) {
    const auto answer = client.ask("GET", "/admin/quarantine");
    if (!answer) return failed_answer(answer.error().message);
    return listed(command, *answer);
  }
  const auto answer =
      client.ask("POST", "/admin/quarantine/release", dump_json({{"class", command.release}}));
  if (!answer) return failed_answer(answer.error().message);
  return released(command, *answer);
}

// ---- without one ----

Answer release(const QuarantineCommand& command, const std::filesystem::path& data) {
  if (const auto why = data_of_another_user(data)) return failed_answer(*why);
  // Holds the lock on the directory until the file is written.
  const auto held = storage::DataDirectory::open(data);
  if (!held) return failed_answer(held.error().message);
  if (const auto facts = plugins::read_versions(data); !facts)
    return failed_answer(facts.error().message);
  plugins::VersionLedger ledger(data, HEARTH_VERSION);
  const auto released = ledger.release(command.release, "a command while no server ran");
  if (!released) return failed_answer(released.error().message);
  const std::string& name = released->front().agent_class;
  if (command.json)
    return Answer{kExitClean, dump_json({{"released", name}, {"files", Json::array()}}) + "\n"};
  return Answer{kExitClean, "the class " + quote_text(name, kMaxQuoted) +
                                " is served from the next start on\n"};
}

}  // namespace

Answer answer(const QuarantineCommand& command) {
  const auto [data, mistake] = find_data(command);
  if (mistake) return *mistake;
  if (const auto server = server::find_server(data)) {
    const auto client = AdminClient::on(data);
    if (!client) return failed_answer(client.error().message);
    return ask(command, *client);
  }
  if (!command.release.empty()) return release(command, data);
  auto facts = plugins::read_versions(data);
  if (!facts) return failed_answer(facts.error().message);
  std::erase_if(facts->classes, [](const auto& each) { return !each.is_quarantined; });
  return listed(command, server::quarantine_json(facts->classes));
}

}  // namespace hearth::cli
