#include "extensions/watched_tables.hpp"

#include "extensions/registry.hpp"
#include "extensions/watched_functions.hpp"

namespace hearth::extensions {
namespace {

const void* get_watched_extension(const hearth_host* table, const char* id) {
  AbiWatcher& watcher = watcher_of(table);
  constexpr AbiFunction kFunction{
      .name = "get_extension", .any_thread = true, .while_closing = true};
  static_cast<void>(watcher.enter({.function = kFunction}));
  const Registered* const found = find_extension(name_of_extension(id));
  return found == nullptr || !watcher.has_extension(found->id) ? nullptr : found->watched;
}

template <class... Entries>
constexpr hearth_host make_host() {
  hearth_host table{};
  table.struct_size = sizeof(hearth_host);
  table.abi_major = HEARTH_ABI_MAJOR;
  table.abi_minor = HEARTH_ABI_MINOR;
  table.get_extension = get_watched_extension;
  watch<[](const hearth_host* real) { return real; }, Entries...>(table);
  return table;
}

constexpr hearth_host kHost = make_host<
    Member<&hearth_host::complete, "complete">, Member<&hearth_host::emit, "emit">,
    Member<&hearth_host::submit, "submit">, Member<&hearth_host::cancel, "cancel", Tag::kClosing>,
    Member<&hearth_host::last_error, "last_error", Tag::kClosing>,
    Member<&hearth_host::post, "post", Tag::kAny>, Member<&hearth_host::credit, "credit">>();

}  // namespace

AbiWatcher& watcher_of(const hearth_host* table) noexcept {
  const std::byte* const begin =
      reinterpret_cast<const std::byte*>(table) - offsetof(WatchedTable, host);
  return *reinterpret_cast<const WatchedTable*>(begin)->watcher;
}

WatchedTable watched_table(AbiWatcher& watcher) noexcept {
  return {.watcher = &watcher, .host = kHost};
}

}  // namespace hearth::extensions
