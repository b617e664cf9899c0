#pragma once
// JSON schemas of C++ types. Of each type there is constant data only; one function, the same for
// all, makes text of it. So a method costs the compiler no code for its schema.

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
  kOptional,  // its part, or null
  kObject,    // with parts that have names
};

// What JSON a type is read from and written as.
struct TypeSchema {
  SchemaKind kind = SchemaKind::kAny;
  const TypeSchema* const* parts = nullptr;
  std::size_t count = 0;
  std::string_view names = {};     // of the parts: "start, greeting"
  std::string_view required = {};  // those without which the object is not read
};

template <class T>
constexpr TypeSchema make_type_schema();

template <class T>
inline constexpr TypeSchema kTypeSchema = make_type_schema<T>();
// One more than there are types, since an array is never empty.
template <class... T>
inline constexpr const TypeSchema* kTypeSchemas[sizeof...(T) + 1] = {&kTypeSchema<T>..., nullptr};

// What HEARTH_FIELDS tells of its fields.
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
  // NOLINTNEXTLINE(bugprone-branch-clone): it must not come to the others
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

// Of one method.
struct MethodSchema {
  const TypeSchema* const* arguments;
  std::size_t count;         // of arguments
  const TypeSchema* result;  // null: it has none
};

// Writes schemas as JSON text.
class SchemaText {
 public:
  // Text longer than this is not used: what is cut short is no schema any more.
  static constexpr std::size_t kMaxBytes = 16384;

  // Of the array of arguments. Empty if it would be too long.
  static std::string of_arguments(const MethodSchema& method) {
    SchemaText text(false);
    text.out_ = R"({"type":"array")";
    std::size_t needed = 0;
    for (std::size_t i = 0; i < method.count; ++i) {
      const TypeSchema& argument = *method.arguments[i];
      text.out_ += i == 0 ? R"(,"prefixItems":[)" : ",";
      text.append(argument, nullptr);
      if (!may_be_left_out(argument)) needed = i + 1;
    }
    if (method.count > 0) text.out_ += R"(],"minItems":)" + std::to_string(needed);
    text.out_ += R"(,"maxItems":)" + std::to_string(method.count) + "}";
    return text.take();
  }

  // Empty if there is none, or if it would be too long.
  static std::string of_result(const MethodSchema& method) {
    if (method.result == nullptr) return {};
    SchemaText text(true);
    text.append(*method.result, nullptr);
    return text.take();
  }

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

  void append(const TypeSchema& schema, const Outer* outer) {
    const Outer here = {outer, &schema};
    switch (schema.kind) {
      case SchemaKind::kAny: out_ += "{}"; return;
      case SchemaKind::kBoolean: out_ += R"({"type":"boolean"})"; return;
      case SchemaKind::kInteger: out_ += R"({"type":"integer"})"; return;
      case SchemaKind::kUnsigned: out_ += R"({"type":"integer","minimum":0})"; return;
      case SchemaKind::kNumber: out_ += R"({"type":"number"})"; return;
      case SchemaKind::kString: out_ += R"({"type":"string"})"; return;
      case SchemaKind::kArray: append_part(R"({"type":"array","items":)", here, "}"); return;
      case SchemaKind::kOptional:
        append_part(R"({"anyOf":[)", here, R"(,{"type":"null"}]})");
        return;
      case SchemaKind::kObject: append_object(here); return;
    }
  }

  void append_part(std::string_view before, const Outer& here, std::string_view after) {
    out_ += before;
    append(*here.schema->parts[0], &here);
    out_ += after;
  }

  void append_object(const Outer& here) {
    // A type that holds itself has no end, and one that holds others many times none in sight.
    bool is_inside_itself = false;
    for (const Outer* each = here.outer; each != nullptr; each = each->outer)
      is_inside_itself = is_inside_itself || each->schema == here.schema;
    if (is_inside_itself || out_.size() > kMaxBytes) {
      out_ += R"({"type":"object"})";
      return;
    }
    out_ += R"({"type":"object","properties":{)";
    std::string required;
    std::string_view names = here.schema->names;
    for (std::size_t i = 0; i < here.schema->count; ++i) {
      const TypeSchema* part = here.schema->parts[i];
      const std::string_view name = next_name(names);
      const bool is_optional = part->kind == SchemaKind::kOptional;
      if (written_ ? !is_optional : has_name(here.schema->required, name)) {
        if (!required.empty()) required += ',';
        append_quoted(required, name);
      }
      if (written_ && is_optional) part = part->parts[0];  // one without a value is not written
      if (i > 0) out_ += ',';
      append_quoted(out_, name);
      out_ += ':';
      append(*part, &here);
    }
    out_ += '}';
    if (!required.empty()) out_ += ",\"required\":[" + required + ']';
    out_ += '}';
  }

  // A name of C++ needs no escapes.
  static void append_quoted(std::string& out, std::string_view name) {
    out += '"';
    out += name;
    out += '"';
  }

  static bool has_name(std::string_view names, std::string_view name) {
    while (!names.empty()) {
      if (next_name(names) == name) return true;
    }
    return false;
  }

  std::string take() { return out_.size() > kMaxBytes ? std::string() : std::move(out_); }

  const bool written_;  // what the class writes; else what it reads
  std::string out_;
};

}  // namespace hearth::detail
