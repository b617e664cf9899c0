#include "cli/commands.hpp"

#include "base/escape.hpp"
#include "config/diagnostic.hpp"
#include "config/parse.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>

namespace hearth::cli {

int run(const Answer& answer) {
  std::FILE* const stream = answer.status == kExitClean ? stdout : stderr;
  std::fputs(answer.text.c_str(), stream);
  return printed_status(answer.status);
}

int printed_status(int status) {
  if (std::ferror(stdout) == 0 && std::fflush(stdout) == 0) return status;
  std::fprintf(stderr, "hearth: the answer cannot be written: %s\n",
               std::generic_category().message(errno).c_str());
  return kExitFailed;
}

FoundData find_data(const DataFlags& flags, bool must_exist) {
  FoundData found;
  if (flags.data) {
    found.data = std::filesystem::absolute(*flags.data);
  } else {
    // Mistakes in class files must not stop this command.
    const config::ServerFileResult loaded = config::load_server_file(flags.config);
    if (!loaded) {
      std::string mistakes;
      for (const config::Diagnostic& mistake : loaded.error())
        mistakes += to_string(mistake) + "\n";
      found.mistake = Answer{kExitBadUsage, mistakes};
      return found;
    }
    found.data = loaded->data;
  }
  constexpr std::size_t kMaxShownPath = 4096;
  std::error_code failure;
  if (must_exist && !std::filesystem::is_directory(found.data, failure)) {
    found.mistake = failed_answer("there is no data directory " +
                                  quote_text(found.data.native(), kMaxShownPath));
  }
  return found;
}

std::optional<std::string> data_of_another_user(const std::filesystem::path& data) {
  const bool is_root = ::geteuid() == 0;
  const std::filesystem::path above = std::filesystem::absolute(data).parent_path();
  // The lock is its server's, also on a volume of root that a group may write to.
  for (const std::filesystem::path& each : {data / "lock", data, above}) {
    struct stat status{};
    if (::stat(each.c_str(), &status) != 0) continue;
    const bool is_refused = is_root || (each != above && ::access(each.c_str(), W_OK) != 0);
    if (status.st_uid == ::geteuid() || !is_refused) break;
    return "run this as the user that " + each.native() + " belongs to: sudo -u '#" +
           std::to_string(status.st_uid) + "'";
  }
  return std::nullopt;
}

Answer failed_answer(const std::string& why) {
  return Answer{kExitFailed, "hearth: " + why + "\n"};
}

}  // namespace hearth::cli
