#pragma once
// A plugin's file, opened in a test the way the server opens it.

#include <hearth/abi.h>

#include <dlfcn.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::testing {

// Failure   The constructor throws the error of the dynamic loader, the entry symbol or init().
// Lifetime  Outlives the agents of its classes. unload() or the destructor ends it.
class Library {
 public:
  Library(const std::string& path, const hearth_host* host)
      : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (!handle_)
      throw std::runtime_error(
          dlerror());  // NOLINT(concurrency-mt-unsafe): glibc keeps it for each thread
    plugin_ = static_cast<const hearth_plugin*>(dlsym(handle_, "hearth_plugin_v1"));
    std::string problem;
    if (!plugin_)
      problem = "has no hearth_plugin_v1";
    else if (plugin_->magic != HEARTH_MAGIC || plugin_->abi_major != HEARTH_ABI_MAJOR)
      problem = "is for another ABI";
    else if (plugin_->init(host, {"{}", 2}) != HEARTH_OK)
      problem = "refused to be initialised";
    if (problem.empty()) return;
    dlclose(handle_);
    throw std::runtime_error(path + " " + problem);
  }
  Library(Library&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), plugin_(other.plugin_) {}
  Library& operator=(Library&&) = delete;
  ~Library() { unload(); }

  [[nodiscard]] const hearth_plugin& plugin() const { return *plugin_; }
  // Throws if no class has that name.
  [[nodiscard]] const hearth_class& find_class(std::string_view name) const {
    for (std::uint32_t i = 0; i < plugin_->class_count; ++i) {
      if (plugin_->get_class(i)->name == name) return *plugin_->get_class(i);
    }
    throw std::runtime_error("no class " + std::string(name));
  }
  // Unloads it. False: deinit() said that something still runs.
  bool unload() {
    if (!handle_) return true;
    const bool ended = plugin_->deinit() == HEARTH_OK;
    if (ended) dlclose(std::exchange(handle_, nullptr));
    return ended;
  }

 private:
  void* handle_;
  const hearth_plugin* plugin_ = nullptr;
};

}  // namespace hearth::testing
