// tp completion: what a shell reads to complete tp's commands, flags, runs and profiles.
#include <memory>
#include <string_view>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/status.h"
#include "cli/answer.h"
#include "cli/commands/commands.h"

namespace tp::cli {
namespace {

// bash takes `:` and `=` for ends of words and replaces only what comes after the last: the candidates
// lose what stands before it.
constexpr std::string_view kBash = R"(# tp completion bash: source <(tp completion bash)
_tp() {
  local line=${COMP_LINE:0:COMP_POINT} candidate begun
  local -a words
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  local word=${words[-1]} kept=
  for begun in : =; do
    [[ $COMP_WORDBREAKS == *$begun* && $word == *$begun* && ${#word} -gt ${#kept} ]] &&
      { local head=${word%"${word##*"$begun"}"}; ((${#head} > ${#kept})) && kept=$head; }
  done
  COMPREPLY=()
  while IFS= read -r candidate; do
    case $candidate in
      :files) mapfile -t COMPREPLY < <(compgen -f -- "$word"); compopt -o filenames 2>/dev/null; return ;;
      :directories) mapfile -t COMPREPLY < <(compgen -d -- "$word"); compopt -o filenames 2>/dev/null; return ;;
    esac
    candidate=${candidate%%$'\t'*}
    COMPREPLY+=("${candidate#"$kept"}")
  done < <("${words[0]}" __complete "${words[@]:1}" 2>/dev/null)
}
complete -F _tp tp
)";

constexpr std::string_view kZsh = R"(#compdef tp
# tp completion zsh: source <(tp completion zsh)
_tp() {
  local -a candidates
  local line value
  for line in "${(@f)$("${words[1]}" __complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)}"; do
    case $line in
      '') continue ;;
      :files) _files; return ;;
      :directories) _files -/; return ;;
    esac
    value=${line%%$'\t'*}
    value=${value//:/\\:}
    [[ $line == *$'\t'* ]] && value+=":${line#*$'\t'}"
    candidates+=("$value")
  done
  _describe -V tp candidates
}
(( $+functions[compdef] )) && compdef _tp tp
)";

constexpr std::string_view kFish = R"(# tp completion fish: tp completion fish | source
function __tp_complete
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    for line in (command $words[1] __complete $words[2..] "$word" 2>/dev/null)
        switch $line
            case ':files'
                __fish_complete_path "$word"
            case ':directories'
                __fish_complete_directories "$word"
            case '*'
                printf '%s\n' $line
        end
    end
end
complete -c tp -f -k -a '(__tp_complete)'
)";

absl::StatusOr<std::string_view> ScriptFor(const std::string& shell) {
  if (shell == "bash") return kBash;
  if (shell == "zsh") return kZsh;
  if (shell == "fish") return kFish;
  return InvalidArgument("no completion for {}: there is bash, zsh and fish", shell);
}

absl::StatusOr<ExitCode> PrintScript(Context& context, const std::string& shell) {
  TP_ASSIGN_OR_RETURN(const std::string_view script, ScriptFor(shell));
  Answer answer;
  answer.table = [&](bool) { return std::string(script); };
  answer.fill = [&](Json& document) {
    document["shell"] = shell;
    document["script"] = script;
  };
  return Show(context, answer);
}

}  // namespace

void AddCompletionCommands(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("completion", "Completion for bash, zsh and fish");
  command->footer(
      "bash: source <(tp completion bash)     in ~/.bashrc\n"
      "zsh:  source <(tp completion zsh)      in ~/.zshrc, after compinit\n"
      "fish: tp completion fish | source      in ~/.config/fish/config.fish");
  auto shell = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "bash, zsh or fish")->required();
  command->callback([&context, shell] { context.action = [shell](Context& c) { return PrintScript(c, *shell); }; });
}

}  // namespace tp::cli
