// From struct members to command-line options: one walk over visit().
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "headwise/core/error.hpp"
#include "headwise/core/parse.hpp"
#include "headwise/core/shape.hpp"

namespace headwise::cli {

/// Reads a value given on the command line in full. Throws UsageError naming option and text.
template <class T>
T parse(const std::string& option, const std::string& text) {
  const auto expected = [&](const auto& value, const auto& what) {
    require<UsageError>(value.has_value(), "{}: expected {}, got '{}'", option, what, text);
    return *value;
  };
  if constexpr (std::is_same_v<T, std::string>)
    return text;
  else if constexpr (Named<T>)
    return expected(parse_name<T>(text), fmt::format("{}", fmt::join(names_of(T{}), " or ")));
  else if constexpr (std::is_integral_v<T>)
    return expected(parse_number<T>(text), "a whole number");
  else
    return expected(parse_number<T>(text), "a number");
}

template <class T>
std::string default_text(const T& value) {
  if constexpr (Named<T>)
    return std::string(name_of(value));
  else
    return fmt::format("{}", value);
}

/// One option, its current value being the default. A bool becomes a flag --name, with --no-name
/// where it is on by default.
template <class T>
CLI::Option* bind_one(CLI::App& app, const char* name, T& member, const char* help) {
  const std::string option = fmt::format("--{}", name);
  if constexpr (std::is_same_v<T, bool>) {
    const std::string flags = member ? fmt::format("{0},!--no-{1}", option, name) : option;
    return app.add_flag(flags, member,
                        fmt::format("{} (default: {})", help, member ? "on" : "off"));
  } else {
    CLI::Option* const added = app.add_option_function<std::string>(
        option, [&member, option](const std::string& text) { member = parse<T>(option, text); },
        help);
    added->type_name(std::is_same_v<T, std::string> ? "TEXT"
                     : Named<T>                     ? "NAME"
                     : std::is_integral_v<T>        ? "N"
                                                    : "X");
    added->default_str(default_text(member));
    return added;
  }
}

/// Adds every visited member to a subcommand.
template <class Options>
void bind(CLI::App& app, Options& options) {
  options.visit(
      [&](const char* name, auto& member, const char* help) { bind_one(app, name, member, help); });
}

/// Sets every visited member whose option was given, as it was given: on top of a preset, or of
/// what a run was started with.
template <class Options>
void apply_given(const CLI::App& app, Options& options) {
  options.visit([&]<class T>(const char* name, T& member, const char*) {
    const CLI::Option* const option = app.get_option(fmt::format("--{}", name));
    if (option->count() == 0) return;
    const std::string& text = option->results().back();
    if constexpr (std::is_same_v<T, bool>)
      member = text == "true";
    else
      member = parse<T>(option->get_name(), text);
  });
}

/// What every command takes.
struct CommonOptions {
  Index threads = 0;
  std::uint64_t seed = 1;
  std::string program = "headwise";  ///< as it was called, for advice that can be pasted

  void visit(auto&& v) {
    v("threads", threads, "threads to use; 0: the cores this process may use");
    v("seed", seed, "seed of everything random");
  }
};

/// A command: adds its options to `app` and returns what to do once they are read.
using Command = std::function<int()> (*)(CLI::App& app, CommonOptions& common);

std::function<int()> train_command(CLI::App& app, CommonOptions& common);
std::function<int()> sample_command(CLI::App& app, CommonOptions& common);
std::function<int()> eval_command(CLI::App& app, CommonOptions& common);
std::function<int()> gradcheck_command(CLI::App& app, CommonOptions& common);
std::function<int()> study_command(CLI::App& app, CommonOptions& common);
std::function<int()> data_command(CLI::App& app, CommonOptions& common);
std::function<int()> bench_command(CLI::App& app, CommonOptions& common);
std::function<int()> info_command(CLI::App& app, CommonOptions& common);

/// Exit codes.
inline constexpr int kDone = 0, kFailed = 1, kUsage = 2;

}  // namespace headwise::cli
