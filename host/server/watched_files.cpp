#include "server/watched_files.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

namespace hearth::server {
namespace {

using Paths = std::vector<std::filesystem::path>;

std::vector<plugins::WatchedDirectory> directories_of_files(const Paths& files) {
  std::vector<plugins::WatchedDirectory> found;
  for (const std::filesystem::path& file : files) {
    if (file.empty()) continue;
    auto place = std::ranges::find(found, file.parent_path(), &plugins::WatchedDirectory::path);
    if (place == found.end()) {
      place = found.insert(found.end(), {.path = file.parent_path(), .follows_links = true});
    }
    // By name: the file may be hidden, and there may be many others.
    const std::string name = file.filename().native();
    if (std::ranges::find(place->names, name) == place->names.end()) place->names.push_back(name);
  }
  return found;
}

Paths files_of_groups(const std::vector<FileGroup>& groups) {
  Paths all;
  for (const FileGroup& group : groups) std::ranges::copy(group.files, std::back_inserter(all));
  return all;
}

}  // namespace

plugins::DirectoryImage WatchedFiles::image(const config::ServerConfig& server) {
  const net::TlsOptions& tls = server.net.tls;
  return plugins::look_at(directories_of_files(
      {server.auth.token_file, server.auth.keys_file, tls.certificate, tls.key}));
}

WatchedFiles::WatchedFiles(std::vector<FileGroup> groups, plugins::DirectoryImage known,
                           const config::ReloadConfig& reload, Logger& logger)
    : groups_(std::move(groups)) {
  const Paths files = files_of_groups(groups_);
  const bool has_some = std::ranges::any_of(files, [](const auto& each) { return !each.empty(); });
  if (!reload.watch || !has_some) return;
  watcher_ = std::make_unique<plugins::DirectoryWatcher>(
      plugins::WatchOptions{.directories = directories_of_files(files),
                            .quiet_time = reload.quiet_time},
      std::move(known), [this](const plugins::FileChanges& changes) { take(changes); }, logger);
}

void WatchedFiles::take(const plugins::FileChanges& changes) {
  const MutexLock lock(one_at_a_time_);
  for (const FileGroup& group : groups_) {
    const auto is_changed = [&](const std::filesystem::path& file) {
      return std::ranges::find(changes.changed, file) != changes.changed.end();
    };
    if (std::ranges::any_of(group.files, is_changed)) group.read_again();
  }
}

void WatchedFiles::reload() {
  const MutexLock lock(one_at_a_time_);
  for (const FileGroup& group : groups_) group.read_again();
}

}  // namespace hearth::server
