#pragma once
// The types of options that are numbers and times. They are an int and std::chrono::milliseconds to
// whoever reads them; a value of another kind does not compile, and the compiler says what to write
// instead of which overloads there are.

#include <hearth/error.hpp>

#include <chrono>
#include <concepts>
#include <type_traits>
#include <utility>

namespace hearth {

// .max_retries = 3
// Failure   Error(INVALID): an int64_t, say, that is none of the option's numbers.
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
    // Neither truth values nor characters.
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

namespace detail {

// An overload for a number, where a time is taken, calls it.
template <class Number>
constexpr void need_unit() {
  static_assert(!std::integral<Number>,
                "a time has a unit: write std::chrono::seconds(60) or, with std::chrono_literals, "
                "60s or 10min");
}

}  // namespace detail
}  // namespace hearth
