// What tasks are made of: the split, and the two kinds of Task.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headwise/data/task.hpp"

namespace headwise {

/// Whether an example with this input validates: one in ten, by a hash of its bytes alone. It must
/// never change, or a resumed run would validate on what it was trained on.
bool validates(std::string_view input);

/// The characters of a text, sorted by code point and each once. Throws DataError when it is not
/// UTF-8.
std::vector<std::string> characters_of(std::string_view text);

/// Throws UsageError unless the length is 0 (the default) or in the task's range.
std::unique_ptr<Task> generated_task(const TaskSpec& spec, Index length);

/// The examples of a file, as make_task describes it.
std::unique_ptr<Task> file_task(const std::string& path);

}  // namespace headwise
