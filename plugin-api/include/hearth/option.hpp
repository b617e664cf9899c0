#pragma once
// The types of options. Code reads them as an int, std::chrono::milliseconds, a bool and a
// std::optional<std::string>. A value of another kind does not compile, and the compiler's message
// says what to write instead of listing overloads.

#include <hearth/error.hpp>

#include <chrono>
#include <concepts>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace hearth {

// .max_retries = 3
// Failure   Error(INVALID) for a number that does not fit, such as an int64_t out of range.
template <std::integral Number>
class NumberOption {
 public:
  template <class Given>
  constexpr NumberOption(Given given)  // NOLINT(google-explicit-constructor): written as a number
      : value_(number_of(given)) {}
  constexpr operator Number() const noexcept {  // NOLINT(google-explicit-constructor): read as one
    return value_;
  }
  template <class Json>
  friend void to_json(Json& json, const NumberOption& option) {
    json = option.value_;
  }

 private:
  template <class Given>
  static constexpr Number number_of(const Given& given) {
    // No truth values, no characters.
    constexpr bool kFits =
        std::integral<Given> && !std::same_as<Given, bool> && !std::same_as<Given, char>;
    static_assert(kFits, "this option is a whole number: write 3, without quotes or a unit");
    if constexpr (kFits) {
      if (!std::in_range<Number>(given))
        throw Error(HEARTH_E_INVALID, "an option is a number that is too large, or below 0");
      return static_cast<Number>(given);
    } else {
      return {};
    }
  }

  Number value_;
};

// .retry_delay = 5s
class TimeOption : public std::chrono::milliseconds {
 public:
  template <class Given>
  // NOLINTNEXTLINE(google-explicit-constructor): written as a time
  constexpr TimeOption(const Given& given) : std::chrono::milliseconds(time_of(given)) {}

 private:
  template <class Given>
  static constexpr std::chrono::milliseconds time_of(const Given& given) {
    constexpr bool kFits = std::is_convertible_v<Given, std::chrono::milliseconds>;
    static_assert(kFits,
                  "this option is a time: write std::chrono::seconds(5) or, with "
                  "std::chrono_literals, 5s or 100ms");
    if constexpr (kFits)
      return given;
    else
      return {};
  }
};

// .keep_record = true
class FlagOption {
 public:
  template <class Given>
  constexpr FlagOption(const Given& given)  // NOLINT(google-explicit-constructor): as a bool
      : value_(flag_of(given)) {}
  constexpr operator bool() const noexcept {  // NOLINT(google-explicit-constructor): read as one
    return value_;
  }

 private:
  template <class Given>
  static constexpr bool flag_of(const Given& given) {
    // No numbers, no pointers: a text would be true.
    constexpr bool kFits = std::same_as<Given, bool> ||
                           (std::is_class_v<Given> && std::is_convertible_v<const Given&, bool>);
    static_assert(kFits, "this option is true or false: write true, without quotes");
    if constexpr (kFits)
      return given;
    else
      return {};
  }

  bool value_;
};

// .key = "order 1"
class TextOption : public std::optional<std::string> {
 public:
  template <class Given>
  // NOLINTNEXTLINE(google-explicit-constructor): written as a text
  TextOption(const Given& given) : std::optional<std::string>(text_of(given)) {}

 private:
  template <class Given>
  static std::optional<std::string> text_of(const Given& given) {
    constexpr bool kFits = std::is_convertible_v<const Given&, std::optional<std::string>>;
    static_assert(kFits,
                  "this option is a text: write \"order 1\", or std::to_string(n) for a number");
    if constexpr (kFits)
      return given;
    else
      return {};
  }
};

namespace detail {

// Where a time is taken, an overload for a number calls it.
template <class Number>
constexpr void need_unit() {
  static_assert(!std::integral<Number>,
                "a time has a unit: write std::chrono::seconds(60) or, with std::chrono_literals, "
                "60s or 10min");
}

}  // namespace detail
}  // namespace hearth
