#include "plugins/generation/plugin_generation.hpp"

#include "base/assert.hpp"
#include "base/escape.hpp"
#include "base/forgive_leak.hpp"
#include "diagnosis/call_records.hpp"
#include "diagnosis/code_ranges.hpp"
#include "extensions/operations.hpp"
#include "plugins/admission/plugin_library.hpp"
#include "plugins/generation/abi_class.hpp"
#include "plugins/generation/class_methods.hpp"

#include <optional>
#include <utility>

namespace hearth::plugins {
namespace {

void tell(const PluginGeneration::Progress& progress, std::string_view step) {
  if (progress) progress(step);
}

// The names of the classes in the note, separated by commas: for records of crashes.
std::string classes_of(const PluginNote& note) {
  std::string classes;
  for (const std::string& each : note.manifest.classes)
    classes += (classes.empty() ? "" : ",") + each;
  return classes;
}

// The library may be C++ without the SDK's thunks: exceptions end here. A crash in the call is
// recorded for the owner.
template <class Call>
hearth_status call_library(const diagnosis::CallOwner& owner, std::string_view function,
                           const Call& call) noexcept {
  const diagnosis::CallScope published(owner, function, diagnosis::AgentLabel());
  try {
    return call();
  } catch (...) {
    return HEARTH_E_PLUGIN;
  }
}

// Reads the lists of methods and operations of each class. The lists of a class that throws are
// empty, and AbiClass reports it.
std::optional<Finding> read_lists(const diagnosis::CallOwner& owner,
                                  std::vector<EntryClass>& classes) {
  for (EntryClass& each : classes) {
    const hearth_class& table = *each.table;
    if (!HEARTH_HAS(&table, hearth_class, get_extension)) continue;
    const void* methods_table = nullptr;
    const void* operations = nullptr;
    call_library(owner, kGetExtensionCall, [&] {
      methods_table = table.get_extension(&table, HEARTH_EXT_METHODS);
      operations = table.get_extension(&table, HEARTH_EXT_OPERATION_KINDS);
      return hearth_status{HEARTH_OK};
    });
    auto methods =
        read_class_methods(static_cast<const hearth_methods_v1*>(methods_table), each.name);
    if (!methods) return methods.error();
    each.methods = *std::move(methods);
    const auto* const kinds = static_cast<const hearth_operation_kinds_v1*>(operations);
    const std::string problem = extensions::problem_with_operations(kinds);
    if (!problem.empty()) return finding("L2", "its class " + show_name(each.name) + problem);
    each.operations = extensions::operation_kinds(kinds);
  }
  return std::nullopt;
}

hearth_bytes empty_config() {
  static constexpr std::string_view kEmpty = "{}";
  return {kEmpty.data(), kEmpty.size()};
}

}  // namespace

struct PluginGeneration::Mapped {
  Mapped(const extensions::AbiServices& services, const std::string& origin, const PluginNote& note,
         const LibraryContent& content)
      : owner(origin, content.sha256, content.number, classes_of(note)), host(services, origin) {}

  // Runs its constructors. From then on crashes in its code are recorded for it, on any thread.
  std::optional<Finding> open(const std::filesystem::path& path) {
    const diagnosis::CallScope published(owner, kLoadCall, diagnosis::AgentLabel());
    auto opened = PluginLibrary::open(path);
    if (!opened) return opened.error();
    library = *std::move(opened);
    code = std::make_unique<diagnosis::PublishedCode>(owner.library, owner.sha256, owner.generation,
                                                      owner.agent_class, &library->plugin());
    return std::nullopt;
  }

  // Runs its destructors. False: it stays mapped.
  bool close() {
    code.reset();
    const diagnosis::CallScope published(owner, kUnloadCall, diagnosis::AgentLabel());
    return library->close();
  }

  // Makes the calls that must succeed before its classes are served.
  Checked<std::vector<EntryClass>> start(const PluginNote& note, const Progress& progress);

  // False: its deinit() is busy.
  bool end(const BeforeUnmapping& before_unmapping) {
    const hearth_plugin& plugin = library->plugin();
    const bool is_over = !has_started || call_library(owner, kDeinitCall,
                                                      [&] { return plugin.deinit(); }) == HEARTH_OK;
    if (before_unmapping) before_unmapping(diagnosis::find_code_range(&plugin));
    return is_over;
  }

  const diagnosis::CallOwner owner;  // of calls that belong to no class
  extensions::AbiHost host;
  bool has_started = false;                        // init() has succeeded: deinit() must be called
  std::unique_ptr<PluginLibrary> library;          // after the host: destroyed first
  std::unique_ptr<diagnosis::PublishedCode> code;  // destroyed before the library
};

Checked<std::vector<EntryClass>> PluginGeneration::Mapped::start(const PluginNote& note,
                                                                 const Progress& progress) {
  const hearth_plugin& plugin = library->plugin();
  if (auto broken = check_entry(plugin, note)) return *std::move(broken);

  tell(progress, "init");
  const hearth_status started =
      call_library(owner, kInitCall, [&] { return plugin.init(host.table(), empty_config()); });
  if (auto broken = check_init(started)) return *std::move(broken);
  has_started = true;

  tell(progress, "classes");
  auto classes = [&] {
    const diagnosis::CallScope published(owner, kGetClassCall, diagnosis::AgentLabel());
    return read_classes(plugin, note);
  }();
  if (!classes) return classes;
  if (auto broken = read_lists(owner, *classes)) return *std::move(broken);
  return classes;
}

PluginGeneration::PluginGeneration(std::string origin, PluginNote note)
    : origin_(std::move(origin)), note_(std::move(note)) {}

PluginGeneration::~PluginGeneration() {
  if (mapped_ == nullptr) return;
  // Never unloaded: threads of the library may be running in it and may call the host's table.
  const Mapped* const kept = mapped_.release();
  HEARTH_FORGIVE_LEAK(kept);
}

const extensions::AbiHost& PluginGeneration::host() const {
  HEARTH_ASSERT(mapped_ != nullptr, "an unloaded generation has no host");
  return mapped_->host;
}

Checked<std::shared_ptr<PluginGeneration>> PluginGeneration::load(
    const std::filesystem::path& path, std::string origin, PluginNote note,
    const extensions::AbiServices& services, const Progress& progress,
    const BeforeUnmapping& before_unmapping, LibraryContent content) {
  // After a failure this function unloads the library: the destructor would leave it mapped.
  auto mapped = std::make_unique<Mapped>(services, origin, note, content);
  tell(progress, "load");
  if (auto broken = mapped->open(path)) return *std::move(broken);
  auto classes = mapped->start(note, progress);
  if (!classes) {
    Finding why = classes.error();
    if (mapped->end(before_unmapping)) {
      static_cast<void>(mapped->close());
    } else {  // deinit() is busy: the library stays mapped for ever
      const Mapped* const kept = mapped.release();
      HEARTH_FORGIVE_LEAK(kept);
    }
    return why;
  }
  std::shared_ptr<PluginGeneration> generation(
      new PluginGeneration(std::move(origin), std::move(note)));
  generation->content_ = std::move(content);
  generation->mapped_ = std::move(mapped);
  generation->classes_ = *std::move(classes);
  return generation;
}

std::vector<std::shared_ptr<const runtime::AgentClass>> PluginGeneration::make_classes(
    const NamesFor& names) {
  std::vector<std::shared_ptr<const runtime::AgentClass>> made;
  for (const EntryClass& entry : classes_) {
    for (std::string& name : names ? names(entry.name) : std::vector{entry.name}) {
      made.push_back(std::make_shared<AbiClass>(shared_from_this(), entry, std::move(name),
                                                content_.sha256, content_.number));
    }
  }
  return made;
}

Retirement PluginGeneration::retire(const Progress& progress,
                                    const BeforeUnmapping& before_unmapping) {
  if (mapped_ == nullptr) return Retirement::kUnloaded;
  // Pairs with remove_user(): all that the last user did happened before this.
  if (users_.load(std::memory_order_acquire) != 0) return Retirement::kInUse;
  tell(progress, "deinit");
  if (!mapped_->end(before_unmapping)) return Retirement::kBusy;
  classes_.clear();  // they point into the library
  const bool unmapped = mapped_->close();
  mapped_.reset();
  return unmapped ? Retirement::kUnloaded : Retirement::kStillMapped;
}

}  // namespace hearth::plugins
