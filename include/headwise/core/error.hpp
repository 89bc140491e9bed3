// Errors of the library. Every message reads "<where>: <rule>, with every size or value involved".
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace headwise {

/// Base of every exception headwise throws. Catch this at the edge of a program.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Sizes do not fit together: a mistake in the calling code.
struct ShapeError : Error {
  using Error::Error;
};

/// A bad option or configuration: the user can fix it.
struct UsageError : Error {
  using Error::Error;
};

/// A parameter that cannot be: "<parameter>: must be <rule>, got <value>". The parameter's name is
/// that of visit(), of config.json's key and of the option, which the program puts dashes before.
struct ParameterError : UsageError {
  using UsageError::UsageError;
};

/// A file is missing, cut short or malformed.
struct DataError : Error {
  using Error::Error;
};

/// A loss, gradient or weight is NaN or infinite.
struct NotFinite : Error {
  using Error::Error;
};

/// Throws E with a formatted message unless `ok`. The message is built only on failure.
template <class E = ShapeError, class... A>
void require(bool ok, fmt::format_string<A...> text, A&&... args) {
  if (!ok) [[unlikely]]
    throw E(fmt::format(text, std::forward<A>(args)...));
}

}  // namespace headwise
