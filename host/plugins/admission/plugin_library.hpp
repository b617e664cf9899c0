#pragma once
// A mapped shared library and its entry symbol.

#include "base/error.hpp"
#include "plugins/admission/file_rules.hpp"

#include <hearth/abi.h>

#include <filesystem>
#include <memory>

namespace boost::dll {
class shared_library;  // NOLINT(readability-identifier-naming): Boost's name
}

namespace hearth::plugins {

// Owns one dlopen.
//
// Threads   Only the loader's thread: opening runs the library's constructors, closing runs its
//           destructors.
// Lifetime  Destroying it unmaps the library: all pointers into the library are invalid then.
class PluginLibrary {
 public:
  // Maps the library at `path` (RTLD_NOW, RTLD_LOCAL) and finds hearth_plugin_v1 in it.
  //   Requires  `path` is absolute and was never loaded in this process: otherwise the dynamic
  //             loader returns the library that it knows by that name.
  //   Failure   L1 (with the dynamic loader's reason), L2 (no symbol, or a symbol of another
  //             library).
  [[nodiscard]] static Checked<std::unique_ptr<PluginLibrary>> open(
      const std::filesystem::path& path);

  ~PluginLibrary();
  PluginLibrary(const PluginLibrary&) = delete;
  PluginLibrary& operator=(const PluginLibrary&) = delete;

  // The entry symbol. Its contents are not checked: see plugin_entry.hpp.
  [[nodiscard]] const hearth_plugin& plugin() const { return *plugin_; }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  // Unmaps it now. False: the dynamic loader keeps it mapped (a unique symbol, thread-local
  // destructors, -z nodelete). That is harmless but costs memory until the process ends. Call it
  // once; plugin() is invalid afterwards.
  [[nodiscard]] bool close();

 private:
  explicit PluginLibrary(std::filesystem::path path);

  std::filesystem::path path_;
  std::unique_ptr<boost::dll::shared_library> library_;
  const hearth_plugin* plugin_ = nullptr;  // inside library_
};

}  // namespace hearth::plugins
