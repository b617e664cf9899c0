#pragma once
// Each setting is one row: its path in the file, its allowed values, its field, its meaning.
//
// The rows serve every use of settings: reading a file, comparing two configurations, the reference
// in config/README.md, and `hearth config`. A new setting is one row in server_file.cpp or
// class_file.cpp, and the code that uses the value.

#include "config/diagnostic.hpp"
#include "config/mapping_reader.hpp"
#include "config/source.hpp"
#include "config/units.hpp"
#include "json/json.hpp"

#include <chrono>
#include <concepts>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::config {

// Where one value of a file is read from.
struct Reading {
  MappingReader& reader;
  std::string_view key;                    // within its section
  const std::filesystem::path& directory;  // of relative paths
  Report& report;
  // Of a definition over HTTP: the only credentials that it may use. Null: it is another file.
  const std::map<std::string, std::filesystem::path>* secrets = nullptr;
};

// A setting whose value is a field of `Owner`.
template <class Owner>
struct Setting {
  std::string path;     // "limits.max_value"
  std::string kind;     // "duration", or the words that it may be
  std::string bounds;   // "1KiB, 256MiB"; may be empty
  std::string meaning;  // Markdown; begins in lower case, no full stop at its end
  // Leaves the value as it is if the file does not have it, or has a wrong one, which is reported.
  std::function<void(Owner&, const Reading&)> read;
  // In the form of a file: a text for durations and sizes, a number, a list, a mapping.
  std::function<Json(const Owner&)> value;
  std::string default_words;  // shown in place of the default value, if that does not say all
  bool is_secret = false;     // the value may be secret, and is not printed
};

// The rows of one kind of file, those of a section ("limits.") one after the other.
template <class Owner>
using Settings = std::vector<Setting<Owner>>;

// ---- Where a value is kept ----------------------------------------------------------------------

template <class Owner, class T>
struct Field {
  std::function<const T&(const Owner&)> get;
  std::function<T&(Owner&)> of;
};

// Fields that all have the same value.
template <class Owner, class T>
using Fields = std::vector<Field<Owner, T>>;

template <class Owner, class T>
Fields<Owner, T> at(T Owner::* member) {
  return {{.get = [=](const Owner& owner) -> const T& { return owner.*member; },
           .of = [=](Owner& owner) -> T& { return owner.*member; }}};
}

template <class Owner, class Part, class T>
Fields<Owner, T> at(Part Owner::* part, T Part::* member) {
  return {{.get = [=](const Owner& owner) -> const T& { return owner.*part.*member; },
           .of = [=](Owner& owner) -> T& { return owner.*part.*member; }}};
}

// One setting that several places need.
template <class Owner, class T>
Fields<Owner, T> all(Fields<Owner, T> fields, const std::same_as<Fields<Owner, T>> auto&... more) {
  (fields.insert(fields.end(), more.begin(), more.end()), ...);
  return fields;
}

// ---- Rows ---------------------------------------------------------------------------------------

// For any type. `read` changes the value that it gets; `shown` gives the value in the form of a
// file.
template <class Owner, class T, class Read, class Shown>
Setting<Owner> row(std::string path, std::string kind, std::string bounds, Fields<Owner, T> fields,
                   const Read& read, const Shown& shown, std::string meaning) {
  Setting<Owner> setting;
  setting.path = std::move(path);
  setting.kind = std::move(kind);
  setting.bounds = std::move(bounds);
  setting.meaning = std::move(meaning);
  setting.value = [first = fields.front(), shown](const Owner& owner) -> Json {
    return shown(first.get(owner));
  };
  setting.read = [fields = std::move(fields), read](Owner& owner, const Reading& reading) {
    T value = fields.front().get(owner);
    read(reading, value);
    for (const auto& field : fields) field.of(owner) = value;
  };
  return setting;
}

template <class Owner>
Setting<Owner> duration(std::string path, Fields<Owner, std::chrono::milliseconds> fields,
                        Bounds<std::chrono::milliseconds> bounds, std::string meaning) {
  using std::chrono::milliseconds;
  return row(
      std::move(path), "duration", format_duration(bounds.min) + ", " + format_duration(bounds.max),
      std::move(fields),
      [bounds](const Reading& in, milliseconds& out) {
        in.reader.read_duration(in.key, out, bounds);
      },
      [](milliseconds value) { return format_duration(value); }, std::move(meaning));
}

template <class Owner>
Setting<Owner> size(std::string path, Fields<Owner, std::size_t> fields, Bounds<std::size_t> bounds,
                    std::string meaning) {
  return row(
      std::move(path), "size", format_size(bounds.min) + ", " + format_size(bounds.max),
      std::move(fields),
      [bounds](const Reading& in, std::size_t& out) { in.reader.read_size(in.key, out, bounds); },
      [](std::size_t value) { return format_size(value); }, std::move(meaning));
}

template <class Owner, std::integral T>
Setting<Owner> count(std::string path, Fields<Owner, T> fields, Bounds<std::uint32_t> bounds,
                     std::string meaning) {
  return row(
      std::move(path), "count", std::to_string(bounds.min) + ", " + std::to_string(bounds.max),
      std::move(fields),
      [bounds](const Reading& in, T& out) {
        auto value = static_cast<std::uint32_t>(out);
        in.reader.read_count(in.key, value, bounds);
        out = static_cast<T>(value);
      },
      [](T value) { return value; }, std::move(meaning));
}

// One word of a few.
template <class Owner, class T>
Setting<Owner> word(std::string path, Fields<Owner, T> fields, const Words<T>& words,
                    std::string meaning) {
  std::string kind;
  for (const auto& [name, value] : words) {
    kind += (kind.empty() ? "`" : ", `") + std::string(name) + '`';
  }
  return row(
      std::move(path), std::move(kind), "", std::move(fields),
      [words](const Reading& in, T& out) { in.reader.read_choice(in.key, out, words); },
      [words](T value) {
        for (const auto& [name, each] : words) {
          if (each == value) return Json(name);
        }
        return Json(nullptr);
      },
      std::move(meaning));
}

template <class Owner>
Setting<Owner> yes_or_no(std::string path, Fields<Owner, bool> fields, std::string meaning) {
  return row(
      std::move(path), "`true`, `false`", "", std::move(fields),
      [](const Reading& in, bool& out) {
        in.reader.read_choice(in.key, out, Words<bool>{{"true", true}, {"false", false}});
      },
      [](bool value) { return value; }, std::move(meaning));
}

// A list of texts that are valid by `is_valid`. `form` describes them, with an example.
template <class Owner>
Setting<Owner> texts(std::string path, Fields<Owner, std::vector<std::string>> fields,
                     std::string form, bool (*is_valid)(std::string_view), std::string meaning) {
  return row(
      std::move(path), "list of texts", "", std::move(fields),
      [form = std::move(form), is_valid](const Reading& in, std::vector<std::string>& out) {
        in.reader.read_texts(in.key, out, form, is_valid);
      },
      [](const std::vector<std::string>& value) { return Json(value); }, std::move(meaning));
}

template <class Owner>
Setting<Owner> path(std::string path, Fields<Owner, std::filesystem::path> fields,
                    std::string meaning) {
  return row(
      std::move(path), "path", "", std::move(fields),
      [](const Reading& in, std::filesystem::path& out) {
        in.reader.read_path(in.key, out, in.directory);
      },
      [](const std::filesystem::path& value) { return value.string(); }, std::move(meaning));
}

// ---- Uses of rows -------------------------------------------------------------------------------

// "limits." and "max_value".
struct SplitPath {
  std::string_view section;
  std::string_view key;
};
[[nodiscard]] SplitPath split_path(std::string_view path);

// Records that the value of `path` comes from a file. Does the same for the entries of a mapping
// ("options.start") and the texts of a list ("aliases.my-chat").
void note_source(Sources& sources, const std::string& path, const YamlNode& node,
                 const std::string& file);

// Reads all settings of a file into `owner`, and their places into `sources`. The caller then calls
// root.finish(); `root` may have other keys.
template <class Owner>
void read_settings(const Settings<Owner>& table, MappingReader& root,
                   const std::filesystem::path& directory, Report& report, Owner& owner,
                   Sources& sources,
                   const std::map<std::string, std::filesystem::path>* secrets = nullptr) {
  std::string_view open;  // the section
  std::optional<MappingReader> section;
  for (const Setting<Owner>& setting : table) {
    const SplitPath split = split_path(setting.path);
    if (split.section != open) {
      if (section) section->finish();
      section.reset();
      open = split.section;
      const YamlNode* const node =
          open.empty() ? nullptr : root.find(open.substr(0, open.size() - 1));
      if (node != nullptr) section.emplace(*node, std::string(open), report);
    }
    if (!open.empty() && !section) continue;
    MappingReader& reader = section ? *section : root;
    setting.read(owner, {reader, split.key, directory, report, secrets});
    if (const YamlNode* const node = reader.look(split.key); node != nullptr) {
      note_source(sources, setting.path, *node, report.file());
    }
  }
  if (section) section->finish();
}

// Adds the paths under which two values of a setting differ. For mappings these are the paths of
// the topmost entries. Equal numbers in different forms (1, 1.0) differ: a plugin may distinguish
// them.
void add_changes(const std::string& path, const Json& before, const Json& after,
                 std::vector<std::string>& paths);

// The settings whose values differ, as files spell them: "limits.max_sql", "options.start".
template <class Owner>
std::vector<std::string> changed_settings(const Settings<Owner>& table, const Owner& before,
                                          const Owner& after) {
  std::vector<std::string> paths;
  for (const Setting<Owner>& setting : table) {
    add_changes(setting.path, setting.value(before), setting.value(after), paths);
  }
  return paths;
}

// A value as text for people: "4MiB", "1000", ["a"].
[[nodiscard]] std::string shown_value(const Json& value);

// A line of the reference in config/README.md.
[[nodiscard]] std::string reference_line(std::string_view path, std::string_view kind,
                                         std::string_view default_words, std::string_view bounds,
                                         std::string_view meaning);
inline constexpr std::string_view kReferenceHead =
    "| key | kind | default | from, to | meaning |\n|---|---|---|---|---|\n";

template <class Owner>
std::string reference(const Settings<Owner>& table) {
  std::string text;
  const Owner defaults;
  for (const Setting<Owner>& setting : table) {
    const std::string words = setting.default_words.empty()
                                  ? '`' + shown_value(setting.value(defaults)) + '`'
                                  : setting.default_words;
    text += reference_line(setting.path, setting.kind, words, setting.bounds, setting.meaning);
  }
  return text;
}

// A setting with its value in use.
struct EffectiveSetting {
  std::string path;
  Json value;  // null if it may be secret
  Source source;
  bool is_secret = false;
};

// Adds `setting`. For a mapping that may be secret, adds one row for each entry.
void add_effective(EffectiveSetting setting, const Sources& sources,
                   std::vector<EffectiveSetting>& settings);

template <class Owner>
std::vector<EffectiveSetting> effective_settings(const Settings<Owner>& table, const Owner& owner,
                                                 const Sources& sources) {
  std::vector<EffectiveSetting> settings;
  for (const Setting<Owner>& setting : table) {
    add_effective({.path = setting.path,
                   .value = setting.value(owner),
                   .source = {},
                   .is_secret = setting.is_secret},
                  sources, settings);
  }
  return settings;
}

}  // namespace hearth::config
