#include "cli/options.hpp"

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <optional>

namespace headwise::cli {
namespace {

/// "headwise train".
std::string called(const CLI::App& app) {
  return app.get_parent() == nullptr ? "headwise" : "headwise " + app.get_name();
}

[[noreturn]] void refuse(const CLI::App& app, const std::string& what) {
  throw UsageError(fmt::format("{}; see {} --help", what, called(app)));
}

[[noreturn]] void refuse_unknown(const CLI::App& app, const std::string& word) {
  refuse(app, fmt::format("unknown argument '{}'", printable(word)));
}

/// A command as CLI11 knows it, and what CLI11 cannot know.
struct Described {
  CLI::App* app;
  Arguments arguments{*app};
};

/// The words of a command line in the one form that CLI11 cannot misread. It takes the next word
/// for the value of "--out=", and an option for that of "--out"; it makes lists of words in
/// brackets, and numbers of "2abc". So here each option is followed by its value, and each flag has
/// "=true" or "=false".
class Words {
 public:
  Words(CLI::App& app, std::span<const std::unique_ptr<Described>> commands)
      : app_(&app), commands_(commands) {}

  std::vector<std::string> normal(std::span<const char* const> words) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::string word = words[i];
      if (only_positional_ || !word.starts_with("-") || word == "-")
        positional(word);
      else if (word == "--")
        out_.push_back(word), only_positional_ = true;
      else
        named(word, words, i);
    }
    return std::move(out_);
  }

 private:
  void positional(const std::string& word) {
    out_.push_back(word);
    if (arguments_ == nullptr) {
      for (const auto& command : commands_)
        if (command->app->get_name() == word) app_ = command->app, arguments_ = &command->arguments;
      return;
    }
    const auto all = app_->get_options([](const CLI::Option* o) { return o->get_positional(); });
    if (all.empty()) return;
    require<UsageError>(!word.empty(), "{}: must not be empty", all[0]->get_name());
    if (all[0]->get_allow_extra_args() && word.starts_with("[")) refuse_unknown(*app_, word);
  }

  /// An option, and the word after it where that is its value.
  void named(const std::string& word, std::span<const char* const> words, std::size_t& i) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const CLI::Option* const option = app_->get_option_no_throw(name);
    const bool help = arguments_ == nullptr || option == app_->get_help_ptr();
    if (option == nullptr || (help && name != word)) refuse_unknown(*app_, word);
    if (help) {
      out_.push_back(name);
      return;
    }
    const auto [before, first] = seen_.emplace(option, name);
    require<UsageError>(first || before->second != name, "{}: given twice", name);
    require<UsageError>(first, "{}: cannot be given with {}", name, before->second);
    std::optional<std::string> value;
    if (equals != std::string::npos) value = word.substr(equals + 1);
    if (option->get_items_expected_max() == 0) {
      out_.push_back(fmt::format("{}={}", name, !value || parse_bool(name, *value)));
      return;
    }
    if (!value) value = next(name, words, i);
    require<UsageError>(!value->empty() || arguments_->can_be_empty(name), "{}: must not be empty",
                        name);
    out_.push_back(name);
    out_.push_back(*value);
  }

  std::string next(const std::string& name, std::span<const char* const> words, std::size_t& i) {
    if (i + 1 == words.size()) refuse(*app_, fmt::format("{}: needs a value", name));
    std::string value = words[++i];
    require<UsageError>(!value.starts_with("--") && value != "-h",
                        "{0}: needs a value, and '{1}' looks like an option; to give it as the "
                        "value, write {0}={1}",
                        name, printable(value));
    return value;
  }

  CLI::App* app_;
  std::span<const std::unique_ptr<Described>> commands_;
  const Arguments* arguments_ = nullptr;  ///< of the command, once that is known
  bool only_positional_ = false;
  std::map<const CLI::Option*, std::string> seen_;  ///< with the name it was given by
  std::vector<std::string> out_;
};

/// Says what CLI11 complains of in our form.
[[noreturn]] void refuse(const CLI::App& app, const CLI::ParseError& e) {
  const auto commands = app.get_subcommands();
  const CLI::App& of = commands.empty() ? app : *commands.front();
  for (const std::string& word : app.remaining(true))
    if (word != "--") refuse_unknown(of, word);
  refuse(of, e.what());
}

}  // namespace

bool parse_bool(const std::string& option, const std::string& text) {
  std::string small;
  for (const char c : text) small += 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  for (const char* yes : {"true", "yes", "on", "1"})
    if (small == yes) return true;
  for (const char* no : {"false", "no", "off", "0"})
    if (small == no) return false;
  throw UsageError(fmt::format("{}: expected true or false, got '{}'", option, printable(text)));
}

void Arguments::add_option(const std::string& option, const char* help, const char* type,
                           const std::string& default_value,
                           std::function<void(const std::string&)> set) {
  app_->add_option_function<std::string>(option, std::move(set), help)
      ->type_name(type)
      ->default_str(default_value);
}

void Arguments::add_flag(const char* name, bool& member, const char* help) {
  const std::string flags =
      member ? fmt::format("--{0},!--no-{0}", name) : fmt::format("--{}", name);
  app_->add_flag(flags, member, fmt::format("{} (default: {})", help, member ? "on" : "off"));
}

void Arguments::add_required(const char* name, const char* type, const std::string& help,
                             std::string& member) {
  app_->add_option(name, member, help)->required()->type_name(type);
}

void Arguments::add_optional(const char* name, const char* type, const std::string& help,
                             std::string& member) {
  app_->add_option(name, member, help)->type_name(type);
}

void Arguments::add_list(const char* name, const char* type, const std::string& help,
                         std::vector<std::string>& members) {
  app_->add_option(name, members, help)->type_name(type);
}

void Arguments::describe_default(const char* option, const char* text) {
  app_->get_option(option)->default_str(text);
}

void Arguments::exclude(const char* one, const char* other) {
  app_->get_option(one)->excludes(app_->get_option(other));
}

void Arguments::footer(const char* text) { app_->footer(text); }

std::vector<std::string> Arguments::all_given() const {
  std::vector<std::string> names;
  for (const CLI::Option* option : app_->get_options())
    if (option->count() > 0 && !option->get_positional()) names.push_back(option->get_name());
  return names;
}

std::vector<std::string> Arguments::texts(const std::string& option) const {
  return app_->get_option(option)->results();
}

Action read_command_line(std::span<const char* const> words, std::span<const Command> commands,
                         CommonOptions& common) {
  struct Read {
    CLI::App app{"Train small transformers, prove their gradients, see what each head learned.",
                 "headwise"};
    std::vector<std::unique_ptr<Described>> commands;
    Action chosen;
  };
  const auto read = std::make_shared<Read>();
  CLI::App& app = read->app;
  app.require_subcommand(1);
  app.set_version_flag("--version", HEADWISE_VERSION);
  for (const Command& command : commands) {
    CLI::App& sub = *app.add_subcommand(command.name, command.help);
    Arguments& args =
        read->commands.emplace_back(std::make_unique<Described>(Described{&sub}))->arguments;
    args.bind(common);
    sub.callback([r = read.get(), action = command.make(args, common)] { r->chosen = action; });
  }
  if (!words.empty()) words = words.subspan(1);
  std::vector<std::string> normal = Words(app, read->commands).normal(words);
  std::reverse(normal.begin(), normal.end());  // as CLI11 wants them
  try {
    app.parse(std::move(normal));
  } catch (const CLI::CallForHelp&) {
    return [text = app.help()] { return fmt::print("{}", text), kDone; };
  } catch (const CLI::CallForVersion& e) {
    return [text = std::string(e.what())] { return fmt::print("{}\n", text), kDone; };
  } catch (const CLI::ParseError& e) {
    refuse(app, e);
  }
  return [read] {
    try {
      return read->chosen();
    } catch (const ParameterError& e) {
      throw UsageError(fmt::format("--{}", e.what()));
    }
  };
}

}  // namespace headwise::cli
