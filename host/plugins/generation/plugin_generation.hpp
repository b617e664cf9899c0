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

// The calls into a library that are about no class of it, as diagnosis/call_records.hpp has them.
// Who crashes in one of them crashes whenever the library is loaded.
inline constexpr std::string_view kLoadCall = "load";      // its constructors
inline constexpr std::string_view kUnloadCall = "unload";  // its destructors
inline constexpr std::string_view kInitCall = "init";
inline constexpr std::string_view kDeinitCall = "deinit";
inline constexpr std::string_view kGetClassCall = "get_class";
inline constexpr std::string_view kGetExtensionCall = "get_extension";
inline constexpr std::array kLibraryCalls{kLoadCall,   kUnloadCall,   kInitCall,
                                          kDeinitCall, kGetClassCall, kGetExtensionCall};

// What the file of a library holds, and which generation of the file it is: for whoever asks what
// has crashed.
struct LibraryContent {
  std::string sha256 = {};  // empty: nobody asks
  std::uint64_t number = 0;
};

// What became of a generation that should go.
enum class Retirement {
  kUnloaded,     // deinit() has run and nothing of it is mapped any more
  kStillMapped,  // deinit() has run, but the dynamic loader keeps the code
  kInUse,        // an agent of it still lives: nothing was done
  kBusy,         // its deinit() says that something still runs: it stays
};

// Promises  init() has succeeded, once, and the classes are checked. deinit() is called at most
//           once with success.
// Threads   load(), make_classes(), retire() and destruction: the loader's. The rest: any.
// Lifetime  Shared by the loader and by the AbiClass objects made from it, which may live on any
//           thread. Destroyed without having been unloaded, it leaves the library mapped: code that
//           may still run is never taken away.
class PluginGeneration : public std::enable_shared_from_this<PluginGeneration> {
 public:
  // Called before each step with its name: "load" (constructors run), "init", "classes", "deinit".
  using Progress = std::function<void(std::string_view step)>;
  // Called with the addresses of the library's code when the host calls none of it any more, and
  // before it is unmapped, which runs its destructors.
  using BeforeUnmapping = std::function<void(const diagnosis::CodeRange& library)>;

  // Loads the library at `path` (absolute, a private copy, never loaded before), which carries
  // `note`. `origin` names it in logs: the file that the person knows. From before its constructors
  // on until it is gone, a crash or a hang is known to be the library's, with its content and all
  // classes of its note.
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

  // One object for each class, for the runtime's registry.
  [[nodiscard]] std::vector<std::shared_ptr<const runtime::AgentClass>> make_classes();

  // Calls deinit() and unmaps the library, if no AbiClass of it lives. `before_unmapping` is called
  // after deinit(), also if that is busy.
  [[nodiscard]] Retirement retire(const Progress& progress = {},
                                  const BeforeUnmapping& before_unmapping = {});

  // An AbiClass of it lives. Any thread; once false it stays so, if make_classes() is not called
  // again.
  [[nodiscard]] bool in_use() const noexcept { return users_.load(std::memory_order_acquire) != 0; }

  // Counts the AbiClass objects; theirs to call.
  void add_user() noexcept { users_.fetch_add(1, std::memory_order_relaxed); }
  void remove_user() noexcept {
    if (users_.fetch_sub(1, std::memory_order_release) == 1 && unused_) unused_->ring();
  }
  // Rings when no AbiClass of it lives any more. Before make_classes().
  void tell_unused(std::shared_ptr<runtime::VersionNews> news) { unused_ = std::move(news); }

 private:
  struct Mapped;  // the library and the table it was given: they go together or stay together

  PluginGeneration(std::string origin, PluginNote note);

  std::string origin_;
  PluginNote note_;
  LibraryContent content_;
  std::unique_ptr<Mapped> mapped_;  // null once unloaded
  std::vector<EntryClass> classes_;
  std::atomic<std::size_t> users_{0};
  std::shared_ptr<runtime::VersionNews> unused_;  // null: nothing rings
};

}  // namespace hearth::plugins
