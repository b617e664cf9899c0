#include <hearth/detail/type_schema.hpp>

namespace hearth::detail {

std::string SchemaText::of_arguments(const MethodSchema& method) {
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

std::string SchemaText::of_result(const MethodSchema& method) {
  if (method.result == nullptr) return {};
  SchemaText text(true);
  const Outer here = {nullptr, method.result};
  // An empty one is no value at all. No value fits {"not":{}}.
  if (method.result->kind == SchemaKind::kOptional)
    text.append_part(R"({"anyOf":[)", here, R"(,{"not":{}}]})");
  else
    text.append(*method.result, nullptr);
  return text.take();
}

void SchemaText::append(const TypeSchema& schema, const Outer* outer) {
  const Outer here = {outer, &schema};
  switch (schema.kind) {
    case SchemaKind::kAny: out_ += "{}"; return;
    case SchemaKind::kBoolean: out_ += R"({"type":"boolean"})"; return;
    case SchemaKind::kInteger: out_ += R"({"type":"integer"})"; return;
    case SchemaKind::kUnsigned: out_ += R"({"type":"integer","minimum":0})"; return;
    case SchemaKind::kNumber: out_ += R"({"type":"number"})"; return;
    case SchemaKind::kString: out_ += R"({"type":"string"})"; return;
    case SchemaKind::kArray: append_part(R"({"type":"array","items":)", here, "}"); return;
    case SchemaKind::kOptional: append_part(R"({"anyOf":[)", here, R"(,{"type":"null"}]})"); return;
    case SchemaKind::kObject: append_object(here); return;
  }
}

void SchemaText::append_part(std::string_view before, const Outer& here, std::string_view after) {
  out_ += before;
  append(*here.schema->parts[0], &here);
  out_ += after;
}

void SchemaText::append_object(const Outer& here) {
  // A type that contains itself has an endless schema; one that contains others many times has an
  // enormous one.
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
    if (written_ && is_optional) part = part->parts[0];  // an empty one is not written
    if (i > 0) out_ += ',';
    append_quoted(out_, name);
    out_ += ':';
    append(*part, &here);
  }
  out_ += '}';
  if (!required.empty()) out_ += ",\"required\":[" + required + ']';
  out_ += '}';
}

void SchemaText::append_quoted(std::string& out, std::string_view name) {
  out += '"';
  out += name;
  out += '"';
}

}  // namespace hearth::detail
