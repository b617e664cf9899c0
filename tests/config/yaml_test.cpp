#include "config/yaml.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hearth::config {
namespace {

using Kind = YamlNode::Kind;

struct Parsed {
  std::optional<YamlNode> root;
  std::vector<std::string> mistakes;
};

Parsed parse(std::string_view text) {
  Report report("f");
  Parsed parsed{.root = parse_yaml(text, report), .mistakes = {}};
  for (const Diagnostic& diagnostic : report.take()) {
    parsed.mistakes.push_back(to_string(diagnostic));
  }
  return parsed;
}

std::string only_mistake(std::string_view text) {
  const auto mistakes = parse(text).mistakes;
  return mistakes.size() == 1 ? mistakes.front() : std::to_string(mistakes.size()) + " mistakes";
}

TEST(YamlTest, KeysAndValuesKnowTheirPlaces) {
  const auto root = parse("# comment\na: 1\nb:\n  c: [x, 'y']\n").root.value();
  ASSERT_EQ(root.kind, Kind::kMapping);
  ASSERT_EQ(root.entries.size(), 2U);
  const YamlEntry& a = root.entries[0];
  EXPECT_EQ(a.key, "a");
  EXPECT_EQ(a.at, (Position{2, 1}));
  EXPECT_EQ(a.value.text, "1");
  EXPECT_EQ(a.value.at, (Position{2, 4}));
  const YamlEntry& c = root.entries[1].value.entries.at(0);
  EXPECT_EQ(c.at, (Position{4, 3}));
  ASSERT_EQ(c.value.kind, Kind::kList);
  EXPECT_FALSE(c.value.items.at(0).is_quoted);
  EXPECT_TRUE(c.value.items.at(1).is_quoted);
  EXPECT_EQ(c.value.items.at(1).at, (Position{4, 10}));
}

TEST(YamlTest, NothingStandsWhereItsKeyStands) {
  const auto root = parse("a:\n\n\nb: ~\n").root.value();
  EXPECT_EQ(root.entries.at(0).value.kind, Kind::kNull);
  EXPECT_EQ(root.entries.at(0).value.at, (Position{1, 1}));
  EXPECT_EQ(root.entries.at(1).value.at, (Position{4, 1}));
}

TEST(YamlTest, QuotedWordsAndBlocksAreText) {
  const auto root = parse("a: 'null'\nb: \"~\"\nc: |\n  5\n").root.value();
  for (const YamlEntry& entry : root.entries) {
    EXPECT_EQ(entry.value.kind, Kind::kScalar) << entry.key;
    EXPECT_TRUE(entry.value.is_quoted) << entry.key;
  }
}

TEST(YamlTest, AnEmptyTextIsNothing) {
  for (const std::string_view text : {"", "\n\n", "# only a comment\n", "---\n"}) {
    const Parsed parsed = parse(text);
    ASSERT_TRUE(parsed.root) << text;
    EXPECT_EQ(parsed.root->kind, Kind::kNull) << text;
    EXPECT_TRUE(parsed.mistakes.empty()) << text;
  }
}

TEST(YamlTest, AByteOrderMarkIsSkipped) {
  const Parsed parsed = parse(
      "\xEF\xBB\xBF"
      "a: 1\n");
  ASSERT_TRUE(parsed.root);
  EXPECT_EQ(parsed.root->entries.at(0).key, "a");
  EXPECT_TRUE(parsed.mistakes.empty());
}

TEST(YamlTest, DuplicateKeysAreMistakesThatNameTheFirst) {
  EXPECT_EQ(only_mistake("a: 1\nb: 2\na: 3\n"), "f:3:1: the key \"a\" already stands in line 1");
  EXPECT_EQ(only_mistake("x: {a: 1, a: 2}\n"), "f:1:11: the key \"a\" already stands in line 1");
  EXPECT_EQ(only_mistake("a: 1\n\"a\": 2\n"), "f:2:1: the key \"a\" already stands in line 1");
  EXPECT_TRUE(parse("a: {k: 1}\nb: {k: 1}\n").mistakes.empty());
}

TEST(YamlTest, AnchorsAliasesAndTagsAreRefusedWithoutLosingTheRest) {
  const Parsed parsed = parse("a: &x 1\nb: *x\nc: !!str 5\nd: &y {e: 1}\nf: 2\n");
  ASSERT_EQ(parsed.mistakes.size(), 4U);
  EXPECT_TRUE(parsed.mistakes[0].starts_with("f:1:4: anchors")) << parsed.mistakes[0];
  EXPECT_TRUE(parsed.mistakes[1].starts_with("f:2:4: aliases")) << parsed.mistakes[1];
  EXPECT_TRUE(parsed.mistakes[2].starts_with("f:3:4: tags")) << parsed.mistakes[2];
  EXPECT_TRUE(parsed.mistakes[3].starts_with("f:4:4: anchors")) << parsed.mistakes[3];
  ASSERT_TRUE(parsed.root);
  EXPECT_EQ(parsed.root->entries.at(1).value.kind, Kind::kRefused);
  EXPECT_EQ(parsed.root->entries.at(4).value.text, "2");
}

TEST(YamlTest, ABombOfAliasesStaysSmall) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 40; ++i) {
    const std::string name = "a" + std::to_string(i);
    const std::string use = "*a" + std::to_string(i - 1);
    bomb.append(name).append(": &").append(name).append(" [").append(use);
    for (int n = 0; n < 8; ++n) bomb.append(", ").append(use);
    bomb += "]\n";
  }
  const Parsed parsed = parse(bomb);
  EXPECT_EQ(parsed.mistakes.size(), Report::kMaxDiagnostics + 1);
  ASSERT_TRUE(parsed.root);
  EXPECT_EQ(parsed.root->entries.back().value.items.size(), 9U);
}

TEST(YamlTest, DepthIsBounded) {
  const auto nested = [](int depth) {
    const auto count = static_cast<std::size_t>(depth);
    return std::string(count, '[') + std::string(count, ']');
  };
  EXPECT_TRUE(parse(nested(kMaxYamlDepth)).root);
  EXPECT_EQ(only_mistake(nested(kMaxYamlDepth + 1)), "f:1:33: nested deeper than 32 levels");
  EXPECT_FALSE(parse(nested(kMaxYamlDepth + 1)).root);
  // Deeper than the parser itself recurses.
  for (const char bracket : {'[', '{'}) {
    EXPECT_NE(only_mistake(std::string(100'000, bracket)).find("nested deeper than 32 levels"),
              std::string::npos);
  }
}

TEST(YamlTest, KeysAreScalars) {
  EXPECT_EQ(only_mistake("? [a, b]\n: 1\n"), "f:1:3: expected a key, found a list");
  EXPECT_EQ(only_mistake("~: 1\n"), "f:1:1: expected a key, found nothing");
}

TEST(YamlTest, OneFileIsOneDocument) {
  EXPECT_EQ(only_mistake("a: 1\n---\nb: 2\n"),
            "f:2:1: a second YAML document; one file is one document");
}

TEST(YamlTest, TextThatIsNoYamlHasOneMistakeAtItsPlace) {
  const Parsed parsed = parse("a: 1\nb: [1, 2\nc: 3\n");
  EXPECT_FALSE(parsed.root);
  ASSERT_EQ(parsed.mistakes.size(), 1U);
  EXPECT_NE(parsed.mistakes[0].find("not valid YAML"), std::string::npos);
  EXPECT_TRUE(only_mistake("a: 1\n\tb: 2\n").starts_with("f:2:")) << only_mistake("a: 1\n\tb: 2\n");
}

TEST(YamlTest, AnOpenQuoteIsAMistake) {
  for (const std::string_view text : {"a: \"x\n", "a: 'x\n", "a: \"x", "a: 'x\nb: 1\n"}) {
    EXPECT_TRUE(only_mistake(text).ends_with("not valid YAML: a string has no closing quote"))
        << text;
  }
}

TEST(YamlTest, ABlockKeepsItsLastLine) {
  const auto root = parse("a: |\n  one\n  two").root.value();
  EXPECT_EQ(root.entries.at(0).value.text, "one\ntwo\n");
}

TEST(YamlTest, RefusesWhatIsNoText) {
  EXPECT_EQ(only_mistake("a: 1\nb: caf\xE9\n"), "f:2:7: not UTF-8 text");
  EXPECT_EQ(only_mistake(std::string_view("a: 1\nb: \0\n", 10)),
            "f:2:4: a control character, which YAML does not allow");
  EXPECT_EQ(only_mistake("a: \x1B[2J\n"), "f:1:4: a control character, which YAML does not allow");
  // UTF-16, which the parser would guess.
  EXPECT_EQ(only_mistake(std::string_view("\xFF\xFE"
                                          "a\0",
                                          4)),
            "f:1:1: not UTF-8 text");
}

TEST(YamlTest, MessagesShowEscapesAndCutLongText) {
  const std::string mistake = only_mistake("\"a\\e\\n\": 1\n\"a\\e\\n\": 2\n");
  EXPECT_EQ(mistake, R"(f:2:1: the key "a\u001b\n" already stands in line 1)");
  const std::string key(5000, 'k');
  EXPECT_LT(only_mistake("\"" + key + "\": 1\n\"" + key + "\": 2\n").size(), 200U);
}

TEST(YamlTest, AMegabyteOfAnythingEndsSoon) {
  constexpr std::size_t kSize = 1 << 20;
  const auto repeated = [](std::string_view piece) {
    std::string text;
    while (text.size() < kSize) text += piece;
    return text;
  };
  for (const std::string_view piece : {"[", "{", "- ", "? ", "a: ", "\"", "&a ", "*a ", "- - ",
                                       "a: [\n", "!t ", "|\n", "%YAML 1.2\n---\n", "\n"}) {
    EXPECT_TRUE(parse(repeated(piece)).mistakes.size() <= Report::kMaxDiagnostics + 1) << piece;
  }
}

TEST(YamlTest, ManyKeysInOneMappingAreNoProblem) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += "k" + std::to_string(i) + ": 1\n";
  const Parsed parsed = parse(text);
  ASSERT_TRUE(parsed.root);
  EXPECT_EQ(parsed.root->entries.size(), 50'000U);
}

}  // namespace
}  // namespace hearth::config
