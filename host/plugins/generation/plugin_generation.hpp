#pragma once
// One loaded version of one library, from dlopen to dlclose.

#include "diagnosis/code_ranges.hpp"
#include "extensions/abi_host.hpp"
#include "plugins/admission/file_rules.hpp"
#include "plugins/admission/plugin_note.hpp"
#include "plugins/generation/plugin_entry.hpp"
#include "runtime/agent_class.hpp"
#include "runtime/version_news.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::plugins {

// The calls into a library that belong to none of its classes (diagnosis/call_records.hpp). A
// library that crashes in one of them does so whenever it is loaded.
inline constexpr std::string_view kLoadCall = "load";      // its constructors
inline constexpr std::string_view kUnloadCall = "unload";  // its destructors
inline constexpr std::string_view kInitCall = "init";
inline constexpr std::string_view kDeinitCall = "deinit";
inline constexpr std::string_view kGetClassCall = "get_class";
inline constexpr std::string_view kGetExtensionCall = "get_extension";
inline constexpr std::array kLibraryCalls{kLoadCall,   kUnloadCall,   kInitCall,
                                          kDeinitCall, kGetClassCall, kGetExtensionCall};

// The content of a library's file and the number of the generation: for records of crashes.
struct LibraryContent {
  std::string sha256 = {};  // empty: not needed
  std::uint64_t number = 0;
};

// The outcome of retire().
enum class Retirement {
  kUnloaded,     // deinit() has run, and the library is not mapped any more
  kStillMapped,  // deinit() has run, but the dynamic loader keeps the code mapped
  kInUse,        // an agent of it still lives: nothing was done
  kBusy,         // its deinit() reports that something still runs: the library stays
};

// Promises  init() has succeeded, once, and the classes are checked. deinit() is called at most
//           once with success.
// Threads   load(), make_classes(), retire() and destruction: the loader's. The rest: any.
// Lifetime  Shared by the loader and by its AbiClass objects, which may live on any thread. If it
//           is destroyed without retire(), the library stays mapped: its code may still run.
class PluginGeneration : public std::enable_shared_from_this<PluginGeneration> {
 public:
  // Called before each step with its name: "load" (constructors run), "init", "classes", "deinit".
  using Progress = std::function<void(std::string_view step)>;
  // Called with the addresses of the library's code, after the host's last call into it and before
  // it is unmapped, which runs its destructors.
  using BeforeUnmapping = std::function<void(const diagnosis::CodeRange& library)>;

  // Loads the library at `path` (absolute, a private copy, never loaded before). `note`: its note.
  // `origin`: its name in logs, the file that operators know. From before its constructors until it
  // is unmapped, crashes and hangs in the library are recorded with its content and all classes of
  // its note.
  //   Failure  L1 to L4. The library is unloaded again; `before_unmapping` is called if it had an
  //            entry symbol.
  [[nodiscard]] static Checked<std::shared_ptr<PluginGeneration>> load(
      const std::filesystem::path& path, std::string origin, PluginNote note,
      const extensions::AbiServices& services, const Progress& progress = {},
      const BeforeUnmapping& before_unmapping = {}, LibraryContent content = {});
  ~PluginGeneration();
  PluginGeneration(const PluginGeneration&) = delete;
  PluginGeneration& operator=(const PluginGeneration&) = delete;

  [[nodiscard]] const std::string& origin() const { return origin_; }
  [[nodiscard]] const PluginNote& note() const { return note_; }
  [[nodiscard]] const std::vector<EntryClass>& classes() const { return classes_; }
  [[nodiscard]] const extensions::AbiHost& host() const;

  // The names of the classes that run the code of a class of the library. Each is_class_name().
  using NamesFor = std::function<std::vector<std::string>(std::string_view library_class)>;
  // One object for each class that runs the library's code, for the runtime's registry. `names`
  // empty: the library's own classes.
  [[nodiscard]] std::vector<std::shared_ptr<const runtime::AgentClass>> make_classes(
      const NamesFor& names = {});

  // Calls deinit() and unmaps the library, if none of its AbiClass objects lives. Calls
  // `before_unmapping` after deinit(), also if deinit() is busy.
  [[nodiscard]] Retirement retire(const Progress& progress = {},
                                  const BeforeUnmapping& before_unmapping = {});

  // One of its AbiClass objects lives. Once false it stays false, unless make_classes() is called
  // again.
  [[nodiscard]] bool in_use() const noexcept { return users_.load(std::memory_order_acquire) != 0; }

  // Only its AbiClass objects call these.
  void add_user() noexcept { users_.fetch_add(1, std::memory_order_relaxed); }
  void remove_user() noexcept {
    if (users_.fetch_sub(1, std::memory_order_release) == 1 && unused_) unused_->ring();
  }
  // `news` rings when the last AbiClass is gone. Call it before make_classes().
  void tell_unused(std::shared_ptr<runtime::VersionNews> news) { unused_ = std::move(news); }

 private:
  struct Mapped;  // the library and the host's table for it: both stay or both go

  PluginGeneration(std::string origin, PluginNote note);

  std::string origin_;
  PluginNote note_;
  LibraryContent content_;
  std::unique_ptr<Mapped> mapped_;  // null once unloaded
  std::vector<EntryClass> classes_;
  std::atomic<std::size_t> users_{0};
  std::shared_ptr<runtime::VersionNews> unused_;  // may be null
};

}  // namespace hearth::plugins
