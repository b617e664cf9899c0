// JSON: the writer, the bounded parser, typed reading.

#include "fields.hpp"

#include <hearth/fields.hpp>
#include <hearth/hash.hpp>
#include <hearth/url.hpp>
#include <hearth/words.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using hearth::append_json_text;
using hearth::find_word;
using hearth::Json;
using hearth::parse_json;
using hearth::read_json;
using hearth::read_options;
using hearth::stable_hash;
using hearth::to_text;
using hearth::word_of;

struct Point {
  int x = 1;
  std::optional<double> y;
  HEARTH_FIELDS(x, y)
};

struct Shape {
  std::string name = "none";
  std::vector<Point> points;
  HEARTH_FIELDS(name, points)
};

template <class Read>
std::string error_of(const Read& read) {
  const Refusal refusal = refusal_of(read);
  EXPECT_EQ(refusal.code, HEARTH_E_INVALID);
  return refusal.text;
}

TEST(JsonTest, WritesWhatTheParserReadsBack) {
  const std::string text =
      R"({"a":[1,-2,2.5,true,false,null,"x"],"b":{},"c":[],"d":"\"\\\n\t\u0001é"})";
  const Json value = parse_json(text);
  EXPECT_EQ(to_text(value), text);
  EXPECT_EQ(to_text(std::numeric_limits<std::uint64_t>::max()), "18446744073709551615");
  EXPECT_EQ(to_text(std::numeric_limits<std::int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(to_text(0.1), "0.1");
}

TEST(JsonTest, WritesNullForWhatJsonCannotSay) {
  EXPECT_EQ(to_text(std::numeric_limits<double>::infinity()), "null");
  EXPECT_EQ(to_text(std::numeric_limits<double>::quiet_NaN()), "null");
}

TEST(JsonTest, RefusesTextThatIsNoJsonAndSaysWhere) {
  EXPECT_EQ(error_of([] { return parse_json("[1,"); }), "not valid JSON, at byte 4");
  EXPECT_EQ(error_of([] { return parse_json("[1e999]"); }),
            "not valid JSON: a number is too large");
  EXPECT_NE(error_of([] { return parse_json(""); }), "accepted");
  EXPECT_NE(error_of([] { return parse_json("\"\xff\""); }), "accepted");
}

TEST(JsonTest, BoundsTheDepthOfWhatItReads) {
  const auto nested = [](int depth) {
    return std::string(static_cast<std::size_t>(depth), '[') +
           std::string(static_cast<std::size_t>(depth), ']');
  };
  EXPECT_NO_THROW(static_cast<void>(parse_json(nested(hearth::kMaxJsonDepth))));
  EXPECT_EQ(error_of([&] { return parse_json(nested(hearth::kMaxJsonDepth + 1)); }),
            "JSON is nested too deeply");
  EXPECT_EQ(error_of([&] { return parse_json(nested(1'000'000)); }), "JSON is nested too deeply");
  EXPECT_NO_THROW(static_cast<void>(parse_json("\"" + std::string(1000, '[') + "\\\"[\"")));
}

TEST(JsonTest, AMissingKeyOfAConstValueIsAnException) {
  const Json value = {{"a", 1}};
  EXPECT_THROW(static_cast<void>(value["b"]), std::exception);
}

TEST(JsonTest, IntegersAreCheckedForKindAndRange) {
  EXPECT_EQ(read_json<int>(Json(2.0), "n"), 2);
  EXPECT_EQ(error_of([] { return read_json<int>(Json(2.5), "n"); }), "n: expected integer");
  EXPECT_EQ(error_of([] { return read_json<int>(Json("2"), "n"); }), "n: expected integer");
  EXPECT_EQ(error_of([] { return read_json<std::uint8_t>(Json(256), "n"); }),
            "n: integer out of range");
  EXPECT_EQ(error_of([] { return read_json<unsigned>(Json(-1), "n"); }), "n: integer out of range");
  EXPECT_EQ(error_of([] { return read_json<std::int64_t>(Json(1e300), "n"); }),
            "n: expected integer");
  EXPECT_EQ(error_of([] {
              return read_json<std::int64_t>(Json(std::numeric_limits<std::uint64_t>::max()), "n");
            }),
            "n: integer out of range");
}

TEST(JsonTest, ErrorsNameThePlaceInside) {
  EXPECT_EQ(error_of([] {
              return read_json<Shape>(parse_json(R"({"points":[{"x":1},{"x":"a"}]})"), "shape");
            }),
            "shape.points[1].x: expected integer");
  EXPECT_EQ(error_of([] { return read_json<Shape>(parse_json(R"({"name":1})"), "shape"); }),
            "shape.name: expected string");
  EXPECT_EQ(error_of([] { return read_json<std::vector<bool>>(parse_json("[true,1]"), "list"); }),
            "list[1]: expected boolean");
  EXPECT_EQ(error_of([] { return read_json<Shape>(Json(1), "shape"); }), "shape: expected object");
}

TEST(JsonTest, MissingFieldsKeepTheirDefaultsAndOthersAreIgnored) {
  const auto shape =
      read_json<Shape>(parse_json(R"({"points":[{"y":2.5},{"y":null}],"more":1})"), "shape");
  EXPECT_EQ(shape.name, "none");
  ASSERT_EQ(shape.points.size(), 2U);
  EXPECT_EQ(shape.points[0].x, 1);
  EXPECT_EQ(shape.points[0].y, 2.5);
  EXPECT_EQ(shape.points[1].y, std::nullopt);
}

TEST(JsonTest, StructsBecomeJsonAndComeBack) {
  Shape shape;
  shape.points.push_back({3, 4.5});
  shape.points.push_back({5, std::nullopt});
  const Json json = shape;
  EXPECT_EQ(to_text(json), R"({"name":"none","points":[{"x":3,"y":4.5},{"x":5}]})");
  EXPECT_EQ(json.get<Shape>().points.at(1).x, 5);
}

TEST(JsonTest, OptionsRefuseUnknownKeys) {
  EXPECT_EQ(read_options<Point>(parse_json(R"({"x":4})")).x, 4);
  EXPECT_EQ(error_of([] { return read_options<Point>(parse_json(R"({"z":4})")); }),
            "option z: unknown; known are x, y");
  EXPECT_EQ(error_of([] { return read_options<Point>(parse_json(R"({"x":"a"})")); }),
            "option x: expected integer");
  EXPECT_EQ(error_of([] { return read_options<Point>(Json::array()); }),
            "options: expected object");
  EXPECT_EQ(read_options<Point>(parse_json(R"({"x":4})"), "chat").x, 4);
  EXPECT_EQ(error_of([] { return read_options<Point>(parse_json(R"({"z":4})"), "chat"); }),
            "chat.z: unknown; known are x, y");
}

TEST(JsonTest, ATextIsAppendedAsAJsonString) {
  std::string out = "[";
  append_json_text(out, "a\"\n\x01");
  EXPECT_EQ(out, R"(["a\"\n\u0001")");
}

TEST(WordsTest, AnUnknownWordOrValueIsTheFirst) {
  enum class Size : std::uint8_t { kSmall, kLarge, kHuge };
  constexpr std::array<std::pair<Size, std::string_view>, 2> kSizes = {
      {{Size::kSmall, "small"}, {Size::kLarge, "large"}}};
  EXPECT_EQ(word_of(kSizes, Size::kLarge), "large");
  EXPECT_EQ(word_of(kSizes, Size::kHuge), "small");
  EXPECT_EQ(find_word<Size>(kSizes, "large"), Size::kLarge);
  EXPECT_EQ(find_word<Size>(kSizes, "huge"), Size::kSmall);
}

TEST(HashTest, IsTheSameInEachBuild) {
  EXPECT_EQ(stable_hash(""), 0xcbf29ce484222325U);
  EXPECT_EQ(stable_hash("a"), 0xaf63dc4c8601ec8cU);
}

TEST(UrlTest, FindsDecodedValuesInAQuery) {
  const std::string target = "/agents/a/b?x=1&y=a%20b+c&empty&%7a=last&x=2&bad=%4";
  EXPECT_EQ(hearth::url_query(target, "x"), "1");
  EXPECT_EQ(hearth::url_query(target, "y"), "a b c");
  EXPECT_EQ(hearth::url_query(target, "empty"), "");
  EXPECT_EQ(hearth::url_query(target, "z"), "last");
  EXPECT_EQ(hearth::url_query(target, "bad"), "%4");
  EXPECT_EQ(hearth::url_query(target, "no"), std::nullopt);
  EXPECT_EQ(hearth::url_query("/agents/a/b", "x"), std::nullopt);
  EXPECT_EQ(hearth::url_path(target), "/agents/a/b");
}

TEST(JsonTest, HalfACharacterBecomesTheReplacementCharacter) {
  EXPECT_EQ(parse_json(R"(["\ud83d","a\uDD25b","\ud83d\udd25","\\ud83d"])"),
            Json({"\xEF\xBF\xBD",
                  "a\xEF\xBF\xBD"
                  "b",
                  "\xF0\x9F\x94\xA5", "\\ud83d"}));
}

}  // namespace
