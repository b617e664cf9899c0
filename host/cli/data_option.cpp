#include "cli/data_option.hpp"

#include "base/escape.hpp"
#include "config/diagnostic.hpp"
#include "config/parse.hpp"

#include <string>
#include <system_error>

namespace hearth::cli {

FoundData find_data(const std::optional<std::filesystem::path>& config,
                    const std::optional<std::filesystem::path>& data, bool must_exist) {
  FoundData found;
  if (data) {
    found.data = std::filesystem::absolute(*data);
  } else {
    // Mistakes in class files must not stop this command.
    const config::ServerFileResult loaded = config::load_server_file(config);
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

Answer failed_answer(const std::string& why) {
  return Answer{kExitFailed, "hearth: " + why + "\n"};
}

}  // namespace hearth::cli
