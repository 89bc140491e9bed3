// Text into values: read in full or not at all, whatever the locale says about commas.
#pragma once

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <type_traits>

namespace headwise {

/// The number that is all of `text`, or nothing: "1e-3x", "0,1", "" and " 1" are none. fmt's "{}"
/// writes the text that gives the same double back.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number x{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return x;
}

/// An enumeration that users name: names_of(E) gives its names, in order.
template <class E>
concept Named = std::is_enum_v<E> && requires {
  names_of(E{});
};

template <Named E>
std::string_view name_of(E e) {
  return names_of(e)[static_cast<std::size_t>(e)];
}

template <Named E>
std::optional<E> parse_name(std::string_view text) {
  const auto names = names_of(E{});
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) return std::nullopt;
  return static_cast<E>(found - names.begin());
}

}  // namespace headwise
