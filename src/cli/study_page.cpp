#include "cli/study_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cli/study_page_files.hpp"
#include "headwise/core/file.hpp"

namespace headwise::cli {
namespace {

using Json = nlohmann::json;
using Sink = std::function<void(std::string_view)>;

// Nothing may be fetched, and no text may become markup: the browser sees to both.
constexpr std::string_view kHead =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; "
    "font-src data:; "
    "script-src 'unsafe-inline'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<link rel=\"icon\" href=\"data:,\">\n"
    "<title>What each attention head does</title>\n<style>\n";
constexpr std::string_view kBody =
    "</style>\n</head>\n<body>\n<noscript><p>This page draws itself: please allow it to run its "
    "script. It fetches nothing.</p></noscript>\n<main id=\"page\"></main>\n";
constexpr std::string_view kDocumentOpen = "<script type=\"application/json\" id=\"document\">";
constexpr std::string_view kClose = "</script>\n";
constexpr std::string_view kScriptOpen = "<script>\n(() => {\n'use strict';\n";
constexpr std::string_view kScriptClose = "})();\n</script>\n</body>\n</html>\n";

std::string pattern_open(std::size_t text, study::HeadId head) {
  return fmt::format("<script type=\"text/plain\" id=\"pattern-{}-{}-{}\">", text, head.layer,
                     head.head);
}

/// JSON that may stand in a script element: ASCII without "<".
void write_json(const Json& value, const Sink& sink, int depth = 0) {
  constexpr int kSplit = 3;  // what lies deeper is small enough to be one text
  const bool object = value.is_object();
  if (depth == kSplit || !(object || value.is_array())) {
    std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
    for (std::size_t at = 0; (at = text.find('<', at)) != text.npos;)
      text.replace(at, 1, "\\u003c");
    return sink(text);
  }
  std::string_view before = object ? "{" : "[";
  for (const auto& [key, item] : value.items()) {
    sink(before);
    before = ",";
    if (object) {
      write_json(key, sink, kSplit);
      sink(":");
    }
    write_json(item, sink, depth + 1);
  }
  if (value.empty()) sink(before);
  sink(object ? "}" : "]");
}

/// 16-bit numbers, low byte first, as base64, written as they come.
class Base64 {
 public:
  explicit Base64(const Sink& sink) : sink_(sink) {}

  void add(std::uint16_t number) {
    add_byte(number & 255U);
    add_byte(number >> 8U);
  }
  void finish() {
    if (bytes_ > 0) {
      const int padding = 3 - bytes_;
      for (int i = 0; i < padding; ++i) add_byte(0);
      std::fill(text_.end() - padding, text_.end(), '=');
    }
    sink_(text_);
    text_.clear();
  }

 private:
  void add_byte(std::uint32_t byte) {
    constexpr std::string_view kDigits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    bits_ = bits_ << 8U | byte;
    if (++bytes_ < 3) return;
    for (int shift = 18; shift >= 0; shift -= 6) text_ += kDigits[bits_ >> shift & 63U];
    bits_ = 0;
    bytes_ = 0;
    if (text_.size() < 1 << 16) return;
    sink_(text_);
    text_.clear();
  }

  const Sink& sink_;
  std::string text_;
  std::uint32_t bits_ = 0;
  int bytes_ = 0;
};

/// A[i,j] as round(65535 A).
std::uint16_t as_16_bits(double a, study::HeadId head, Index i) {
  require<DataError>(std::isfinite(a), "study: the pattern of head {} is not finite at query {}",
                     study::name_of(head), i);
  return static_cast<std::uint16_t>(std::lround(65535 * std::clamp(a, 0.0, 1.0)));
}

void write_pattern(std::size_t text, study::HeadId head, Index tokens, const PatternRow& pattern,
                   const Sink& sink) {
  sink(pattern_open(text, head));
  Base64 numbers(sink);
  std::vector<double> row;
  for (Index i = 0; i < tokens; ++i) {
    row.assign(static_cast<std::size_t>(i) + 1, 0.0);
    pattern(static_cast<Index>(text), head, i, row);
    for (const double a : row) numbers.add(as_16_bits(a, head, i));
  }
  numbers.finish();
  sink(kClose);
}

Index tokens_of(const Json& text) { return static_cast<Index>(text.at("tokens").size()); }

/// The page but for the patterns, which `patterns` writes in their place.
void write_page(const Json& document, const std::function<void()>& patterns, const Sink& sink) {
  sink(kHead);
  sink(kStudyPageStyle);
  sink(kBody);
  sink(kDocumentOpen);
  write_json(document, sink);
  sink(kClose);
  patterns();
  sink(kScriptOpen);
  for (const std::string_view file : kStudyPageScripts) sink(file);
  sink(kScriptClose);
}

}  // namespace

std::uintmax_t study_page_size(const Json& document, const std::vector<study::HeadId>& heads) {
  std::uintmax_t size = 0;
  const auto patterns = [&] {
    const Json& texts = document.at("texts");
    for (std::size_t t = 0; t < texts.size(); ++t) {
      const auto n = static_cast<std::uintmax_t>(tokens_of(texts[t]));
      const std::uintmax_t bytes = n * (n + 1);  // 2 for each entry of the triangle
      for (const study::HeadId head : heads)
        size += pattern_open(t, head).size() + (bytes + 2) / 3 * 4 + kClose.size();
    }
  };
  write_page(document, patterns, [&](std::string_view part) { size += part.size(); });
  return size;
}

void check_page_size(std::uintmax_t size) {
  require<UsageError>(
      size <= kPageLimit,
      "--out: the page would have {:.0f} MB, more than the {:.0f} MB that browsers open well; show "
      "fewer heads with --layers or --heads, or fewer tokens with --range (--json and --patterns "
      "have no limit)",
      std::ceil(static_cast<double>(size) / 1e6), static_cast<double>(kPageLimit) / 1e6);
}

void write_study_page(const std::string& path, const Json& document,
                      const std::vector<study::HeadId>& heads, const PatternRow& pattern) {
  check_page_size(study_page_size(document, heads));
  AtomicFile file(path);
  const Sink sink = [&](std::string_view part) { file.write(part); };
  const auto patterns = [&] {
    const Json& texts = document.at("texts");
    for (std::size_t t = 0; t < texts.size(); ++t)
      for (const study::HeadId head : heads)
        write_pattern(t, head, tokens_of(texts[t]), pattern, sink);
  };
  write_page(document, patterns, sink);
  file.finish();
}

}  // namespace headwise::cli
