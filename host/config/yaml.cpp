#include "config/yaml.hpp"

#include "base/escape.hpp"
#include "base/utf8.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

namespace hearth::config {
namespace {

Position position_of(const YAML::Mark& mark) {
  return {.line = mark.line + 1, .column = mark.column + 1};
}

YamlNode node_of(YamlNode::Kind kind, Position at) {
  YamlNode node;
  node.kind = kind;
  node.at = at;
  return node;
}

// Builds the tree from the parser's events, so that limits hold during parsing and every value has
// its place. After it has given up, it ignores the rest of the text.
class TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(Report& report) : report_(report) {}

  void OnDocumentStart(const YAML::Mark& mark) override { start_ = position_of(mark); }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(node_of(YamlNode::Kind::kNull, position_of(mark)), mark, "", anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    refuse(position_of(mark), "aliases (*name) are not supported; write the value again");
    complete(node_of(YamlNode::Kind::kRefused, position_of(mark)));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    YamlNode node = node_of(YamlNode::Kind::kScalar, position_of(mark));
    node.text = value;
    node.is_quoted = tag == "!";  // yaml-cpp marks quoted texts and blocks so
    add(std::move(node), mark, tag, anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::kList, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::kMapping, mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

  [[nodiscard]] Position start() const { return start_; }
  [[nodiscard]] bool gave_up() const { return gave_up_; }
  [[nodiscard]] YamlNode take() { return std::move(root_); }

 private:
  // A key whose value has not come yet.
  struct Key {
    std::string text;
    Position at;
    bool usable = false;
  };
  // A list or mapping that is still open.
  struct Frame {
    YamlNode node;
    std::optional<Key> key;
    std::map<std::string, Position, std::less<>> seen;
  };

  void refuse(Position at, std::string message) {
    if (!gave_up_) report_.add(at, std::move(message));
  }

  // True: the node is allowed. Otherwise reports the mistake.
  bool check(Position at, const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != 0) {
      refuse(at, "anchors (&name) are not supported; write the value where it is needed");
      return false;
    }
    if (!tag.empty() && tag != "?" && tag != "!") {
      // Messages repeat neither the tag nor the name of an alias: it may be a secret without
      // quotes.
      refuse(at, "tags (!name) are not supported; quote a value that is text");
      return false;
    }
    return true;
  }

  void add(YamlNode node, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (!check(position_of(mark), tag, anchor)) node.kind = YamlNode::Kind::kRefused;
    complete(std::move(node));
  }

  void open(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag,
            YAML::anchor_t anchor) {
    const Position at = position_of(mark);
    if (gave_up_) return;
    if (frames_.size() >= static_cast<std::size_t>(kMaxYamlDepth)) {
      refuse(at, "nested deeper than " + std::to_string(kMaxYamlDepth) + " levels");
      gave_up_ = true;
      return;
    }
    // A mapping with an anchor is still read, so that its mistakes are reported too.
    check(at, tag, anchor);
    frames_.push_back({.node = node_of(kind, at), .key = {}, .seen = {}});
  }

  void close() {
    if (gave_up_) return;
    YamlNode node = std::move(frames_.back().node);
    frames_.pop_back();
    complete(std::move(node));
  }

  // A node is complete. It belongs to the innermost open list or mapping, as a value or as a key.
  void complete(YamlNode node) {
    if (gave_up_) return;
    if (frames_.empty()) {
      root_ = std::move(node);
      return;
    }
    Frame& frame = frames_.back();
    if (frame.node.kind == YamlNode::Kind::kList) {
      frame.node.items.push_back(std::move(node));
    } else if (!frame.key) {
      begin_entry(frame, std::move(node));
    } else {
      end_entry(frame, std::move(node));
    }
  }

  void begin_entry(Frame& frame, YamlNode key) {
    Key next{.text = std::move(key.text), .at = key.at, .usable = false};
    if (key.kind == YamlNode::Kind::kScalar) {
      const auto [earlier, is_new] = frame.seen.try_emplace(next.text, next.at);
      next.usable = is_new;
      if (!is_new) {
        refuse(next.at, "the key " + quote_text(next.text) + " already stands in line " +
                            std::to_string(earlier->second.line));
      }
    } else if (key.kind != YamlNode::Kind::kRefused) {
      refuse(next.at, "expected a key, found " + describe(key));
    }
    frame.key = std::move(next);
  }

  static void end_entry(Frame& frame, YamlNode value) {
    Key key = std::exchange(frame.key, std::nullopt).value_or(Key{});
    if (!key.usable) return;
    // For a missing value the parser gives the place of the next token.
    if (value.kind == YamlNode::Kind::kNull) value.at = key.at;
    frame.node.entries.push_back(
        {.key = std::move(key.text), .at = key.at, .value = std::move(value)});
  }

  Report& report_;
  Position start_;
  YamlNode root_;
  std::vector<Frame> frames_;
  bool gave_up_ = false;
};

Position position_in(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return {.line = 1 + static_cast<int>(std::ranges::count(before, '\n')),
          .column = 1 + static_cast<int>(offset - line_start)};
}

// Refuses text that is not UTF-8. yaml-cpp would also guess UTF-16 and UTF-32 from the first bytes.
bool is_text(std::string_view text, Report& report) {
  if (const std::size_t valid = valid_utf8_prefix(text); valid < text.size()) {
    report.add(position_in(text, valid), "not UTF-8 text");
    return false;
  }
  const auto is_control = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t' && c != '\n' && c != '\r') || byte == 0x7F;
  };
  if (const auto found = std::ranges::find_if(text, is_control); found != text.end()) {
    report.add(position_in(text, static_cast<std::size_t>(found - text.begin())),
               "a control character, which YAML does not allow");
    return false;
  }
  return true;
}

// yaml-cpp 0.7 accepts the end of the text as the end of a quoted string, but not the marker that
// ends a document.
std::string with_end_marker(std::string_view text) {
  std::string marked(text);
  if (!marked.empty() && marked.back() != '\n') marked += '\n';
  marked += "...\n";
  return marked;
}

// The parser's message without the text that it has found, which may be secret.
std::string kind_of(const std::string& message) {
  if (message.starts_with(YAML::ErrorMsg::UNKNOWN_ANCHOR))
    return "aliases (*name) are not supported; write the value again";
  return message.substr(0, message.find(": "));
}

}  // namespace

std::optional<YamlNode> parse_yaml(std::string_view text, Report& report) {
  if (!is_text(text, report)) return std::nullopt;
  TreeBuilder builder(report);
  try {
    std::istringstream stream(with_end_marker(text));
    YAML::Parser parser(stream);
    parser.HandleNextDocument(builder);
    if (builder.gave_up()) return std::nullopt;
    Report ignored("");
    TreeBuilder second(ignored);
    if (parser.HandleNextDocument(second)) {
      report.add(second.start(), "a second YAML document; one file is one document");
      return std::nullopt;
    }
    return builder.take();
  } catch (const YAML::Exception& error) {
    if (!builder.gave_up()) {
      std::string message = "not valid YAML: ";
      const bool open_quote = error.msg == YAML::ErrorMsg::DOC_IN_SCALAR;
      append_escaped(message, open_quote ? "a string has no closing quote" : kind_of(error.msg),
                     EscapeStyle::kHuman);
      report.add(position_of(error.mark), std::move(message));
    }
    return std::nullopt;
  }
}

std::string describe(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull: return "nothing";
    case YamlNode::Kind::kScalar: return quote_text(node.text);
    case YamlNode::Kind::kList: return "a list";
    case YamlNode::Kind::kMapping: return "a mapping";
    case YamlNode::Kind::kRefused: return "something refused";
  }
  return "something else";
}

}  // namespace hearth::config
