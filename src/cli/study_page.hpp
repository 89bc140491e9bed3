// The page of `headwise study --out`: what each head does, as one HTML file that needs nothing
// beside itself. Its script and style stand in src/cli/study_page/.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "headwise/study/head.hpp"

namespace headwise::cli {

/// The largest page that is written, in bytes. 12 layers of 12 heads over 512 tokens are 51 MB,
/// which a browser opens in a second or two; it holds a page several times over.
inline constexpr std::uintmax_t kPageLimit = 64'000'000;

/// Gives what query i of a head attends to in a text of the document: A[i,0] to A[i,i], the i+1
/// places of `row`. Asked text by text, then head by head, then row by row, from the first to the
/// last.
using PatternRow =
    std::function<void(Index text, study::HeadId head, Index i, std::span<double> row)>;

/// The bytes that the page will have: exact for this document, and a lower bound for one that has
/// its texts but not yet its scores. `heads` are those whose patterns the page shows.
std::uintmax_t study_page_size(const nlohmann::json& document,
                               const std::vector<study::HeadId>& heads);

/// Throws UsageError, naming the size, the limit and what makes the page smaller, when `size` is
/// above kPageLimit.
void check_page_size(std::uintmax_t size);

/// Replaces `path` by the page, in one step, written as a stream: no more than a row of a pattern
/// and a value of the document are held. `document` is what --json writes; any key of it but
/// "texts" and "heads" may be missing or null. Patterns are rounded to 16 bits. Throws UsageError
/// for a page above the limit, DataError where a pattern is not finite or `path` cannot be written.
void write_study_page(const std::string& path, const nlohmann::json& document,
                      const std::vector<study::HeadId>& heads, const PatternRow& pattern);

}  // namespace headwise::cli
