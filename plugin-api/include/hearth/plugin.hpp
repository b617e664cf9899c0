#pragma once
// HEARTH_PLUGIN: the exported symbol, the ELF note and the class tables of a library.

#include <hearth/agent_base.hpp>
#include <hearth/detail/dispatch.hpp>
#include <hearth/detail/listed_methods.hpp>
#include <hearth/detail/listed_operations.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace hearth::detail {

// True if T inherits the hook from Agent, so that calling it would do nothing. A private override
// is an override.
#define HEARTH_INHERITS(hook) \
  requires { requires std::is_same_v<decltype(&T::hook), decltype(&::hearth::Agent::hook)>; }

template <class T>
concept HasState = requires { typename T::State; } && HasFields<typename T::State>;

template <class T>
constexpr std::uint32_t hooks_of() {
  std::uint32_t hooks = 0;
  if constexpr (!HEARTH_INHERITS(initial_state)) hooks |= kInitialState;
  if constexpr (!HEARTH_INHERITS(on_migrate)) hooks |= kOnMigrate;
  if constexpr (!HEARTH_INHERITS(on_start)) hooks |= kOnStart;
  if constexpr (!HEARTH_INHERITS(on_connecting)) hooks |= kOnConnecting;
  if constexpr (!HEARTH_INHERITS(on_connect)) hooks |= kOnConnect;
  if constexpr (!HEARTH_INHERITS(on_message)) hooks |= kOnMessage;
  if constexpr (!HEARTH_INHERITS(on_close)) hooks |= kOnClose;
  if constexpr (!HEARTH_INHERITS(on_request)) hooks |= kOnRequest;
  if constexpr (!HEARTH_INHERITS(validate_state) || HasState<T>) hooks |= kValidateState;
  if constexpr (!HEARTH_INHERITS(on_state_changed)) hooks |= kOnStateChanged;
  if constexpr (!HEARTH_INHERITS(on_evict)) hooks |= kOnEvict;
  if constexpr (!HEARTH_INHERITS(on_fiber_recovered)) hooks |= kOnFiberRecovered;
  if constexpr (!HEARTH_INHERITS(on_fiber_complete)) hooks |= kOnFiberComplete;
  if constexpr (!HEARTH_INHERITS(on_fibers_recovered)) hooks |= kOnFibersRecovered;
  if constexpr (!HEARTH_INHERITS(on_sub_agent)) hooks |= kOnSubAgent;
  if constexpr (!HEARTH_INHERITS(on_operation_unknown)) hooks |= kOnOperationUnknown;
  return hooks;
}

#undef HEARTH_INHERITS

// True if T has any member called `methods`, even one that is inaccessible here.
struct MethodsOfItsOwn {
  int methods;
};
template <class T>
struct MethodsProbe : T, MethodsOfItsOwn {};
template <class T>
consteval bool names_methods() {
  if constexpr (std::is_final_v<T>)
    return requires { &T::methods; };
  else
    return !requires { &MethodsProbe<T>::methods; };
}

template <class T>
concept HasOptions = requires { typename T::Options; };

// An inherited `methods` lists those of the base.
template <class Base>
void collect_methods(MethodTable& all, void (*methods)(Methods<Base>&)) {
  Methods<Base> list(all);
  methods(list);
}

// Made when the library is loaded.
template <class T>
const MethodTable& methods_of() {
  static const MethodTable list = [] {
    MethodTable all;
    if constexpr (names_methods<T>()) {
      static_assert(
          requires { collect_methods(all, &T::methods); },
          "methods must be: public: static void methods(hearth::Methods<TheClass>& m)");
      collect_methods(all, &T::methods);
    }
    return all;
  }();
  return list;
}

template <class T>
constexpr auto state_check_of() -> void (*)(const Json&) {
  if constexpr (HasState<T>)
    return [](const Json& state) {
      static_cast<void>(hearth::read_json<typename T::State>(state, "state"));
    };
  else
    return nullptr;
}

template <class T>
inline constexpr ClassTraits kTraits = {hooks_of<T>(), &methods_of<T>, state_check_of<T>()};

template <class T>
std::unique_ptr<Agent> make_agent(const Activation& activation) {
  if constexpr (HasOptions<T>) {
    static_assert(std::is_constructible_v<T, typename T::Options>,
                  "a class with a struct Options has a public constructor that takes one");
    return std::make_unique<T>(read_options<typename T::Options>(parse_json(activation.options())));
  } else {
    static_cast<void>(activation);
    return std::make_unique<T>();
  }
}

// hearth_class.create.
template <class T>
hearth_status create(const hearth_class* self, const hearth_host* host, hearth_agent id,
                     hearth_bytes name, hearth_bytes options, void** instance) noexcept {
  Activation* const outer = constructing;
  std::unique_ptr<Activation> activation;
  try {
    activation =
        std::make_unique<Activation>(kTraits<T>, *self, host, id, view(name), view(options));
    const Activation::Watch watch(*activation);
    constructing = activation.get();
    activation->adopt(make_agent<T>(*activation));
    if constexpr ((hooks_of<T>() & kInitialState) != 0) {
      const Json initial = activation->agent().initial_state();
      if (!initial.is_null()) {
        const auto& table = need(activation->tables().state, HEARTH_EXT_STATE);
        const std::string text = to_text(initial);
        activation->check(table.set_default(host, id, slice(std::string_view(text))),
                          "initial state");
      }
    }
    constructing = outer;
    *instance = activation.release();
    return HEARTH_OK;
  } catch (...) {
    constructing = outer;
    const Failure failure = current_failure();
    host->complete(host, id, 0, failure.status, slice(std::string_view(failure.text)));
    return failure.status;
  }
}

template <class T>
concept HasSchema = requires { T::schema_version; };

template <class T>
constexpr hearth_schema_v1 schema_table() {
  static_assert(T::schema_version >= 1,
                "schema_version counts from 1: static constexpr unsigned schema_version = 1;");
  return {sizeof(hearth_schema_v1), std::uint32_t{T::schema_version}};
}
template <HasSchema T>
inline constexpr hearth_schema_v1 kSchemaTable = schema_table<T>();

// Null if T cannot list its methods: the first call then gets the reason.
template <class T>
const hearth_methods_v1* listed_methods_of() noexcept {
  try {
    static const ListedMethods listed(methods_of<T>().methods);
    return listed.table();
  } catch (...) {
    return nullptr;
  }
}

// Null if T has none, or cannot list them.
template <class T>
const hearth_operation_kinds_v1* listed_operations_of() noexcept {
  try {
    static const ListedOperations listed(methods_of<T>().operations);
    return listed.table();
  } catch (...) {
    return nullptr;
  }
}

template <class T>
const void* class_extension(const hearth_class*, const char* id) noexcept {
  if (std::string_view(id) == HEARTH_EXT_OFFLOAD) return &kOffloadTable;
  if (std::string_view(id) == HEARTH_EXT_METHODS) return listed_methods_of<T>();
  if (std::string_view(id) == HEARTH_EXT_OPERATION_KINDS) return listed_operations_of<T>();
  if constexpr (HasSchema<T>) {
    if (std::string_view(id) == HEARTH_EXT_SCHEMA) return &kSchemaTable<T>;
  }
  return nullptr;
}

template <class T>
constexpr bool reads_bodies() {
  if constexpr (requires { T::kReadsBodies; }) return T::kReadsBodies;
  return false;
}

template <class T>
constexpr hearth_class class_table(const char* name, const char* version) {
  static_assert(std::is_base_of_v<Agent, T>,
                "HEARTH_PLUGIN takes classes derived from hearth::Agent");
  const std::uint32_t hooks = hooks_of<T>();
  const std::uint32_t flags =
      ((hooks & kValidateState) != 0 ? std::uint32_t{HEARTH_CLASS_CHECKS_STATE} : 0U) |
      ((hooks & kOnStateChanged) != 0 ? std::uint32_t{HEARTH_CLASS_WATCHES_STATE} : 0U) |
      (reads_bodies<T>() ? std::uint32_t{HEARTH_CLASS_READS_BODIES} : 0U);
  static_assert(HasSchema<T> || (hooks & kOnMigrate) == 0,
                "a class with on_migrate says which version it migrates to: schema_version");
  return {sizeof(hearth_class),
          flags,
          name,
          version,
          &create<T>,
          &destroy,
          &on_event,
          &on_cancel,
          &on_result,
          &class_extension<T>};
}

// The class name at `index`: of "Counter, my::ChatRoom" "Counter" for 0, "ChatRoom" for 1.
constexpr std::string_view class_name(std::string_view classes, std::size_t index) {
  std::string_view name = next_name(classes);
  while (index-- > 0) name = next_name(classes);
  const std::size_t colon = name.rfind(':');
  return colon == std::string_view::npos ? name : name.substr(colon + 1);
}

constexpr bool valid_class_name(std::string_view name) {
  if (name.empty() || name.size() > 64 || (name[0] >= '0' && name[0] <= '9')) return false;
  for (const char c : name) {
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'))
      return false;
  }
  return true;
}

constexpr bool plain_text(std::string_view text) {
  for (const char c : text) {
    if (c < ' ' || c > '~' || c == '"' || c == '\\') return false;
  }
  return !text.empty();
}

// hearth_note with its manifest, in the needed length.
template <std::size_t Size>
struct Note {
  hearth_note head;
  char text[(Size + 3) / 4 * 4];
};

// Text has name, version and classes (the list as written), all literals.
template <class Text, class... Classes>
class Plugin {
  static constexpr std::size_t kCount = sizeof...(Classes);
  static_assert(plain_text(Text::kName) && plain_text(Text::kVersion),
                "name and version of a plugin are printable ASCII without quotes");

 public:
  static constexpr auto note() {
    constexpr std::size_t kSize = manifest_size();
    Note<kSize> note = {};
    note.head = {7,
                 24 + kSize,
                 HEARTH_NOTE_TYPE,
                 {'H', 'E', 'A', 'R', 'T', 'H', 0, 0},
                 {static_cast<std::uint32_t>(HEARTH_MAGIC & 0xffffffffU),
                  static_cast<std::uint32_t>(HEARTH_MAGIC >> 32)},
                 HEARTH_ABI_MAJOR,
                 HEARTH_ABI_MINOR,
                 0,
                 0,
                 sizeof(hearth_plugin),
                 kSize};
    std::size_t at = 0;
    manifest([&](std::string_view part) {
      for (const char c : part) note.text[at++] = c;
    });
    return note;
  }

  static constexpr hearth_plugin plugin() {
    return {HEARTH_MAGIC,
            sizeof(hearth_plugin),
            HEARTH_ABI_MAJOR,
            HEARTH_ABI_MINOR,
            0,
            kCount,
            &init,
            &deinit,
            &get_class};
  }

 private:
  template <class Put>
  static constexpr void manifest(Put put) {
    put("{\"plugin\":\"");
    put(Text::kName);
    put("\",\"version\":\"");
    put(Text::kVersion);
    put("\",\"classes\":[");
    for (std::size_t i = 0; i < kCount; ++i) {
      put(i == 0 ? "\"" : ",\"");
      put(class_name(Text::kClasses, i));
      put("\"");
    }
    put("]}");
  }
  static constexpr std::uint32_t manifest_size() {
    std::size_t size = 0;
    manifest([&](std::string_view part) { size += part.size(); });
    return static_cast<std::uint32_t>(size);
  }

  using Name = std::array<char, 65>;
  static constexpr std::array<Name, kCount> make_names() {
    std::array<Name, kCount> names = {};
    for (std::size_t i = 0; i < kCount; ++i) {
      const std::string_view name = class_name(Text::kClasses, i);
      if (!valid_class_name(name)) throw "HEARTH_PLUGIN takes the names of classes, not templates";
      for (std::size_t k = 0; k < name.size(); ++k) names[i][k] = name[k];
    }
    return names;
  }
  static constexpr std::array<Name, kCount> kNames = make_names();

  template <std::size_t... I>
  static constexpr std::array<hearth_class, kCount> make_classes(std::index_sequence<I...>) {
    return {class_table<Classes>(kNames[I].data(), Text::kVersion)...};
  }
  static constexpr std::array<hearth_class, kCount> kClasses =
      make_classes(std::make_index_sequence<kCount>());

  static hearth_status init(const hearth_host* host, hearth_bytes) noexcept {
    if (host->abi_major != HEARTH_ABI_MAJOR) return HEARTH_E_UNSUPPORTED;
    library_tables.look_up(host);
    return HEARTH_OK;
  }
  static hearth_status deinit() noexcept {
    library_tables = HostTables();
    return HEARTH_OK;
  }
  static const hearth_class* get_class(std::uint32_t index) noexcept {
    return index < kCount ? &kClasses[index] : nullptr;
  }
};

}  // namespace hearth::detail

// HEARTH_PLUGIN("counter", "1.0.0", Counter, my::ChatRoom): once in a library, at file scope.
// Clients know a class by its C++ name without namespaces. No semicolon follows. A unit test
// defines HEARTH_NO_ENTRY to compile the file into itself.
#ifdef HEARTH_NO_ENTRY
#define HEARTH_PLUGIN(plugin_name, plugin_version, ...)
#else
#define HEARTH_PLUGIN(plugin_name, plugin_version, ...)                                         \
  namespace {                                                                                   \
  struct HearthPluginText {                                                                     \
    static constexpr const char* kName = plugin_name;                                           \
    static constexpr const char* kVersion = plugin_version;                                     \
    static constexpr const char* kClasses = #__VA_ARGS__;                                       \
  };                                                                                            \
  using HearthPlugin = ::hearth::detail::Plugin<HearthPluginText, __VA_ARGS__>;                 \
  }                                                                                             \
  __attribute__((section(".note.hearth"), used,                                                 \
                 aligned(4))) static constexpr auto hearth_plugin_note_ = HearthPlugin::note(); \
  extern "C" {                                                                                  \
  extern __attribute__((visibility("default"))) const hearth_plugin hearth_plugin_v1;           \
  __attribute__((used)) const hearth_plugin hearth_plugin_v1 = HearthPlugin::plugin();          \
  }
#endif
