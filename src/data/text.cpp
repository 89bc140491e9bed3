#include "headwise/data/text.hpp"

#include <cstdio>

#include "headwise/core/error.hpp"
#include "headwise/core/file.hpp"

namespace headwise {
namespace {

void require_window(Index tokens, Index context) {
  require<DataError>(tokens > context,
                     "text: {} tokens, need at least {} (--context {} and the token after)", tokens,
                     context + 1, context);
}

std::string read_standard_input() {
  std::string bytes;
  for (char buffer[1 << 16];;) {
    const std::size_t n = std::fread(buffer, 1, sizeof buffer, stdin);
    bytes.append(buffer, n);
    require<DataError>(std::ferror(stdin) == 0, "standard input: cannot be read");
    if (n == 0) return bytes;
  }
}

}  // namespace

std::string read_text(const std::string& path, bool* had_mark) {
  const bool standard_input = path == "-";
  std::string bytes = standard_input ? read_standard_input() : read_file(path);
  const std::string where = standard_input ? "standard input" : path;
  require<DataError>(!bytes.empty(), "{}: is empty (0 bytes)", where);
  const auto starts = [&](std::string_view mark) { return bytes.starts_with(mark); };
  require<DataError>(!starts("\xFF\xFE") && !starts("\xFE\xFF"),
                     "{}: is UTF-16 (it begins with its byte-order mark); convert it to UTF-8",
                     where);
  const bool marked = starts("\xEF\xBB\xBF");
  if (marked) bytes.erase(0, 3);
  if (had_mark != nullptr) *had_mark = marked;
  require<DataError>(!bytes.empty(), "{}: is empty but for a byte-order mark", where);
  return bytes;
}

Split split(const std::vector<Id>& tokens, Index context) {
  const auto n = static_cast<Index>(tokens.size());
  require_window(n, context);
  const Index cut = n * 9 / 10;
  if (n - cut <= context || cut <= context) return {tokens, tokens, true};
  return {{tokens.begin(), tokens.begin() + cut}, {tokens.begin() + cut, tokens.end()}, false};
}

Batch random_batch(const std::vector<Id>& tokens, Index batch, Index context, Rng& rng) {
  const auto n = static_cast<Index>(tokens.size());
  require_window(n, context);
  std::vector<Id> inputs, targets;
  inputs.reserve(static_cast<std::size_t>(batch * context));
  targets.reserve(static_cast<std::size_t>(batch * context));
  for (Index b = 0; b < batch; ++b) {
    const auto start = tokens.begin() + rng.below(n - context);
    inputs.insert(inputs.end(), start, start + context);
    targets.insert(targets.end(), start + 1, start + 1 + context);
  }
  return {Ids({batch, context}, std::move(inputs)), Ids({batch, context}, std::move(targets))};
}

}  // namespace headwise
