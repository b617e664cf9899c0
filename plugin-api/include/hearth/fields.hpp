#pragma once
// Typed values from JSON and back: arguments of methods, options of a class, states. An error names
// the place ("argument 2.size: expected integer"), because its reader has not seen this code.

#include <hearth/json.hpp>

#include <cmath>
#include <concepts>
#include <cstdint>
#include <exception>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

// Inside a struct: makes it readable from a JSON object and writable as one. A missing key leaves
// the field at its default.
//
//     struct Options {
//       int start = 0;
//       std::string greeting = "hello";
//       HEARTH_FIELDS(start, greeting)
//     };
//
// Fields   any type that read_json() below takes. Not usable in a class local to a function.
#define HEARTH_FIELDS(...)                                        \
  template <class HearthVisitor>                                  \
  void hearth_visit(const HearthVisitor& hearth_visitor) {        \
    hearth_visitor(#__VA_ARGS__, __VA_ARGS__);                    \
  }                                                               \
  template <class HearthVisitor>                                  \
  void hearth_visit(const HearthVisitor& hearth_visitor) const {  \
    hearth_visitor(#__VA_ARGS__, __VA_ARGS__);                    \
  }                                                               \
  template <class HearthTypes>                                    \
  static constexpr auto hearth_types(HearthTypes hearth_of) {     \
    return decltype(hearth_of(__VA_ARGS__))::named(#__VA_ARGS__); \
  }

// Beside HEARTH_FIELDS: an object that lacks one of these is rejected ("input.topic: missing,
// expected string").
//
//       HEARTH_FIELDS(topic, steps)
//       HEARTH_REQUIRED(topic)
#define HEARTH_REQUIRED(...)                       \
  void hearth_check_required() {                   \
    [](const auto&...) {}(__VA_ARGS__);            \
  }                                                \
  static constexpr const char* hearth_required() { \
    return #__VA_ARGS__;                           \
  }

namespace hearth {

namespace detail {

struct AnyVisitor {
  template <class... Fields>
  void operator()(std::string_view, Fields&...) const {}
};

// A struct with HEARTH_FIELDS.
template <class T>
concept HasFields = requires(T& value) { value.hearth_visit(AnyVisitor()); };

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

template <class T>
inline constexpr bool kIsVector = false;
template <class T>
inline constexpr bool kIsVector<std::vector<T>> = true;

// Whether a T can be read from JSON, and JSON made of a T: by HEARTH_FIELDS, or by nlohmann/json's
// rules.
template <class T>
inline constexpr bool kReadsJson = requires(const Json& value) { value.template get<T>(); };
template <class T>
inline constexpr bool kMakesJson = std::is_constructible_v<Json, const T&>;
// Where a function takes a Json, an overload for these types calls need_json().
template <class T>
concept MakesNoJson = std::is_class_v<T> && !kMakesJson<T>;
template <class T>
constexpr void need_json() {
  static_assert(kMakesJson<T>,
                "no JSON can be made of this type: list its members with HEARTH_FIELDS(a, b)");
}

// The first of the names in "start, greeting"; it is removed from `names`.
constexpr std::string_view next_name(std::string_view& names) {
  const std::size_t comma = names.find(',');
  std::string_view name = names.substr(0, comma);
  names = comma == std::string_view::npos ? std::string_view() : names.substr(comma + 1);
  while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
  while (!name.empty() && name.back() == ' ') name.remove_suffix(1);
  return name;
}

// Whether a name is among those in "start, greeting".
constexpr bool has_name(std::string_view names, std::string_view name) {
  while (!names.empty()) {
    if (next_name(names) == name) return true;
  }
  return false;
}

constexpr bool has_names(std::string_view names, std::string_view wanted) {
  while (!wanted.empty()) {
    if (!has_name(names, next_name(wanted))) return false;
  }
  return true;
}

// The reader's place in a value: a chain on the stack, made text only for an error.
struct Place {
  const Place* outer;
  std::string_view name;  // a key; empty for an index
  std::size_t index;

  [[nodiscard]] std::string text() const;
};

[[noreturn]] inline void refuse(const Place& place, std::string_view why) {
  throw Error(HEARTH_E_INVALID, place.text() + ": " + std::string(why));
}

// The name of type T in an error.
template <class T>
constexpr std::string_view expected_name() {
  if constexpr (std::same_as<T, bool>)
    return "expected boolean";
  else if constexpr (std::integral<T>)
    return "expected integer";
  else if constexpr (std::floating_point<T>)
    return "expected number";
  else if constexpr (std::same_as<T, std::string>)
    return "expected string";
  else if constexpr (kIsVector<T>)
    return "expected array";
  else if constexpr (kIsOptional<T>)
    return expected_name<typename T::value_type>();
  else if constexpr (HasFields<T>)
    return "expected object";
  else
    return "expected a value";
}

template <std::integral T>
T read_integer(const Json& value, const Place& place) {
  constexpr bool kIsCharacter = std::same_as<T, char> || std::same_as<T, wchar_t> ||
                                std::same_as<T, char8_t> || std::same_as<T, char16_t> ||
                                std::same_as<T, char32_t>;
  static_assert(!kIsCharacter, "JSON has no characters: take a std::string, or an int");
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (!std::in_range<T>(number)) refuse(place, "integer out of range");
    return static_cast<T>(number);
  }
  if (value.is_number_integer()) {
    const auto number = value.get<std::int64_t>();
    if (!std::in_range<T>(number)) refuse(place, "integer out of range");
    return static_cast<T>(number);
  }
  if (!value.is_number_float()) refuse(place, expected_name<T>());
  // Some clients write 2.0 for 2. Beyond 2^53 a double may differ from the integer that was meant.
  const double number = value.get<double>();
  if (!(std::fabs(number) <= 9007199254740992.0) || std::trunc(number) != number) {
    refuse(place, expected_name<T>());
  }
  if (!std::in_range<T>(static_cast<std::int64_t>(number))) refuse(place, "integer out of range");
  return static_cast<T>(number);
}

enum class UnknownKeys { kIgnored, kRefused };

template <class T>
T read_json(const Json& value, const Place& place, UnknownKeys unknown);

// Reads the members of `object` into the fields of a struct.
class FieldReader {
 public:
  // `required`: the names of fields that must be there, with commas between them.
  FieldReader(const Json& object, const Place& place, UnknownKeys unknown,
              std::string_view required)
      : object_(object), place_(place), unknown_(unknown), required_(required) {}

  template <class... Fields>
  void operator()(std::string_view names, Fields&... fields) const {
    std::string_view rest = names;
    (read(next_name(rest), fields), ...);
    if (unknown_ == UnknownKeys::kIgnored) return;
    for (const auto& [key, member] : object_.get_ref<const Json::object_t&>()) {
      if (!has_name(names, key))
        refuse(Place{&place_, key, 0}, "unknown; known are " + std::string(names));
    }
  }

 private:
  template <class Field>
  void read(std::string_view name, Field& field) const {
    const auto member = object_.find(name);
    if (member != object_.end())
      field = read_json<Field>(*member, Place{&place_, name, 0}, unknown_);
    else if (has_name(required_, name))
      refuse(Place{&place_, name, 0}, "missing, " + std::string(expected_name<Field>()));
  }

  const Json& object_;
  const Place& place_;
  UnknownKeys unknown_;
  std::string_view required_;
};

// The names that HEARTH_FIELDS lists, as a text.
struct ListedFields {
  static constexpr std::string_view named(std::string_view names) { return names; }
};
struct ListedFieldsOf {
  template <class... Fields>
  ListedFields operator()(Fields&...) const;
};

template <class T>
constexpr std::string_view required_of() {
  if constexpr (requires { T::hearth_required(); }) {
    static_assert(has_names(T::hearth_types(ListedFieldsOf()), T::hearth_required()),
                  "a member in HEARTH_REQUIRED(a) is read only if HEARTH_FIELDS(a, b) lists it, "
                  "too");
    return T::hearth_required();
  } else {
    return {};
  }
}

class FieldWriter {
 public:
  explicit FieldWriter(Json& object) : object_(object) {}

  template <class... Fields>
  void operator()(std::string_view names, const Fields&... fields) const {
    (write(next_name(names), fields), ...);
  }

 private:
  template <class Field>
  void write(std::string_view name, const Field& field) const {
    if constexpr (kIsOptional<Field>) {
      if (field) write(name, *field);
    } else {
      static_assert(kMakesJson<Field>,
                    "no JSON can be made of this type: list its members with HEARTH_FIELDS(a, b)");
      object_.emplace(std::string(name), field);
    }
  }

  Json& object_;
};

// A type of the author's own, by nlohmann's rules.
template <class T>
T read_other(const Json& value, const Place& place) {
  static_assert(kReadsJson<T>,
                "this type cannot be read from JSON: list its members with HEARTH_FIELDS(a, b)");
  if constexpr (kReadsJson<T>) {
    try {
      return value.get<T>();
    } catch (const Json::exception& error) {
      refuse(place, json_error_text(error));
    }
  }
}

template <class T>
T read_json(const Json& value, const Place& place, UnknownKeys unknown) {
  static_assert(!std::same_as<T, std::string_view>,
                "a std::string_view would refer to a text that is gone: read a std::string");
  if constexpr (std::same_as<T, Json>) {
    return value;
  } else if constexpr (std::same_as<T, bool>) {
    if (!value.is_boolean()) refuse(place, expected_name<T>());
    return value.get<bool>();
  } else if constexpr (std::integral<T>) {
    return read_integer<T>(value, place);
  } else if constexpr (std::floating_point<T>) {
    if (!value.is_number()) refuse(place, expected_name<T>());
    return value.get<T>();
  } else if constexpr (std::same_as<T, std::string>) {
    if (!value.is_string()) refuse(place, expected_name<T>());
    return value.get_ref<const std::string&>();
  } else if constexpr (kIsOptional<T>) {
    if (value.is_null()) return std::nullopt;
    return read_json<typename T::value_type>(value, place, unknown);
  } else if constexpr (kIsVector<T>) {
    if (!value.is_array()) refuse(place, expected_name<T>());
    T elements;
    elements.reserve(value.size());
    for (std::size_t i = 0; i < value.size(); ++i) {
      elements.push_back(
          read_json<typename T::value_type>(value[i], Place{&place, {}, i}, unknown));
    }
    return elements;
  } else if constexpr (HasFields<T>) {
    if (!value.is_object()) refuse(place, expected_name<T>());
    T object;
    object.hearth_visit(FieldReader(value, place, unknown, required_of<T>()));
    return object;
  } else {
    return read_other<T>(value, place);
  }
}

}  // namespace detail

// `value` as a T: bool, an integer (also 2.0), a floating-point number, std::string, Json,
// std::optional (null), std::vector, a struct with HEARTH_FIELDS, or a type that nlohmann/json can
// read.
// Failure   Error(INVALID), whose text starts with the place inside `what` ("state.count: expected
//           integer").
template <class T>
[[nodiscard]] T read_json(const Json& value, std::string_view what) {
  return detail::read_json<T>(value, detail::Place{nullptr, what, 0},
                              detail::UnknownKeys::kIgnored);
}

namespace detail {

// The same for a value that an earlier version of the code may have stored.
// Failure   Unreadable
template <class T>
[[nodiscard]] T read_stored(const Json& value, std::string_view what) {
  try {
    return hearth::read_json<T>(value, what);
  } catch (const std::exception& error) {
    throw Unreadable(error.what());
  }
}

}  // namespace detail

// The options of a class: like read_json, but a key that the struct does not have is an error
// ("option strat: unknown; ...").
template <class T>
[[nodiscard]] T read_options(const Json& value) {
  if (!value.is_object()) throw Error(HEARTH_E_INVALID, "options: expected object");
  return detail::read_json<T>(value, detail::Place{nullptr, "option ", 0},
                              detail::UnknownKeys::kRefused);
}
// With another name for the whole in errors ("chat.strat: unknown; ...").
template <class T>
[[nodiscard]] T read_options(const Json& value, std::string_view what) {
  return detail::read_json<T>(value, detail::Place{nullptr, what, 0},
                              detail::UnknownKeys::kRefused);
}

}  // namespace hearth

// Structs with HEARTH_FIELDS are values of nlohmann/json as well: Json(state), json.get<State>().
template <hearth::detail::HasFields T>
struct nlohmann::adl_serializer<T, void> {
  static void to_json(hearth::Json& json, const T& value) {
    json = hearth::Json::object();
    value.hearth_visit(hearth::detail::FieldWriter(json));
  }
  static void from_json(const hearth::Json& json, T& value) {
    value = hearth::read_json<T>(json, "value");
  }
};
