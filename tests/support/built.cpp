#include "support/built.hpp"

namespace hearth::testing::built {
namespace {

std::filesystem::path library(std::string_view folder, std::string_view name) {
  return std::filesystem::path(HEARTH_BUILD) / folder / (std::string(name) + ".so");
}

}  // namespace

std::filesystem::path server() {
  return std::filesystem::path(HEARTH_BUILD) / "host/hearth";
}

std::filesystem::path probe() {
  return std::filesystem::path(HEARTH_BUILD) / "tests/plugins/libraries/test_probe";
}

std::filesystem::path sync_recorder() {
  return library("tests", "sync_recorder");
}

std::filesystem::path held_sync() {
  return library("tests", "held_sync");
}

std::filesystem::path full_disk() {
  return library("tests", "full_disk");
}
std::filesystem::path no_exchange() {
  return library("tests", "no_exchange");
}

std::filesystem::path time_recorder() {
  return library("tests", "time_recorder");
}

std::filesystem::path bundled(std::string_view name) {
  return library("plugins", name);
}

std::filesystem::path agent(std::string_view name) {
  return library("tests/agents", name);
}

std::filesystem::path printed(std::string_view name) {
  return library("tests/docs/plugins", name);
}

std::filesystem::path rust(std::string_view name) {
  return library("tests/rust", name);
}

std::filesystem::path loader_case(std::string_view name) {
  return library("tests/plugins/libraries/built", name);
}

std::filesystem::path zoo(std::string_view name) {
  return library("tests/fault/plugins/built", name);
}

std::filesystem::path bundled_directory() {
  return std::filesystem::path(HEARTH_BUILD) / "plugins";
}

std::filesystem::path sources() {
  return HEARTH_SOURCES;
}

}  // namespace hearth::testing::built
