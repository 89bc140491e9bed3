// Bytes that are no UTF-8 text: what they look like.
#pragma once

#include <string>
#include <string_view>

namespace headwise {

/// The format that `bytes` seem to be in, by their first bytes, such as "gzip" or "UTF-16LE without
/// a byte-order mark"; "" when it is not known, and for what begins as UTF-8 without zero bytes:
/// that is a text, whatever its first characters.
std::string_view foreign_format(std::string_view bytes);

/// For the end of a message: "; it looks like gzip", or "" when nothing is known.
std::string foreign_hint(std::string_view bytes);

}  // namespace headwise
