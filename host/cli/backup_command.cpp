#include "cli/backup_command.hpp"

#include "cli/admin_client.hpp"
#include "cli/commands.hpp"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>

namespace hearth::cli {
namespace {

std::string mebibytes(std::uint64_t bytes) {
  return std::to_string((bytes + (std::uint64_t{1} << 20) - 1) >> 20U) + " MiB";
}

std::string progress_text(const Json& backup) {
  return std::to_string(backup.value("done", 0U)) + " of " +
         std::to_string(backup.value("agents", 0U)) + " agents, " +
         mebibytes(backup.value("bytes", std::uint64_t{0})) + " copied, " +
         std::to_string(backup.value("linked", 0U)) + " files unchanged";
}

}  // namespace

int run(const BackupCommand& command) {
  if (command.what == BackupCommand::What::kRestore) return run(restore(command));
  if (command.what == BackupCommand::What::kVerify) return run(verify(command));
  using std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kPoll{100};
  constexpr std::chrono::minutes kPatience{1};
  constexpr int kPollsALine = 20;
  if (command.cancel != command.directory.empty())
    return run(Answer{kExitBadUsage, "hearth: backup takes DIR, or --cancel\n"});
  const FoundData found = find_data(command);
  if (found.mistake) return run(*found.mistake);
  const auto client = AdminClient::on(found.data);
  if (!client) return run(failed_answer(client.error().message));
  if (command.cancel) {
    const auto stopped = client->ask("DELETE", "/admin/backup");
    if (!stopped) return run(failed_answer(stopped.error().message));
    return run(Answer{
        kExitClean, "the backup to " + text_member(*stopped, "directory") + " is being stopped\n"});
  }
  Json order{{"directory", std::filesystem::absolute(command.directory).native()}};
  if (command.rate) order["rate"] = *command.rate;
  auto backup = client->ask("POST", "/admin/backup", dump_json(order));
  if (!backup) return run(failed_answer("the backup failed: " + backup.error().message));
  auto heard = steady_clock::now();
  for (int polls = 1; backup->value("state", "") == "running"; ++polls) {
    if (polls % kPollsALine == 1) std::fprintf(stderr, "%s\n", progress_text(*backup).c_str());
    std::this_thread::sleep_for(kPoll);
    auto now = client->ask("GET", "/admin/backup");
    if (now) {
      backup = std::move(now);
      heard = steady_clock::now();
    } else if (now.error().code != Errc::kUnavailable || !AdminClient::on(found.data)) {
      return run(failed_answer("the backup failed: " + now.error().message));
    } else if (steady_clock::now() - heard > kPatience) {  // the server is there, and busy
      return run(failed_answer("the server does not answer: " + now.error().message +
                               ". The backup may go on: GET /admin/backup tells"));
    }
  }
  if (const std::string state = backup->value("state", ""); state != "done") {
    return run(
        failed_answer("the backup failed: " + (state == "none" ? "the server was started again"
                                                               : text_member(*backup, "reason"))));
  }
  std::fprintf(stderr, "%s\n", progress_text(*backup).c_str());
  std::fprintf(stdout, "%s\n", backup->value("directory", "").c_str());
  if (const auto left_out = number_in(*backup, "left_out").value_or(0); left_out > 0) {
    return run(
        failed_answer("the backup lacks what could not be read: " + std::to_string(left_out) +
                      " agents or files, first " + text_member(*backup, "reason")));
  }
  return kExitClean;
}

}  // namespace hearth::cli
