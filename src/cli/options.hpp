// From struct members to command-line options: one walk over visit(). Only options.cpp knows the
// library that reads the command line (CLI11).
#pragma once

#include <fmt/format.h>

#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "headwise/core/error.hpp"
#include "headwise/core/parse.hpp"
#include "headwise/core/printable.hpp"
#include "headwise/core/shape.hpp"

namespace CLI {
class App;
}

namespace headwise::cli {

/// Reads a boolean's text: true, yes, on, 1; false, no, off, 0; in capitals or not. Throws
/// UsageError naming option and text for any other.
bool parse_bool(const std::string& option, const std::string& text);

/// Reads a value given on the command line in full. Throws UsageError naming option and text.
template <class T>
T parse(const std::string& option, const std::string& text) {
  const auto expected = [&](const auto& value, const auto& what) {
    require<UsageError>(value.has_value(), "{}: expected {}, got '{}'", option, what,
                        printable(text));
    return *value;
  };
  if constexpr (std::is_same_v<T, std::string>)
    return text;
  else if constexpr (std::is_same_v<T, bool>)
    return parse_bool(option, text);
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

/// What a command takes: options and positional arguments. Commands describe it before the command
/// line is read, and ask what was given afterwards. An option's name has its dashes in both:
/// "--lr". None may be given twice, and none may be empty unless may_be_empty() says so.
class Arguments {
 public:
  explicit Arguments(CLI::App& app) : app_(&app) {}

  /// Adds one option --name, the member's value being its default. A bool becomes a flag, with
  /// --no-name where it is on by default.
  template <class T>
  void bind_one(const char* name, T& member, const char* help) {
    if constexpr (std::is_same_v<T, bool>) {
      add_flag(name, member, help);
    } else {
      const std::string option = fmt::format("--{}", name);
      add_option(option, help,
                 std::is_same_v<T, std::string> ? "TEXT"
                 : Named<T>                     ? "NAME"
                 : std::is_integral_v<T>        ? "N"
                                                : "X",
                 default_text(member),
                 [&member, option](const std::string& text) { member = parse<T>(option, text); });
    }
  }
  /// Adds every visited member.
  template <class Options>
  void bind(Options& options) {
    options.visit(
        [&](const char* name, auto& member, const char* help) { bind_one(name, member, help); });
  }
  /// Adds a positional argument, which must be given or need not.
  void add_required(const char* name, const char* type, const std::string& help,
                    std::string& member);
  void add_optional(const char* name, const char* type, const std::string& help,
                    std::string& member);
  /// The same, of which any number may be given.
  void add_list(const char* name, const char* type, const std::string& help,
                std::vector<std::string>& members);

  /// Says in the help what the default is.
  void describe_default(const char* option, const char* text);
  void may_be_empty(const std::string& option) { may_be_empty_.insert(option); }
  /// The two cannot be given together.
  void exclude(const char* one, const char* other);
  /// Text below the help.
  void footer(const char* text);

  [[nodiscard]] bool can_be_empty(const std::string& option) const {
    return may_be_empty_.contains(option);
  }
  [[nodiscard]] bool given(const std::string& option) const { return !texts(option).empty(); }
  /// Every option that was given.
  [[nodiscard]] std::vector<std::string> all_given() const;

  /// Sets every visited member whose option was given, as it was given: on top of a preset, or of
  /// what a run was started with.
  template <class Options>
  void apply_given(Options& options) const {
    options.visit([&]<class T>(const char* name, T& member, const char*) {
      const std::string option = fmt::format("--{}", name);
      if (const auto found = texts(option); !found.empty()) member = parse<T>(option, found.back());
    });
  }

 private:
  void add_option(const std::string& option, const char* help, const char* type,
                  const std::string& default_value, std::function<void(const std::string&)> set);
  void add_flag(const char* name, bool& member, const char* help);
  /// What was given for an option: a text, or nothing. A flag's is "true" or "false".
  [[nodiscard]] std::vector<std::string> texts(const std::string& option) const;

  CLI::App* app_;
  std::set<std::string> may_be_empty_;
};

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

/// What a command does once its arguments are read; returns the exit code.
using Action = std::function<int()>;

/// A command: describes its arguments in `args`, which outlives the action that it returns.
struct Command {
  const char* name;
  const char* help;
  Action (*make)(Arguments& args, CommonOptions& common);
};

Action train_command(Arguments& args, CommonOptions& common);
Action sample_command(Arguments& args, CommonOptions& common);
Action eval_command(Arguments& args, CommonOptions& common);
Action gradcheck_command(Arguments& args, CommonOptions& common);
Action study_command(Arguments& args, CommonOptions& common);
Action data_command(Arguments& args, CommonOptions& common);
Action bench_command(Arguments& args, CommonOptions& common);
Action info_command(Arguments& args, CommonOptions& common);

/// Reads the command line, with the program's name in front: what is to be done, which for --help
/// and --version is to print a text. Throws UsageError saying what is wrong and where help is.
Action read_command_line(std::span<const char* const> words, std::span<const Command> commands,
                         CommonOptions& common);

/// Exit codes.
inline constexpr int kDone = 0, kFailed = 1, kUsage = 2;

}  // namespace headwise::cli
