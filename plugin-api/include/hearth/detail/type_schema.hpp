#pragma once
// JSON schemas of C++ types. Each type has only constant data; one function for all types makes the
// text. So the schema of a method adds no code to compile.

#include <hearth/fields.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace hearth::detail {

enum class SchemaKind : std::uint8_t {
  kAny,
  kBoolean,
  kInteger,
  kUnsigned,
  kNumber,
  kString,
  kArray,     // of its part
  kOptional,  // its part, or null; as a result its part, or no value
  kObject,    // with parts that have names
};

// The JSON of a C++ type, for reading and writing.
struct TypeSchema {
  SchemaKind kind = SchemaKind::kAny;
  const TypeSchema* const* parts = nullptr;
  std::size_t count = 0;
  std::string_view names = {};     // of the parts: "start, greeting"
  std::string_view required = {};  // names without which the object is rejected
};

template <class T>
constexpr TypeSchema make_type_schema();

template <class T>
inline constexpr TypeSchema kTypeSchema = make_type_schema<T>();
// One more than there are types, since an array is never empty.
template <class... T>
inline constexpr const TypeSchema* kTypeSchemas[sizeof...(T) + 1] = {&kTypeSchema<T>..., nullptr};

// The fields that HEARTH_FIELDS lists.
template <class... Fields>
struct FieldTypes {
  static constexpr TypeSchema named(std::string_view names) {
    return {SchemaKind::kObject, kTypeSchemas<Fields...>, sizeof...(Fields), names, {}};
  }
};
struct FieldTypesOf {
  template <class... Fields>
  FieldTypes<std::remove_const_t<Fields>...> operator()(Fields&...) const;
};

// The order is that of read_json() and of append_result().
template <class T>
constexpr TypeSchema make_type_schema() {
  // NOLINTNEXTLINE(bugprone-branch-clone): it must not reach the others
  if constexpr (std::same_as<T, Json>) {
    return {};
  } else if constexpr (std::same_as<T, bool>) {
    return {SchemaKind::kBoolean};
  } else if constexpr (std::integral<T>) {
    return {std::is_signed_v<T> ? SchemaKind::kInteger : SchemaKind::kUnsigned};
  } else if constexpr (std::floating_point<T>) {
    return {SchemaKind::kNumber};
  } else if constexpr (std::convertible_to<const T&, std::string_view>) {
    return {SchemaKind::kString};
  } else if constexpr (kIsOptional<T>) {
    return {SchemaKind::kOptional, kTypeSchemas<typename T::value_type>, 1};
  } else if constexpr (kIsVector<T>) {
    return {SchemaKind::kArray, kTypeSchemas<typename T::value_type>, 1};
  } else if constexpr (HasFields<T>) {
    TypeSchema schema = T::hearth_types(FieldTypesOf());
    schema.required = required_of<T>();
    return schema;
  } else {
    return {};
  }
}

// The schema of one method.
struct MethodSchema {
  const TypeSchema* const* arguments;
  std::size_t count;         // of arguments
  const TypeSchema* result;  // null: it has none
};

// Writes schemas as JSON text.
class SchemaText {
 public:
  // Longer text is not used: a shortened schema is invalid.
  static constexpr std::size_t kMaxBytes = 16384;

  // The schema of the array of arguments. Empty if it would be too long.
  static std::string of_arguments(const MethodSchema& method);

  // The schema of the result. Empty if there is none, or if it would be too long.
  static std::string of_result(const MethodSchema& method);

 private:
  // The types that the writer is inside of.
  struct Outer {
    const Outer* outer;
    const TypeSchema* schema;
  };

  explicit SchemaText(bool written) : written_(written) {}

  static bool may_be_left_out(const TypeSchema& schema) {
    return schema.kind == SchemaKind::kAny || schema.kind == SchemaKind::kOptional;
  }

  void append(const TypeSchema& schema, const Outer* outer);

  void append_part(std::string_view before, const Outer& here, std::string_view after);

  void append_object(const Outer& here);

  // A C++ name needs no escapes.
  static void append_quoted(std::string& out, std::string_view name);

  std::string take() { return out_.size() > kMaxBytes ? std::string() : std::move(out_); }

  const bool written_;  // for JSON that the class writes; else for JSON that it reads
  std::string out_;
};

}  // namespace hearth::detail
