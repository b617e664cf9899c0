#include "loader/plugin_generation.hpp"

#include "base/assert.hpp"
#include "base/forgive_leak.hpp"
#include "loader/abi_class.hpp"
#include "loader/call_records.hpp"
#include "loader/class_methods.hpp"
#include "loader/code_ranges.hpp"
#include "loader/plugin_library.hpp"

#include <optional>
#include <utility>

namespace hearth::loader {
namespace {

void tell(const PluginGeneration::Progress& progress, std::string_view step) {
  if (progress) progress(step);
}

// The library may be C++ without the SDK's thunks: what it throws ends here. A crash in the call is known to be `origin`'s.
template <class Call>
hearth_status call_plugin(const std::string& origin, std::string_view function,
                          const Call& call) noexcept {
  const CallOwner owner(origin, {}, 0, {});
  const CallScope published(owner, function, AgentLabel());
  try {
    return call();
  } catch (...) {
    return HEARTH_E_PLUGIN;
  }
}

// Asks each class what it promises of its methods. One that throws promises nothing, and AbiClass reports it.
std::optional<Finding> read_methods(const std::string& origin, std::vector<EntryClass>& classes) {
  for (EntryClass& each : classes) {
    const hearth_class& table = *each.table;
    if (!HEARTH_HAS(&table, hearth_class, get_extension)) continue;
    const void* found = nullptr;
    call_plugin(origin, "get_extension", [&] {
      found = table.get_extension(&table, HEARTH_EXT_METHODS);
      return hearth_status{HEARTH_OK};
    });
    auto names = read_idempotent_methods(static_cast<const hearth_methods_v1*>(found), each.name);
    if (!names) return names.error();
    each.idempotent_methods = *std::move(names);
  }
  return std::nullopt;
}

hearth_bytes empty_config() {
  static constexpr std::string_view kEmpty = "{}";
  return {kEmpty.data(), kEmpty.size()};
}

}  // namespace

struct PluginGeneration::Mapped {
  Mapped(const AbiServices& services, const std::string& origin) : host(services, origin) {}

  // Whoever crashes in its code from now on is known, on whatever thread.
  void publish(const std::string& origin, const PluginNote& note, const std::string& sha256,
               std::uint64_t number) {
    std::string classes;
    for (const std::string& each : note.manifest.classes)
      classes += (classes.empty() ? "" : ",") + each;
    auto published = std::make_unique<PublishedCode>(origin, sha256, number, std::move(classes),
                                                     &library->plugin());
    code = std::move(published);
  }

  // The calls that must succeed before it serves.
  Checked<std::vector<EntryClass>> start(const std::string& origin, const PluginNote& note,
                                         const Progress& progress);

  // False: its deinit() is busy.
  bool end(const std::string& origin, const BeforeUnmapping& before_unmapping) {
    const hearth_plugin& plugin = library->plugin();
    const bool is_over =
        !has_started || call_plugin(origin, "deinit", [&] { return plugin.deinit(); }) == HEARTH_OK;
    if (before_unmapping) before_unmapping(find_code_range(&plugin));
    return is_over;
  }

  AbiHost host;
  bool has_started = false;                // init() has succeeded: deinit() must be called
  std::unique_ptr<PluginLibrary> library;  // after the host: destroyed first
  std::unique_ptr<PublishedCode> code;     // not longer than the library
};

Checked<std::vector<EntryClass>> PluginGeneration::Mapped::start(const std::string& origin,
                                                                 const PluginNote& note,
                                                                 const Progress& progress) {
  const hearth_plugin& plugin = library->plugin();
  if (auto broken = check_entry(plugin, note)) return *std::move(broken);

  tell(progress, "init");
  const hearth_status started =
      call_plugin(origin, "init", [&] { return plugin.init(host.table(), empty_config()); });
  if (auto broken = check_init(started)) return *std::move(broken);
  has_started = true;

  tell(progress, "classes");
  auto classes = read_classes(plugin, note);
  if (!classes) return classes;
  if (auto broken = read_methods(origin, *classes)) return *std::move(broken);
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

const AbiHost& PluginGeneration::host() const {
  HEARTH_ASSERT(mapped_ != nullptr, "an unloaded generation serves nobody");
  return mapped_->host;
}

Checked<std::shared_ptr<PluginGeneration>> PluginGeneration::load(
    const std::filesystem::path& path, std::string origin, PluginNote note,
    const AbiServices& services, const Progress& progress,
    const BeforeUnmapping& before_unmapping) {
  // Everything is undone by hand on failure: leaving it to the destructor would leave the library mapped.
  auto mapped = std::make_unique<Mapped>(services, origin);
  tell(progress, "load");
  auto library = PluginLibrary::open(path);
  if (!library) return library.error();
  mapped->library = *std::move(library);
  mapped->publish(origin, note, {}, 0);
  auto classes = mapped->start(origin, note, progress);
  if (!classes) {
    // If its deinit() is busy, the library stays mapped for ever.
    if (!mapped->end(origin, before_unmapping)) {
      const Mapped* const kept = mapped.release();
      HEARTH_FORGIVE_LEAK(kept);
    }
    return classes.error();
  }
  std::shared_ptr<PluginGeneration> generation(
      new PluginGeneration(std::move(origin), std::move(note)));
  generation->mapped_ = std::move(mapped);
  generation->classes_ = *std::move(classes);
  return generation;
}

std::vector<std::shared_ptr<const runtime::AgentClass>> PluginGeneration::make_classes(
    const std::string& sha256, std::uint64_t number) {
  mapped_->publish(origin_, note_, sha256, number);
  std::vector<std::shared_ptr<const runtime::AgentClass>> made;
  made.reserve(classes_.size());
  for (const EntryClass& entry : classes_) {
    made.push_back(std::make_shared<AbiClass>(shared_from_this(), entry, sha256, number));
  }
  return made;
}

Retirement PluginGeneration::retire(const Progress& progress,
                                    const BeforeUnmapping& before_unmapping) {
  if (mapped_ == nullptr) return Retirement::kUnloaded;
  // Pairs with remove_user(): what the last user did happened before this.
  if (users_.load(std::memory_order_acquire) != 0) return Retirement::kInUse;
  tell(progress, "deinit");
  if (!mapped_->end(origin_, before_unmapping)) return Retirement::kBusy;
  classes_.clear();  // they point into the library
  mapped_->code.reset();
  const bool unmapped = mapped_->library->close();
  mapped_.reset();
  return unmapped ? Retirement::kUnloaded : Retirement::kStillMapped;
}

}  // namespace hearth::loader
