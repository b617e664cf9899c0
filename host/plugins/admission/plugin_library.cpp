#include "plugins/admission/plugin_library.hpp"

#include "base/assert.hpp"

#include <dlfcn.h>

#include <boost/dll/shared_library.hpp>

#include <string>
#include <system_error>
#include <utility>

#include <link.h>

namespace hearth::plugins {
namespace {

// The loader's message without the path of the private copy: operators know the file by another
// name.
std::string reason_without_path(std::string text, const std::string& path) {
  if (text.starts_with(path + ": ")) text.erase(0, path.size() + 2);
  if (text.find("failed to map segment") != std::string::npos) {
    text += " (is the data directory on a file system that is mounted noexec?)";
  }
  return text;
}

// dlsym also finds symbols of libraries that the library links to. Those do not count.
bool belongs_to(const void* symbol, void* handle) {
  link_map* library = nullptr;
  Dl_info info{};
  void* owner = nullptr;
  if (::dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&library)) != 0) return false;
  if (::dladdr1(symbol, &info, &owner, RTLD_DL_LINKMAP) == 0) return false;
  return owner == library;
}

}  // namespace

PluginLibrary::PluginLibrary(std::filesystem::path path)
    : path_(std::move(path)), library_(std::make_unique<boost::dll::shared_library>()) {}

PluginLibrary::~PluginLibrary() = default;

Checked<std::unique_ptr<PluginLibrary>> PluginLibrary::open(const std::filesystem::path& path) {
  // The loader would search for a relative path, and would try a decorated name twice.
  HEARTH_ASSERT(path.is_absolute(), "a library is loaded by its final path");
  std::unique_ptr<PluginLibrary> opened(new PluginLibrary(path));
  namespace dll = boost::dll;
  std::error_code failure;
  opened->library_->load(path, dll::load_mode::rtld_now | dll::load_mode::rtld_local, failure);
  if (failure) {
    // The error code is always "bad file descriptor". The reason is in dlerror(), once; glibc keeps
    // it for each thread.
    const char* const reason = ::dlerror();  // NOLINT(concurrency-mt-unsafe)
    return finding("L1", "the dynamic loader refuses it: " +
                             reason_without_path(reason != nullptr ? reason : "no reason given",
                                                 path.native()));
  }
  // Boost.DLL's has() and get() would accept a symbol of a dependency, and of any type.
  void* const handle = opened->library_->native();
  const void* const symbol = ::dlsym(handle, kEntrySymbol);
  if (symbol == nullptr || !belongs_to(symbol, handle)) {
    return finding("L2", "the symbol hearth_plugin_v1 is not in it");
  }
  opened->plugin_ = static_cast<const hearth_plugin*>(symbol);
  return opened;
}

bool PluginLibrary::close() {
  HEARTH_ASSERT(library_->is_loaded(), "a library is closed once");
  library_->unload();
  plugin_ = nullptr;
  // dlclose does not report it: ask whether the name is still known.
  void* const still = ::dlopen(path_.c_str(), RTLD_NOLOAD | RTLD_NOW);
  if (still == nullptr) {
    // Forget the expected failure.
    ::dlerror();  // NOLINT(concurrency-mt-unsafe)
    return true;
  }
  ::dlclose(still);
  return false;
}

}  // namespace hearth::plugins
