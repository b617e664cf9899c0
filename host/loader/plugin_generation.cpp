#include "loader/plugin_generation.hpp"

#include "base/assert.hpp"
#include "base/forgive_leak.hpp"
#include "loader/abi_class.hpp"
#include "loader/call_records.hpp"
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

hearth_bytes empty_config() {
  static constexpr std::string_view kEmpty = "{}";
  return {kEmpty.data(), kEmpty.size()};
}

}  // namespace

struct PluginGeneration::Mapped {
  Mapped(const AbiServices& services, const std::string& origin) : host(services, origin) {}

  AbiHost host;
  std::unique_ptr<PluginLibrary> library;  // after the host: destroyed first
};

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

Checked<std::shared_ptr<PluginGeneration>> PluginGeneration::load(const std::filesystem::path& path,
                                                                  std::string origin,
                                                                  PluginNote note,
                                                                  const AbiServices& services,
                                                                  const Progress& progress) {
  // Everything is undone by hand on failure: leaving it to the destructor would leave the library mapped.
  auto mapped = std::make_unique<Mapped>(services, origin);
  tell(progress, "load");
  auto library = PluginLibrary::open(path);
  if (!library) return library.error();
  mapped->library = *std::move(library);
  const hearth_plugin& plugin = mapped->library->plugin();
  if (auto broken = check_entry(plugin, note)) return *std::move(broken);

  tell(progress, "init");
  const hearth_status started = call_plugin(
      origin, "init", [&] { return plugin.init(mapped->host.table(), empty_config()); });
  if (auto broken = check_init(started)) return *std::move(broken);

  tell(progress, "classes");
  auto classes = read_classes(plugin, note);
  if (!classes) {
    // init() has run, so deinit() must; if it is busy, the library stays mapped for ever.
    if (call_plugin(origin, "deinit", [&] { return plugin.deinit(); }) != HEARTH_OK) {
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
  std::vector<std::shared_ptr<const runtime::AgentClass>> made;
  made.reserve(classes_.size());
  for (const EntryClass& entry : classes_) {
    made.push_back(std::make_shared<AbiClass>(shared_from_this(), entry, sha256, number));
  }
  return made;
}

Retirement PluginGeneration::retire(const Progress& progress) {
  if (mapped_ == nullptr) return Retirement::kUnloaded;
  // Pairs with remove_user(): what the last user did happened before this.
  if (users_.load(std::memory_order_acquire) != 0) return Retirement::kInUse;
  tell(progress, "deinit");
  const hearth_plugin& plugin = mapped_->library->plugin();
  if (call_plugin(origin_, "deinit", [&] { return plugin.deinit(); }) != HEARTH_OK)
    return Retirement::kBusy;
  classes_.clear();  // they point into the library
  const bool unmapped = mapped_->library->close();
  mapped_.reset();
  return unmapped ? Retirement::kUnloaded : Retirement::kStillMapped;
}

}  // namespace hearth::loader
