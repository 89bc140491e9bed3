// What HTML reports share: escaping, and a page that needs nothing beside itself.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace headwise::cli {

/// Text that HTML shows as it is, in an element or in a quoted attribute. Control characters, which
/// no page may hold, become U+FFFD.
inline std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool control = static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t';
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '\'')
      out += "&#39;";
    else if (control || c == '\x7f')
      out += "\uFFFD";
    else
      out += c;
  }
  return out;
}

/// The look of every report, in light and in dark: text, tables, code, drawings that may be wider
/// than the window.
inline constexpr std::string_view kStyle = R"css(
:root { color-scheme: light dark; --back: #fff; --text: #1b1f24; --quiet: #57606a; --line: #d0d7de;
  --panel: #f6f8fa; --pass: #116329; --fail: #b3141d; --unsure: #7d4e00; --mark: #0550ae; }
@media (prefers-color-scheme: dark) {
  :root { --back: #14181d; --text: #e6edf3; --quiet: #9ba6b2; --line: #363d46; --panel: #1d232a;
    --pass: #57c46b; --fail: #ff8080; --unsure: #e5b04a; --mark: #79b8ff; } }
* { box-sizing: border-box; }
body { background: var(--back); color: var(--text); font: 15px/1.5 system-ui, sans-serif;
  max-width: 72rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.5rem; margin: .5rem 0; } h2 { font-size: 1.2rem; margin: 2rem 0 .5rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 .4rem; overflow-wrap: anywhere; }
h1, h2 { overflow-wrap: anywhere; } a { color: var(--mark); }
p { margin: .4rem 0; max-width: 50rem; } .quiet { color: var(--quiet); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .7rem .2rem 0; text-align: left; white-space: nowrap;
  border-bottom: 1px solid var(--line); vertical-align: top; }
th { font-weight: 600; color: var(--quiet); } .number { text-align: right; }
pre { background: var(--panel); border: 1px solid var(--line); border-radius: 4px; padding: .7rem;
  font: 13px/1.45 ui-monospace, monospace; overflow-x: auto; }
svg text { font: 11px system-ui, sans-serif; fill: var(--text); }
svg .line { stroke: var(--line); }
)css";

/// A whole page. `style` is added to kStyle; `body` is HTML.
inline std::string html_page(std::string_view title, std::string_view style,
                             std::string_view body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{}</title>\n<style>{}{}</style>\n</head>\n<body>\n{}</body>\n</html>\n",
      escaped(title), kStyle, style, body);
}

}  // namespace headwise::cli
