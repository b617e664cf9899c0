#pragma once
// A directory of configuration files for one test, and its mistakes as lines.

#include "config/parse.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::config {

class ConfigFilesTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path path(std::string_view name) const {
    return directory_.path() / name;
  }

  void put(std::string_view name, std::string_view text) const {
    std::filesystem::create_directories(path(name).parent_path());
    std::ofstream(path(name), std::ios::binary) << text;
  }

  // The mistakes with the server file `server.yaml`, without the directory's path.
  [[nodiscard]] std::vector<std::string> mistakes() const {
    std::vector<std::string> lines;
    const LoadResult result = load_config(path("server.yaml"));
    if (result) return lines;
    const std::string prefix = directory_.path().string() + "/";
    for (const Diagnostic& diagnostic : result.error()) {
      std::string line = to_string(diagnostic);
      for (auto at = line.find(prefix); at != std::string::npos; at = line.find(prefix)) {
        line.erase(at, prefix.size());
      }
      lines.push_back(std::move(line));
    }
    return lines;
  }

  // The only mistake in a server file, or in a class file.
  [[nodiscard]] std::string server_mistake(std::string_view text) const {
    put("server.yaml", text);
    return only(mistakes());
  }
  [[nodiscard]] std::string class_mistake(std::string_view text) const {
    put("server.yaml", "");
    put("classes/c.yaml", text);
    return only(mistakes());
  }

  [[nodiscard]] Config load() const { return load_config(path("server.yaml")).value(); }
  [[nodiscard]] ServerConfig server(std::string_view text) const {
    put("server.yaml", text);
    return load().server;
  }
  [[nodiscard]] ClassConfig class_c(std::string_view text) const {
    put("server.yaml", "");
    put("classes/c.yaml", "class: c\n" + std::string(text));
    return load().classes.at("c");
  }

 private:
  static std::string only(const std::vector<std::string>& lines) {
    if (lines.size() == 1) return lines.front();
    std::string all = std::to_string(lines.size()) + " mistakes";
    for (const std::string& line : lines) all.append("\n").append(line);
    return all;
  }

  testing::TempDirectory directory_;
};

}  // namespace hearth::config
