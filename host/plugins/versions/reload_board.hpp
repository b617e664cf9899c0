#pragma once
// What the reloader shows to other threads: the files that it refuses, and the classes whose agents
// are moving to another version.

#include "base/mutex.hpp"
#include "plugins/versions/plugin_loader.hpp"

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace hearth::plugins {

// Threads  Any.
class ReloadBoard {
 public:
  // ---- libraries ----
  // One refusal per file: the last one.
  void refuse(Refusal refusal) {
    const MutexLock lock(mutex_);
    libraries_[refusal.file] = std::move(refusal);
  }
  void clear(const std::filesystem::path& file) {
    const MutexLock lock(mutex_);
    libraries_.erase(file);
  }
  [[nodiscard]] std::vector<Refusal> library_refusals() const {
    const MutexLock lock(mutex_);
    return list();
  }

  // ---- class files ----
  // Each replaces the list before.
  void set_mistakes(std::vector<Refusal> mistakes) {
    const MutexLock lock(mutex_);
    mistakes_ = std::move(mistakes);
  }
  void set_taken_back(std::vector<Refusal> settings) {
    const MutexLock lock(mutex_);
    taken_back_ = std::move(settings);
  }

  // Refused libraries, then the mistakes in class files, then settings that were taken back.
  [[nodiscard]] std::vector<Refusal> refusals() const {
    const MutexLock lock(mutex_);
    std::vector<Refusal> all = list();
    for (const auto* more : {&mistakes_, &taken_back_})
      all.insert(all.end(), more->begin(), more->end());
    return all;
  }

  // ---- classes, by name ----
  void set_moving(std::vector<std::string> classes) {
    const MutexLock lock(mutex_);
    moving_ = std::move(classes);
  }
  [[nodiscard]] std::vector<std::string> moving() const {
    const MutexLock lock(mutex_);
    return moving_;
  }

 private:
  [[nodiscard]] std::vector<Refusal> list() const REQUIRES(mutex_) {
    std::vector<Refusal> all;
    all.reserve(libraries_.size());
    for (const auto& [file, refusal] : libraries_) all.push_back(refusal);
    return all;
  }

  mutable Mutex mutex_;
  std::map<std::filesystem::path, Refusal> libraries_ GUARDED_BY(mutex_);
  std::vector<Refusal> mistakes_ GUARDED_BY(mutex_);    // in class files
  std::vector<Refusal> taken_back_ GUARDED_BY(mutex_);  // settings
  std::vector<std::string> moving_ GUARDED_BY(mutex_);
};

}  // namespace hearth::plugins
