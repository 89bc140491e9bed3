// JSON as it is read: strictly, within limits, with errors in our words. The one place that calls
// the JSON library's parser.
#pragma once

#include <concepts>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace headwise {

/// What a JSON text may be at most. A smaller limit of bytes belongs to whoever knows the file.
struct JsonLimits {
  std::size_t bytes = std::size_t{1} << 26;
  int depth = 64;  ///< objects and lists inside each other
};

constexpr std::size_t kMostToken = std::size_t{1} << 24;  ///< bytes of one text or number

/// Hears a text's values one by one. It may throw to stop; each of its functions returns true.
using JsonEvents = nlohmann::json_sax<nlohmann::json>;

/// Reads all of `text` to `events`. Throws DataError, "<where>: <what is wrong>" with line and
/// column, for what is not JSON (RFC 8259), has a NUL or too long a text, or goes on after its end.
/// Other limits and keys that stand twice are the events' own matter.
void read_json(std::string_view text, const std::string& where, JsonEvents& events);

/// The value of `text`. Throws DataError as read_json() does, for more than the limits, and for a
/// key that stands twice in one object, at any depth, naming it.
nlohmann::json parse_json(std::string_view text, const std::string& where,
                          const JsonLimits& limits = {});

/// The text of a value in one line, or indented. Bytes that are not UTF-8 become U+FFFD: it never
/// throws.
std::string json_text(const nlohmann::json& x, int indent = -1);

/// Whether all strings and keys of a value are UTF-8, so that json_text() loses nothing.
bool is_utf8(const nlohmann::json& x);

/// A value of a file, with its path in it for errors: "config.json: 'model.layers': expected ...".
/// Refers to the value it was made of. Everything throws DataError.
class JsonView {
 public:
  JsonView(const nlohmann::json& value, std::string where, std::string path = "")
      : value_(&value), where_(std::move(where)), path_(std::move(path)) {}

  [[nodiscard]] const nlohmann::json& value() const { return *value_; }
  /// The member of an object. Throws when this is no object or has no such member.
  [[nodiscard]] JsonView operator[](const std::string& key) const;
  /// Whether it has that member. Throws when this is no object.
  [[nodiscard]] bool has(const std::string& key) const;
  /// Throws, naming it, for a member that is none of `known`.
  void require_known(const std::vector<std::string>& known) const;
  /// The elements of a list.
  [[nodiscard]] std::vector<JsonView> elements() const;

  /// The value as just that type: no fraction for a whole number, no number for a bool, nothing
  /// that does not fit.
  template <class T>
  [[nodiscard]] T as() const;

  /// "<where>: '<path>': <rule>" as a DataError.
  [[noreturn]] void fail(const std::string& rule) const;

 private:
  [[noreturn]] void expected(const char* what) const;

  const nlohmann::json* value_;
  std::string where_, path_;
};

template <>
bool JsonView::as<bool>() const;
template <>
std::string JsonView::as<std::string>() const;
template <>
double JsonView::as<double>() const;
template <>
std::int32_t JsonView::as<std::int32_t>() const;
template <>
std::int64_t JsonView::as<std::int64_t>() const;
template <>
std::uint64_t JsonView::as<std::uint64_t>() const;

}  // namespace headwise
