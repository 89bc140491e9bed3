// What the parts of core that talk to the system share.
#pragma once

#include <cerrno>
#include <string>
#include <string_view>

namespace headwise {

/// call(), again while a signal interrupts it.
template <class Call>
auto again(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

/// What errno says.
std::string system_error();

/// Whether all bytes were written; errno says why not.
bool write_all(int fd, std::string_view bytes);

/// Flushes the names in a folder to the disk; nothing where the file system has no such call.
/// Whether that worked; errno says why not.
bool sync_folder(int folder);

}  // namespace headwise
