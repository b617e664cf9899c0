#include "config/tracing_section.hpp"

#include "config/config_files.hpp"

#include <string>
#include <utility>
#include <vector>

namespace hearth::config {
namespace {

class TracingSectionTest : public ConfigFilesTest {};

TEST_F(TracingSectionTest, MistakesAreTold) {
  const std::pair<std::string, std::string> cases[] = {
      {"endpoint: 'http://c.example/v1/traces'", "an https URL"},
      {"endpoint: 'c.example:4318'", "an https URL"},
      {"sample: 1.5", "a number from 0 to 1"},
      {"sample: -1", "a number from 0 to 1"},
      {"sample: nan", "a number from 0 to 1"},
      {"sample: half", "a number from 0 to 1"},
      {"headers: [absent.key]", "tracing.headers: "},
      {"service_name: " + std::string(129, 'n'), "a name"},
  };
  for (const auto& [text, expected] : cases) {
    const std::string mistake = server_mistake("tracing: {" + text + "}\n");
    EXPECT_NE(mistake.find(expected), std::string::npos) << text << ": " << mistake;
  }
}

}  // namespace
}  // namespace hearth::config
