// Which known names a wrong one may have been meant for.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headwise {

/// The edits (a character inserted, removed or replaced, or two neighbours exchanged) that make one
/// text the other (Damerau 1964, doi:10.1145/363958.363994, restricted to one edit per character).
/// Compares the first 64 bytes, so that a long foreign text costs nothing.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The `most` known names with the smallest edit distance to `name`, nearest first; among equals
/// the order of `known`.
std::vector<std::string> nearest(std::string_view name, std::span<const std::string> known,
                                 std::size_t most = 3);

/// "; did you mean 'heads'?" for the end of a message: the nearest name, or "" when it takes edits
/// of more than a third of `name`.
std::string did_you_mean(std::string_view name, std::span<const std::string> known);

}  // namespace headwise
