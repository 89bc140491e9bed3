#include "headwise/data/text.hpp"

#include "headwise/core/error.hpp"
#include "headwise/core/printable.hpp"

namespace headwise {
namespace {

void require_window(Index tokens, Index context) {
  require<DataError>(tokens > context,
                     "text: {} tokens, need at least {} (--context {} and the token after)", tokens,
                     context + 1, context);
}

}  // namespace

std::string read_text(const std::string& path, bool* had_mark, Accept accept) {
  const bool standard_input = path == "-";
  const InputFile file = standard_input ? InputFile::standard_input() : InputFile(path, accept);
  std::string bytes = file.read();
  const std::string where = printable_path(file.path());
  require<DataError>(!bytes.empty(), "{}: is empty (0 bytes)", where);
  const bool marked = bytes.starts_with("\xEF\xBB\xBF");
  if (marked) bytes.erase(0, 3);
  if (had_mark != nullptr) *had_mark = marked;
  require<DataError>(!bytes.empty(), "{}: is empty but for a byte-order mark", where);
  return bytes;
}

Split split(const PackedIds& tokens, Index context) {
  const auto n = static_cast<Index>(tokens.size());
  require_window(n, context);
  const Index cut = n * 9 / 10;
  if (n - cut <= context || cut <= context) return {tokens, tokens, true};
  const auto at = static_cast<std::size_t>(cut);
  return {tokens.part(0, at), tokens.part(at, tokens.size()), false};
}

Batch random_batch(const PackedIds& tokens, Index batch, Index context, Rng& rng) {
  const auto n = static_cast<Index>(tokens.size());
  require_window(n, context);
  std::vector<Id> inputs, targets;
  inputs.reserve(static_cast<std::size_t>(batch * context));
  targets.reserve(static_cast<std::size_t>(batch * context));
  for (Index b = 0; b < batch; ++b) {
    const auto start = static_cast<std::size_t>(rng.below(n - context));
    const std::size_t end = start + static_cast<std::size_t>(context);
    tokens.append_to(inputs, start, end);
    tokens.append_to(targets, start + 1, end + 1);
  }
  return {Ids({batch, context}, std::move(inputs)), Ids({batch, context}, std::move(targets))};
}

}  // namespace headwise
