#include "core/json.hpp"

#include <algorithm>

#include "core/utf8.hpp"
#include "headwise/core/error.hpp"
#include "headwise/core/nearest.hpp"
#include "headwise/core/printable.hpp"

namespace headwise {
namespace {

using nlohmann::json;

bool is_utf8(const std::string& text) {
  std::size_t at = 0;
  while (const auto c = code_point_at(text, at)) at += c->bytes;
  return at == text.size();
}

/// "line 3, column 7" of a byte.
std::string line_and_column(std::string_view text, std::size_t at) {
  const std::string_view before = text.substr(0, std::min(at, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t start = before.rfind('\n') + 1;  // npos + 1 is 0
  return fmt::format("line {}, column {}", line, before.size() - start + 1);
}

/// Where the longest text or number begins, and its bytes: the parser holds it several times.
std::pair<std::size_t, std::size_t> longest_token(std::string_view text) {
  std::pair<std::size_t, std::size_t> longest;
  bool in_text = false;
  for (std::size_t i = 0, start = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ' ';
    if (in_text && c == '\\') ++i;
    if (in_text ? c != '"' && i < text.size()
                : std::string_view("\",:[]{} \n\r\t").find(c) == std::string_view::npos)
      continue;
    longest =
        std::max(longest, {start, i - start}, [](auto a, auto b) { return a.second < b.second; });
    in_text = !in_text && c == '"';
    start = i + 1;
  }
  return longest;
}

/// Passes every event on; a parse error becomes ours.
class Strict : public JsonEvents {
 public:
  Strict(std::string_view text, const std::string& where, JsonEvents& to)
      : text_(text), where_(where), to_(to) {}

  bool null() override { return to_.null(); }
  bool boolean(bool x) override { return to_.boolean(x); }
  bool number_integer(json::number_integer_t x) override { return to_.number_integer(x); }
  bool number_unsigned(json::number_unsigned_t x) override { return to_.number_unsigned(x); }
  bool number_float(json::number_float_t x, const std::string& s) override {
    return to_.number_float(x, s);
  }
  bool string(std::string& x) override { return to_.string(x); }
  bool binary(json::binary_t& x) override { return to_.binary(x); }
  bool start_object(std::size_t n) override { return to_.start_object(n); }
  bool key(std::string& x) override { return to_.key(x); }
  bool end_object() override { return to_.end_object(); }
  bool start_array(std::size_t n) override { return to_.start_array(n); }
  bool end_array() override { return to_.end_array(); }

  /// `position` bytes were read, the last of them is the one that does not fit.
  bool parse_error(std::size_t position, const std::string& token,
                   const json::exception& e) override {
    const std::size_t at = position == 0 ? 0 : position - 1;
    const std::string_view what = e.what();
    const auto c = code_point_at(text_, at);
    const bool ended = at >= text_.size();
    const bool overflow = e.id == 406;  // a number that no double holds
    const bool utf8 = what.find("UTF-8") != what.npos;
    const std::string reason =
        ended      ? "it ends too early"
        : overflow ? fmt::format("{} is too large a number", printable(token))
        : utf8     ? "a text is not UTF-8"
                   : fmt::format("unexpected '{}'", printable(text_.substr(at, c ? c->bytes : 1)));
    throw DataError(fmt::format("{}: not JSON: {}: {}", printable_path(where_),
                                line_and_column(text_, at), reason));
  }

 private:
  std::string_view text_;
  const std::string& where_;
  JsonEvents& to_;
};

/// Makes a value of the events.
class Builder : public JsonEvents {
 public:
  Builder(const std::string& where, int depth) : where_(where), depth_(depth) {}
  json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool x) override { return add(x); }
  bool number_integer(json::number_integer_t x) override { return add(x); }
  bool number_unsigned(json::number_unsigned_t x) override { return add(x); }
  bool number_float(json::number_float_t x, const std::string&) override { return add(x); }
  bool string(std::string& x) override { return add(std::move(x)); }
  bool binary(json::binary_t&) override { return false; }  // no text has it
  bool start_object(std::size_t) override { return open(json::object()); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t, const std::string&, const json::exception&) override {
    return false;  // Strict's
  }

  bool key(std::string& x) override {
    keys_.back() = x;
    if (!open_.back()->contains(x)) return true;
    std::string path;
    for (const std::string& name : keys_)
      if (!name.empty()) path += (path.empty() ? "" : ".") + name;
    throw DataError(fmt::format("{}: '{}' stands twice", printable_path(where_), printable(path)));
  }

 private:
  json* place(json&& x) {
    if (open_.empty()) {
      root_ = std::move(x);
      return &root_;
    }
    json& to = *open_.back();
    if (to.is_array()) return &to.emplace_back(std::move(x));
    return &(to[keys_.back()] = std::move(x));
  }
  bool add(json x) {
    place(std::move(x));
    return true;
  }
  bool open(json&& x) {
    require<DataError>(std::ssize(open_) < depth_, "{}: more than {} brackets are open at once",
                       printable_path(where_), depth_);
    open_.push_back(place(std::move(x)));
    keys_.emplace_back();
    return true;
  }
  bool close() {
    open_.pop_back();
    keys_.pop_back();
    return true;
  }

  const std::string& where_;
  int depth_;
  json root_;
  std::vector<json*> open_;        // a parent does not move while its child is open
  std::vector<std::string> keys_;  // of the member at hand, for each of them
};

}  // namespace

void read_json(std::string_view text, const std::string& where, JsonEvents& events) {
  // The parser takes a NUL for the end of the text.
  const std::size_t nul = text.find('\0');
  require<DataError>(nul == text.npos, "{}: not JSON: {}: a NUL byte", printable_path(where),
                     line_and_column(text, nul));
  const auto [at, bytes] = longest_token(text);
  require<DataError>(bytes <= kMostToken,
                     "{}: {}: a text or number of {} bytes, at most {} are read",
                     printable_path(where), line_and_column(text, at), bytes, kMostToken);
  Strict strict(text, where, events);
  json::sax_parse(text.begin(), text.end(), static_cast<JsonEvents*>(&strict));
}

json parse_json(std::string_view text, const std::string& where, const JsonLimits& limits) {
  require<DataError>(text.size() <= limits.bytes, "{}: has {} bytes of JSON, at most {} are read",
                     printable_path(where), text.size(), limits.bytes);
  Builder builder(where, limits.depth);
  read_json(text, where, builder);
  return builder.take();
}

std::string json_text(const json& x, int indent) {
  return x.dump(indent, ' ', false, json::error_handler_t::replace);
}

bool is_utf8(const json& x) {
  if (x.is_string()) return is_utf8(x.get_ref<const std::string&>());
  if (x.is_array())
    return std::all_of(x.begin(), x.end(), [](const json& e) { return is_utf8(e); });
  if (!x.is_object()) return true;
  const auto& members = x.get_ref<const json::object_t&>();
  return std::all_of(members.begin(), members.end(),
                     [](const auto& m) { return is_utf8(m.first) && is_utf8(m.second); });
}

void JsonView::fail(const std::string& rule) const {
  throw DataError(
      path_.empty() ? fmt::format("{}: {}", printable_path(where_), rule)
                    : fmt::format("{}: '{}': {}", printable_path(where_), printable(path_), rule));
}

void JsonView::expected(const char* what) const {
  const json& x = *value_;
  const std::string got = x.is_object()  ? "an object"
                          : x.is_array() ? fmt::format("a list of {}", x.size())
                                         : printable(json_text(x));
  fail(fmt::format("expected {}, got {}", what, got));
}

bool JsonView::has(const std::string& key) const {
  if (!value_->is_object()) expected("an object");
  return value_->contains(key);
}

JsonView JsonView::operator[](const std::string& key) const {
  if (!has(key)) fail(fmt::format("has no '{}'", printable(key)));
  return {value_->at(key), where_, path_.empty() ? key : path_ + "." + key};
}

void JsonView::require_known(const std::vector<std::string>& known) const {
  if (!value_->is_object()) expected("an object");
  for (const auto& [key, x] : value_->items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      fail(fmt::format("unknown key '{}'{}; known: {}", printable(key), did_you_mean(key, known),
                       fmt::join(known, ", ")));
}

std::vector<JsonView> JsonView::elements() const {
  if (!value_->is_array()) expected("a list");
  std::vector<JsonView> all;
  all.reserve(value_->size());
  for (std::size_t i = 0; i < value_->size(); ++i)
    all.emplace_back((*value_)[i], where_, fmt::format("{}[{}]", path_, i));
  return all;
}

template <>
bool JsonView::as<bool>() const {
  if (!value_->is_boolean()) expected("true or false");
  return value_->get<bool>();
}

template <>
std::string JsonView::as<std::string>() const {
  if (!value_->is_string()) expected("a text");
  return value_->get<std::string>();
}

template <>
double JsonView::as<double>() const {
  if (!value_->is_number()) expected("a number");
  return value_->get<double>();
}

// A whole number above 2^64 is a fraction to the parser.
template <>
std::uint64_t JsonView::as<std::uint64_t>() const {
  if (!value_->is_number_unsigned()) expected("a whole number from 0 to 2^64 - 1");
  return value_->get<std::uint64_t>();
}

template <>
std::int64_t JsonView::as<std::int64_t>() const {
  const bool fits = value_->is_number_integer() &&
                    (!value_->is_number_unsigned() || value_->get<std::uint64_t>() <= INT64_MAX);
  if (!fits) expected("a whole number from -2^63 to 2^63 - 1");
  return value_->get<std::int64_t>();
}

template <>
std::int32_t JsonView::as<std::int32_t>() const {
  const bool fits = value_->is_number_integer() && as<std::int64_t>() >= INT32_MIN &&
                    as<std::int64_t>() <= INT32_MAX;
  if (!fits) expected("a whole number from -2^31 to 2^31 - 1");
  return value_->get<std::int32_t>();
}

}  // namespace headwise
